"""Models with string inputs: the lookup layers at their beginning are computed on the host, for each batch.

JAX has no strings. So `fit`, `evaluate` and `predict` of a functional model or `Sequential` compute the lookup layers,
which have no variables, before each step, and pass the resulting numbers to the remaining layers.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import keras

from headwater.keras.host_layers import HostLayer, as_dense
from headwater.keras.internals import Function, Functional, JAXTrainer, Layer, functional, tree

if TYPE_CHECKING:
    from collections.abc import Generator

    from headwater.keras.types import Tree

_KEY = "headwater: results of lookup layers"
_methods = ("fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch")
_functional: Tree = functional


class Front:
    """The beginning of a model, up to and including its lookup layers, which is computed on the host.

    Args:
      compute: takes the model's inputs; returns numbers.
      rest: takes these numbers and ``training``; returns the model's outputs.
    """

    def __init__(self, compute: Callable[[Tree], list[Tree]], rest: Callable[[list[Tree], Tree], Tree]) -> None:
        self._compute = compute
        self.rest = rest

    def apply(self, inputs: Tree) -> Tree:
        """Returns the model's inputs for `call_rest`."""
        return {_KEY: [as_dense(part) for part in self._compute(inputs)]}

    def batches(self, batches: Iterator[Tree]) -> Iterator[Tree]:
        """Applies the front to the inputs in batches of inputs, or of tuples that begin with inputs."""
        for batch in batches:
            yield (self.apply(batch[0]), *batch[1:]) if isinstance(batch, tuple) else self.apply(batch)


_current: ContextVar[Front | None] = ContextVar("front of the model that runs", default=None)


def current_front() -> Front | None:
    """Returns the front of the model whose method this thread runs."""
    return _current.get()


def front_of(model: Tree) -> Front | None:
    """Returns the front of a model; None if it has no lookup layers at its beginning."""
    whole: Tree = model
    if isinstance(model, keras.Sequential):
        leading = list(itertools.takewhile(lambda layer: isinstance(layer, HostLayer), model.layers))
        following = model.layers[len(leading) :]
        if not leading or not following or (whole._functional is not None and whole.inputs[0].dtype != "string"):
            return None
        return Front(
            lambda inputs: [functools.reduce(lambda value, layer: layer(value), leading, inputs)],
            functools.partial(_call_layers, following),
        )
    if not isinstance(model, Functional) or not any(symbol.dtype == "string" for symbol in whole._inputs):
        return None
    return _functional_front(model)


def _call_layers(layers: list[Tree], values: list[Tree], training: Tree) -> Tree:
    value = values[0]
    for layer in layers:
        more = {"training": training} if layer._call_has_training_arg and training is not None else {}
        value = layer(value, **more)
    return value


def _functional_front(model: Tree) -> Front | None:
    cuts: list[Tree] = []
    texts = {id(symbol) for symbol in model._inputs if symbol.dtype == "string"}
    for operation in model._operations:
        for node in operation._inbound_nodes:
            if any(id(tensor) in texts for tensor in node.input_tensors):
                for tensor in node.output_tensors:
                    texts.add(id(tensor)) if tensor.dtype == "string" else cuts.append(tensor)
    if not cuts:
        return None
    front = Function(model._inputs, cuts)
    if any(getattr(operation, "trainable_weights", None) for operation in front._operations):
        return None  # the steps of training would not change these weights
    numbers = [symbol for symbol in model._inputs if symbol.dtype != "string"]
    rest = Function([*cuts, *numbers], model._outputs_struct)

    def compute(inputs: Tree) -> list[Tree]:
        flat = model._standardize_inputs(inputs)
        numbers_of_texts = front._run_through_graph(flat, operation_fn=lambda operation: operation)
        pairs = zip(flat, model._inputs, strict=True)
        return [*tree.flatten(numbers_of_texts), *(value for value, symbol in pairs if symbol.dtype != "string")]

    def call_rest(values: list[Tree], training: Tree) -> Tree:
        return rest._run_through_graph(
            values, operation_fn=lambda operation: _functional.operation_fn(operation, training=training)
        )

    return Front(compute, call_rest)


def is_computed(inputs: object) -> bool:
    """Returns whether a model's inputs are the results of its front."""
    return isinstance(inputs, dict) and _KEY in inputs


def accept_texts() -> None:
    """Makes methods of models accept strings. Idempotent."""
    if hasattr(JAXTrainer, "_headwater_texts"):
        return
    trainer: Tree = JAXTrainer
    trainer._headwater_texts = True
    for name in _methods:
        setattr(trainer, name, _with_front(getattr(trainer, name), on_batch=name.endswith("on_batch")))
    for kind in (Functional, keras.Sequential):
        kind.call = _after_front(kind.call)
        kind.__call__ = _call_whole


def _with_front(method: Callable[..., Tree], *, on_batch: bool) -> Callable[..., Tree]:
    @functools.wraps(method)
    def run(self: Tree, *args: Tree, **kwargs: Tree) -> Tree:
        front = front_of(self)
        if front is None:
            return method(self, *args, **kwargs)
        with _in_use(front):
            if on_batch:
                args = (front.apply(args[0]), *args[1:]) if args else args
                kwargs = {**kwargs, "x": front.apply(kwargs["x"])} if "x" in kwargs else kwargs
            return method(self, *args, **kwargs)

    return run


@contextmanager
def _in_use(front: Front) -> Generator[None]:
    token = _current.set(front)
    try:
        yield
    finally:
        _current.reset(token)


def _call_whole(self: Tree, *args: Tree, **kwargs: Tree) -> Tree:
    """Calls a model; Keras would compare results of its front with its inputs."""
    if args and is_computed(args[0]):
        return self.call(*args, training=kwargs.get("training"))
    layer: Tree = Layer
    return layer.__call__(self, *args, **kwargs)


def _after_front(call: Callable[..., Tree]) -> Callable[..., Tree]:
    @functools.wraps(call)
    def run(self: Tree, inputs: Tree, training: Tree = None, mask: Tree = None, **kwargs: Tree) -> Tree:
        if not is_computed(inputs):
            return call(self, inputs, training=training, mask=mask, **kwargs)
        front = front_of(self)
        assert front is not None
        outputs = front.rest(inputs[_KEY], training)
        self.built = True  # a Sequential without an input layer
        return outputs

    return run
