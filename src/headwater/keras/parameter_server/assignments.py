"""Refuses assignments to variables by a program's callbacks during training.

The ``ps`` hold the variables during training, and the values of the ``ps`` replace the worker's values before each
step. So an assignment by a callback would have no effect. A learning rate is an exception: the chief sends the rate to
the ``ps``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol

from headwater.keras.internals import OWN_MODULES
from headwater.keras.programs import list_paths

#: Methods of callbacks between the beginning and the end of training.
_HOOKS = (
    "on_epoch_begin",
    "on_epoch_end",
    "on_train_batch_begin",
    "on_train_batch_end",
    "on_batch_begin",
    "on_batch_end",
    "on_test_begin",
    "on_test_end",
    "on_test_batch_begin",
    "on_test_batch_end",
)
_WATCHED = "_headwater_watched"
_OWN_PREFIXES = (OWN_MODULES, "headwater.")


class Holder(Protocol):
    """The owner of the variables: the model on parameter servers.

    Attributes:
      is_training: whether `fit` is between the first epoch's beginning and the last epoch's end.
    """

    is_training: bool

    def assigned_variables(self) -> list[Any]:
        """Returns the variables, except for the learning rate, with other values than the ``ps`` last sent."""
        ...


def refuse_assignments(callback: object, holder_of: Callable[[object], Holder | None]) -> None:
    """Makes the methods of a program's own callback raise an error if they assign variables during training.

    Args:
      callback: any callback; methods of Keras's and Headwater's callbacks are not changed.
      holder_of: returns the holder of a model's variables; None for a model that is not on parameter servers.
    """
    for name in _HOOKS:
        hook = getattr(callback, name, None)
        if hook is not None and not hook.__module__.startswith(_OWN_PREFIXES) and not hasattr(hook, _WATCHED):
            setattr(callback, name, _refuse_in(callback, name, hook, holder_of))


def _refuse_in(
    callback: Any, name: str, hook: Callable[..., object], holder_of: Callable[[object], Holder | None]
) -> Callable[..., object]:
    @functools.wraps(hook)
    def call(*args: object, **kwargs: object) -> object:
        # `callback.model` reads all variables, which an evaluation keeps elsewhere; between steps that would be slow.
        holder = holder_of(callback.model if "_test_" in name else callback._model)
        if holder is None or not holder.is_training:
            return hook(*args, **kwargs)
        before = {id(variable): variable._value for variable in holder.assigned_variables()}
        result = hook(*args, **kwargs)
        after = holder.assigned_variables()
        if assigned := [variable for variable in after if before.get(id(variable)) is not variable._value]:
            raise ValueError(
                f"{name} of callback {type(callback).__name__} assigns {list_paths(assigned)}: the ps hold the "
                "variables during training, and the assignment would have no effect; assign in on_train_begin or "
                "on_train_end, or use a mirrored strategy"
            )
        return result

    setattr(call, _WATCHED, True)
    return call
