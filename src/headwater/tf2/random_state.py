"""Random numbers that a layer draws by functions of ``tf`` while Keras traces its model.

Keras compiles a training step once, and passes the state of random generators as arguments if they belong to the
model. A generator outside the model would be a constant of the compiled step, which then draws the same numbers in each
step. So each model with layers of a program gets a generator, before Keras traces it.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import keras

from headwater.keras.internals import global_state, in_stateless_scope, in_symbolic_scope, seed_generator
from headwater.tf2.symbolic_calls import FunctionCall
from headwater.tf2.tracing import tracing

if TYPE_CHECKING:
    from headwater.keras.types import Tree

_Layer = keras.layers.Layer
_Generator = keras.random.SeedGenerator
_generators: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_functions = _Layer()
_global_generator: Callable[[], Any] = seed_generator.global_seed_generator


def attach() -> None:
    """Gives models their generators when they are compiled or predict. Idempotent."""
    if seed_generator.global_seed_generator is _generator_of_call:
        return
    for name in ("compile", "predict", "predict_on_batch"):
        # Keras compares methods with those of this class to find out whether a program has overridden them.
        owner: Any = next(kind for kind in keras.Model.__mro__ if name in vars(kind))
        setattr(owner, name, _with_generator(getattr(owner, name)))
    # Functions of Keras without a seed, such as those of `tf.keras.backend`, ask for this generator.
    seed_generator.global_seed_generator = _generator_of_call


class _Drawing(threading.local):
    model: Any = None


_drawing = _Drawing()


@contextmanager
def drawing_for(model: object) -> Generator[None]:
    """A context in which all random numbers of this thread are drawn by the generator of ``model``."""
    before, _drawing.model = _drawing.model, model
    try:
        yield
    finally:
        _drawing.model = before


def current_generator() -> Any:
    """Returns the generator of the model that Keras traces; None if Keras traces none, or only determines shapes."""
    if in_symbolic_scope():
        return None
    if _drawing.model is not None:
        return _generator_for(_drawing.model)
    if tracing() is not None or not in_stateless_scope():
        return None
    context = global_state.get_global_attribute("current_call_ctx")
    layer = None if context is None else context.entry_layer
    if layer is None:
        raise NotImplementedError(
            "random numbers in a step that Keras compiles must be drawn by a layer of the model: the compiled step "
            "would use the same numbers each time"
        )
    return _generator_for(layer)


def _generator_of_call() -> Any:
    # While Keras determines shapes, the numbers have no effect. A function that is traced needs a generator that it can
    # change; Keras's own refuses to be traced.
    other = in_symbolic_scope() or tracing() is not None
    return current_generator() or (_generator_for(_functions) if other else _global_generator())


def _generator_for(layer: Any) -> Any:
    if layer not in _generators:
        made = _generators[layer] = _Generator()
        tracker = layer._tracker
        locked = tracker.locked, tracker._lock_violation_msg
        tracker.unlock()  # a layer that is built refuses new state
        layer._seed_generators.append(made)
        tracker.locked, tracker._lock_violation_msg = locked
    return _generators[layer]


def _with_generator(method: Callable[..., Tree]) -> Callable[..., Tree]:
    @functools.wraps(method)
    def run(self: object, *args: object, **kwargs: object) -> Tree:
        if self not in _generators and _calls_program(self):
            _generator_for(self)
        return method(self, *args, **kwargs)

    return run


def _calls_program(model: Any) -> bool:
    """Returns whether a model may call functions of ``tf``: whether it has parts that are not Keras's own."""
    parts = [*model._flatten_layers(), *getattr(model, "operations", ())]
    return any(
        isinstance(part, keras.layers.Lambda | FunctionCall) or not type(part).__module__.startswith("keras.")
        for part in parts
    )
