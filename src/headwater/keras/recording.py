"""Captures the gradients that a model's own ``train_step`` passes to the optimizer."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import keras


@contextmanager
def record_gradients(optimizer: keras.Optimizer) -> Generator[list[list[Any]]]:
    """A context in which ``optimizer.stateless_apply`` changes nothing; yields a list of the gradients of each call."""
    calls: list[list[object]] = []

    def record(
        optimizer_variables: object, grads: Sequence[object], trainable_variables: object
    ) -> tuple[object, object]:
        calls.append(list(grads))
        return trainable_variables, optimizer_variables

    # Bypasses Keras's own __setattr__, which would track the function.
    object.__setattr__(optimizer, "stateless_apply", record)
    try:
        yield calls
    finally:
        object.__delattr__(optimizer, "stateless_apply")


def gradients_of(model: object, calls: Sequence[list[object]], what_for: str) -> list[object]:
    """Returns the gradients that a ``train_step`` passed to the optimizer.

    Raises:
      ValueError: the ``train_step`` did not call ``self.optimizer.stateless_apply`` exactly once.
    """
    if len(calls) != 1:
        raise ValueError(
            f"{type(model).__name__}.train_step must call self.optimizer.stateless_apply once for {what_for} "
            f"to share its gradients, but called it {len(calls)} times"
        )
    return calls[0]
