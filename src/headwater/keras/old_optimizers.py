"""``keras.optimizers.legacy``: Keras 3's optimizers with the arguments ``lr`` and ``decay`` of earlier versions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import keras

_keras: Any = keras


def _with_old_arguments(make: Any) -> Callable[..., Any]:
    def legacy(*args: object, lr: float | None = None, decay: float = 0.0, **arguments: object) -> Any:
        if lr is not None:
            arguments["learning_rate"] = lr
        bound = inspect.signature(make).bind(*args, **arguments)
        if decay:
            bound.apply_defaults()
            rate = bound.arguments["learning_rate"]
            bound.arguments["learning_rate"] = _keras.optimizers.schedules.InverseTimeDecay(rate, 1, decay)
        return make(*bound.args, **bound.kwargs)

    legacy.__name__ = legacy.__qualname__ = make.__name__
    legacy.__doc__ = (
        f"Returns a ``keras.optimizers.{make.__name__}``; ``lr`` is its learning rate, which ``decay`` divides by\n"
        "1 + decay · updates."
    )
    return legacy


SGD = _with_old_arguments(_keras.optimizers.SGD)
Adadelta = _with_old_arguments(_keras.optimizers.Adadelta)
Adagrad = _with_old_arguments(_keras.optimizers.Adagrad)
Adam = _with_old_arguments(_keras.optimizers.Adam)
Adamax = _with_old_arguments(_keras.optimizers.Adamax)
Ftrl = _with_old_arguments(_keras.optimizers.Ftrl)
Nadam = _with_old_arguments(_keras.optimizers.Nadam)
RMSprop = _with_old_arguments(_keras.optimizers.RMSprop)
Optimizer = _keras.optimizers.Optimizer
