"""Notifies a strategy of Keras models that are created, loaded or compiled in its scope."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol

from headwater.keras.internals import JAXTrainer, Trainer

_STRATEGY = "_headwater_strategy"


class _Adopts(Protocol):
    def adopt(self, model: object) -> None: ...


class _Sharing:
    """The strategy with which this process trains together with other processes.

    Attributes:
      strategy: the latest such strategy; None if there is none.
      used: whether it has adopted a model.
    """

    strategy: _Adopts | None = None
    used = False


_watched = False
_sharing = _Sharing()


def expect_models(strategy: _Adopts, active: Callable[[], _Adopts | None]) -> None:
    """Patches Keras to reject training of models outside of every scope, until ``strategy`` has adopted a model.

    Otherwise each of the processes, which must train together, would train such a model alone.

    Args:
      strategy: the strategy with which the processes train together.
      active: see `watch_models`.
    """
    _sharing.strategy, _sharing.used = strategy, False
    watch_models(active)


def watch_models(active: Callable[[], _Adopts | None]) -> None:
    """Patches Keras so that the active strategy adopts each model that is created or compiled.

    Every Keras model uses the two patched methods: constructors of all kinds of models call the trainer's ``__init__``,
    and a loaded model calls ``compile``. Outside of scopes, the methods behave as before.

    Args:
      active: returns the strategy of the calling thread's scope, or None.
    """
    global _watched
    if _watched:
        return
    _watched = True
    trainer = JAXTrainer
    base = Trainer
    make, compile_ = trainer.__init__, base.compile

    @functools.wraps(make)
    def made(self: Any, *args: object, **kwargs: object) -> None:
        make(self, *args, **kwargs)
        adopt(self)

    @functools.wraps(compile_)
    def compiled(self: Any, *args: Any, **kwargs: Any) -> None:
        compile_(self, *args, **kwargs)
        adopt(self)

    def adopt(model: object) -> None:
        strategy = active()
        if strategy is not None:
            # Bypasses Keras's __setattr__, which would search the strategy for layers.
            object.__setattr__(model, _STRATEGY, strategy)
            _sharing.used = _sharing.used or strategy is _sharing.strategy
            strategy.adopt(model)

    trainer.__init__, base.compile = made, compiled
    for name in ("fit", "train_on_batch"):
        setattr(trainer, name, _in_scope(getattr(trainer, name)))


def _in_scope(method: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(method)
    def checked(self: Any, *args: object, **kwargs: object) -> object:
        if _sharing.strategy is not None and not _sharing.used and strategy_of(self) is None:
            raise RuntimeError(
                f"model {self.name!r} was made and compiled outside of strategy.scope(), so that each task would train "
                "its own copy: put 'with strategy.scope():' around both, where the strategy is "
                f"{_sharing.strategy!r} (or, for a model that this task is to train alone, "
                "'with OneDeviceStrategy(\"/cpu:0\").scope():')"
            )
        return method(self, *args, **kwargs)

    return checked


def strategy_of(model: object) -> Any:
    """The strategy that has adopted ``model``; None for a model outside of scopes."""
    return getattr(model, _STRATEGY, None)
