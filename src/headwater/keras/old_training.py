"""Methods of models of TensorFlow 1.15's ``tf.keras`` that Keras 3 has removed: training by generators, and classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np

from headwater.keras.types import Tree

_keras: Any = keras


def add_old_methods() -> None:
    """Gives models the methods of this module. Idempotent."""
    for method in (fit_generator, evaluate_generator, predict_generator):
        setattr(_keras.Model, method.__name__, method)
    _keras.Model.reset_states = _reset_all_states
    _keras.layers.RNN.reset_states = reset_states
    for name in ("input", "output"):
        setattr(_keras.Sequential, name, property(_end(name, getattr(_keras.Sequential, name))))
    for method in (predict_classes, predict_proba):
        setattr(_keras.Sequential, method.__name__, method)


def reset_states(self: Any, states: Tree = None) -> None:
    """Sets the states of a stateful recurrent layer: to zeros, or to arrays for all states."""
    if states is None:
        self.reset_state()
        return
    for state, value in zip(_keras.tree.flatten(self.states), _keras.tree.flatten(states), strict=True):
        state.assign(value)


def _reset_all_states(self: Any) -> None:
    """Sets the states of all stateful recurrent layers to zeros."""
    for layer in self._flatten_layers():
        if isinstance(layer, _keras.layers.RNN) and layer.stateful:
            layer.reset_state()


def _end(name: str, original: property) -> Callable[[Any], Any]:
    """Returns a property of sequential models that are built, also before they are called."""

    def get(self: Any) -> Any:
        built = self._functional
        return original.__get__(self) if built is None else getattr(built, name)

    return get


def _set_workers(generator: Tree, workers: int, use_multiprocessing: bool, max_queue_size: int) -> None:
    if isinstance(generator, _keras.utils.PyDataset):
        generator.workers, generator.use_multiprocessing = max(workers, 1), use_multiprocessing
        generator.max_queue_size = max_queue_size


def fit_generator(
    self: Any,
    generator: Iterator[Tree],
    steps_per_epoch: int | None = None,
    epochs: int = 1,
    verbose: int = 1,
    callbacks: Tree = None,
    validation_data: Tree = None,
    validation_steps: int | None = None,
    validation_freq: int = 1,
    class_weight: Tree = None,
    max_queue_size: int = 10,
    workers: int = 1,
    use_multiprocessing: bool = False,
    shuffle: bool = True,
    initial_epoch: int = 0,
) -> Any:
    """Trains the model on batches of a generator; returns the history of `fit`."""
    _set_workers(generator, workers, use_multiprocessing, max_queue_size)
    return self.fit(
        generator,
        steps_per_epoch=steps_per_epoch,
        epochs=epochs,
        verbose=verbose,
        callbacks=callbacks,
        validation_data=validation_data,
        validation_steps=validation_steps,
        validation_freq=validation_freq,
        class_weight=class_weight,
        shuffle=shuffle and isinstance(generator, _keras.utils.PyDataset),
        initial_epoch=initial_epoch,
    )


def evaluate_generator(
    self: Any,
    generator: Iterator[Tree],
    steps: int | None = None,
    callbacks: Tree = None,
    max_queue_size: int = 10,
    workers: int = 1,
    use_multiprocessing: bool = False,
    verbose: int = 0,
) -> Any:
    """Returns the loss and metrics on batches of a generator."""
    _set_workers(generator, workers, use_multiprocessing, max_queue_size)
    return self.evaluate(generator, steps=steps, callbacks=callbacks, verbose=verbose)


def predict_generator(
    self: Any,
    generator: Iterator[Tree],
    steps: int | None = None,
    callbacks: Tree = None,
    max_queue_size: int = 10,
    workers: int = 1,
    use_multiprocessing: bool = False,
    verbose: int = 0,
) -> Any:
    """Returns the outputs for batches of a generator."""
    _set_workers(generator, workers, use_multiprocessing, max_queue_size)
    return self.predict(generator, steps=steps, callbacks=callbacks, verbose=verbose)


def predict_classes(self: Any, x: Tree, batch_size: int = 32, verbose: int = 0) -> Any:
    """Returns the most probable class of each example; of one output, whether it is greater than 0.5."""
    outputs = self.predict(x, batch_size=batch_size, verbose=verbose)
    return np.argmax(outputs, axis=-1) if outputs.shape[-1] > 1 else (outputs > 0.5).astype("int32")


def predict_proba(self: Any, x: Tree, batch_size: int = 32, verbose: int = 0) -> Any:
    """Returns the outputs of `predict`."""
    return self.predict(x, batch_size=batch_size, verbose=verbose)
