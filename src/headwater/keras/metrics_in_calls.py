"""Metrics that a model or its layers update in ``call``.

Keras on TensorFlow updates them in `fit` and `evaluate`. Keras on JAX calls a model with the values of variables and
without the values of metrics: such a metric has no value, and its update is lost.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from keras import StatelessScope

from headwater.keras.internals import JAXTrainer, get_stateless_scope


def update_metrics_in_calls() -> None:
    """Makes Keras's own steps on JAX update metrics that are used in ``call``."""
    trainer: Any = JAXTrainer
    trainer.compute_loss_and_updates = _with_metrics(trainer.compute_loss_and_updates)


def _with_metrics(compute: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(compute)
    def compute_with_metrics(
        self: object, trainable: object, others: object, metrics: Sequence[object], *args: object, **kwargs: object
    ) -> object:
        # Keras passes this list on after the call, with the values that the call has assigned.
        values = list(metrics)
        with metrics_in_call(self, values):
            return compute(self, trainable, others, values, *args, **kwargs)

    return compute_with_metrics


@contextmanager
def metrics_in_call(model: Any, values: list[object]) -> Generator[None]:
    """A context in which stateless calls of ``model`` read and replace ``values``, the values of its metrics."""

    def enter(scope: StatelessScope) -> None:
        for pair in zip(model.metrics_variables, values, strict=True):
            scope.add_update(pair)

    def leave(scope: StatelessScope) -> None:
        values[:] = map(scope.get_current_value, model.metrics_variables)

    with _around_call(model, enter, leave):
        yield


@contextmanager
def refusing_metrics_in_call(model: Any, values: Sequence[object]) -> Generator[None]:
    """A context in which stateless calls of ``model`` raise ValueError if they lose the update of a metric, because its
    value is not in their scope; ``values`` are values of the metrics."""
    value_before: dict[int, object] = {}

    def enter(scope: StatelessScope) -> None:
        value_before.clear()
        for variable, value in zip(model.metrics_variables, values, strict=True):
            if scope.get_current_value(variable) is None:
                scope.add_update((variable, value))
                value_before[id(variable)] = value

    def leave(scope: StatelessScope) -> None:
        for metric in model.metrics:
            held = [variable for variable in metric.variables if id(variable) in value_before]
            if any(scope.get_current_value(variable) is not value_before[id(variable)] for variable in held):
                raise ValueError(
                    f"metric {metric.name!r} is updated in the call of {type(model).__name__}, but its train_step "
                    "calls the model with stateless_call, which returns no metrics: call "
                    "self.compute_loss_and_updates instead"
                )

    with _around_call(model, enter, leave):
        yield


@contextmanager
def _around_call(
    model: Any, enter: Callable[[StatelessScope], None], leave: Callable[[StatelessScope], None]
) -> Generator[None]:
    """A context in which functions are called before and after each ``model.call`` in a stateless scope."""
    call, own = model.call, vars(model).get("call")

    @functools.wraps(call)
    def called(*args: object, **kwargs: object) -> object:
        scope = get_stateless_scope()
        if scope is None:
            return call(*args, **kwargs)
        enter(scope)
        outputs = call(*args, **kwargs)
        leave(scope)
        return outputs

    # Bypasses Keras's own __setattr__, which would track the function.
    object.__setattr__(model, "call", called)
    try:
        yield
    finally:
        if own is None:
            object.__delattr__(model, "call")
        else:
            object.__setattr__(model, "call", own)
