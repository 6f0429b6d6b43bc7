"""Losses and metrics of symbolic tensors, which Keras 3 has removed: `Model.add_loss` and `Layer.add_metric`."""

from __future__ import annotations

import functools
from collections.abc import Callable

import keras
from keras import KerasTensor

from headwater.keras.graphs.phase import builds_graph
from headwater.keras.graphs.states import as_eager_function
from headwater.keras.internals import Functional, Layer, map_graph
from headwater.keras.types import Tree

_keras: Tree = keras
_functional: Tree = Functional
_layer: Tree = Layer
_sequential: Tree = keras.Sequential
_FUNCTIONS = "_functions_of_losses"


def accept_symbolic_losses() -> None:
    """Gives functional models `add_loss` of symbolic tensors, and layers `add_metric`. Idempotent."""
    if _layer.add_metric is not add_metric:
        _layer.add_metric = add_metric
        _layer.add_loss = _accepting(_layer.add_loss)
        del _functional.add_loss  # which refuses symbolic losses
        losses = _layer.losses
        _layer.losses = property(lambda self: [*losses.__get__(self), *_computed(self)], losses.fset)


class AddLoss(_keras.layers.Layer):
    """Adds its input to the losses of the model."""

    def call(self, inputs: Tree) -> Tree:
        """Returns ``inputs``."""
        self.add_loss(inputs)
        return inputs


class AddMetric(_keras.layers.Layer):
    """Shows the mean of its inputs as a metric of the model.

    Args:
      metric: name of the metric.
    """

    def __init__(self, metric: str, **kwargs: Tree) -> None:
        super().__init__(**kwargs)
        self.metric = _keras.metrics.Mean(metric)

    def call(self, inputs: Tree) -> Tree:
        """Returns ``inputs``."""
        self.metric.update_state(inputs)
        return inputs

    def get_config(self) -> dict[str, object]:
        """Returns the arguments that recreate this layer."""
        return {**super().get_config(), "metric": self.metric.name}


def _accepting(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def add_loss(self: Tree, losses: Tree = None, inputs: Tree = None, **kwargs: Tree) -> None:
        new_losses = losses if losses is not None else kwargs.get("loss")
        for loss in new_losses if isinstance(new_losses, list | tuple) else [new_losses]:
            if isinstance(loss, KerasTensor):
                _extend(self, AddLoss()(loss))
            elif callable(loss):
                object.__setattr__(self, _FUNCTIONS, [*vars(self).get(_FUNCTIONS, ()), loss])
            else:
                original(self, loss, inputs)

    return add_loss


def _computed(layer: Tree) -> list[Tree]:
    """Returns the losses that functions without arguments compute from weights of a layer and the layers in it."""
    if layer._losses_override:
        return []  # computed in the call
    functions = [function for each in layer._flatten_layers() for function in vars(each).get(_FUNCTIONS, ())]
    return [(function if builds_graph() else as_eager_function(function))() for function in functions]


def _extend(model: Tree, output: Tree) -> None:
    """Makes each call of a functional model compute ``output``, too, which is not a result of the model.

    Raises:
      ValueError: ``model`` is not functional, so symbolic tensors do not belong to it.
    """
    model = model._functional if isinstance(model, _sequential) else model
    if not isinstance(model, _functional):
        raise ValueError(f"{output.name!r} is symbolic and does not belong to {model!r}: call this method in its call")
    known = {id(layer) for layer in model.layers}
    further = [*getattr(model, "_further_outputs", ()), output]
    object.__setattr__(model, "_further_outputs", further)
    network = map_graph(model.inputs, [*model.outputs, *further])
    model._nodes, model._nodes_by_depth, model._operations, model._operations_by_depth = network
    for layer in model.layers:
        if id(layer) not in known:
            model._tracker.track(layer)


def add_metric(self: Tree, value: Tree, aggregation: str | None = None, name: str | None = None) -> None:
    """Shows the mean of ``value`` over the batches of an epoch as a metric.

    Args:
      value: a number for each example, or one for the batch: in `call`, or symbolic in a functional model.
      aggregation: ``mean``.
      name: of the metric.

    Raises:
      ValueError: ``name`` is missing, or ``aggregation`` is unknown.
      NotImplementedError: ``aggregation`` is None.
    """
    if aggregation not in (None, "mean"):
        raise ValueError(f"We currently support only `mean` sample-wise metric aggregation, not {aggregation!r}")
    if name is None:
        raise ValueError("Please provide a name for your metric like `self.add_metric(value, 'mean', name='m')`")
    if aggregation is None:
        raise NotImplementedError(f"aggregation=None of metric {name!r}: pass 'mean', or use a metric in compile")
    if isinstance(value, KerasTensor):
        _extend(self, AddMetric(name)(value))
        return
    metric = next((each for each in self._metrics if each.name == name), None)
    if metric is None:
        self._tracker.unlock()
        metric = _keras.metrics.Mean(name)
        self._metrics.append(metric)
        if self.built:
            self._tracker.lock()
    metric.update_state(value)
