"""Tells a strategy of the Keras models that are made, loaded or compiled in its scope."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol

from keras.src.backend.jax.trainer import JAXTrainer
from keras.src.trainers.trainer import Trainer

_STRATEGY = "_headwater_strategy"


class _Adopts(Protocol):
    def adopt(self, model: Any) -> None: ...


_watched = False


def watch_models(active: Callable[[], _Adopts | None]) -> None:
    """From now on, the strategy that ``active`` gives adopts each model that is made or compiled.

    Every model of Keras's passes through these two methods: constructors of all kinds of models call the first, and a
    model that is loaded calls the second. Outside of scopes they do what they did.

    Args:
      active: gives the strategy whose scope the calling thread is in, or None.
    """
    global _watched
    if _watched:
        return
    _watched = True
    trainer: Any = JAXTrainer
    base: Any = Trainer
    make, compile_ = trainer.__init__, base.compile

    @functools.wraps(make)
    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        adopt(self)

    @functools.wraps(compile_)
    def compiled(self: Any, *args: Any, **kwargs: Any) -> None:
        compile_(self, *args, **kwargs)
        adopt(self)

    def adopt(model: Any) -> None:
        strategy = active()
        if strategy is not None:
            # Not by Keras's own __setattr__, which would look for layers in it.
            object.__setattr__(model, _STRATEGY, strategy)
            strategy.adopt(model)

    trainer.__init__, base.compile = made, compiled


def strategy_of(model: Any) -> Any:
    """The strategy in whose scope ``model`` was made; None for a model of no scope."""
    return getattr(model, _STRATEGY, None)
