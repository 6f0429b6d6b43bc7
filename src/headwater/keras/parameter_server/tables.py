"""Embedding layers whose tables stay on the ``ps``: a worker finds out which rows a batch uses, and reads only these.

A layer of Keras's own, `keras.layers.Embedding`, is used as it is. While a step is traced, its ``call`` does one of two
other things: it notes the numbers it is given, or it takes its rows from those that were read. The first gives, once
compiled, an executable that computes the numbers from a batch and nothing else, whatever is in front of the layer.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import keras

_jax: Any = jax
_jnp: Any = _jax.numpy
_keras: Any = keras


class _Tracing(threading.local):
    """What the steps that this thread traces do with tables."""

    noted: dict[int, list[Any]] | None = None
    read: dict[int, tuple[Any, Any]] | None = None


_tracing = _Tracing()


def find_tables(model: Any, least_bytes: int) -> list[Any]:
    """The embedding layers of ``model`` whose tables can stay on the ``ps``.

    Those of class `keras.layers.Embedding` itself, built, trainable and of at least ``least_bytes``, without
    regularizer, constraint, LoRA or quantization, and whose table no other layer uses.
    """
    found = [layer for layer in model._flatten_layers() if type(layer) is _keras.layers.Embedding]
    tables: list[Any] = []
    for layer in found:
        plain = (
            layer.built
            and layer.trainable
            and layer.quantization_mode is None
            and not layer.lora_enabled
            and layer.embeddings_regularizer is None
            and layer.embeddings_constraint is None
        )
        if plain and 4 * layer.input_dim * layer.output_dim >= least_bytes:
            tables.append(layer)
    used = [id(variable) for layer in model._flatten_layers() for variable in layer._trainable_variables]
    return [layer for layer in tables if used.count(id(layer.embeddings)) == 1]


def take_over(layers: Sequence[Any]) -> None:
    """Has each layer's ``call`` heed `noting` and `reading`; by its number among ``layers``."""
    for number, layer in enumerate(layers):
        if not getattr(layer, "_headwater_table", False):
            object.__setattr__(layer, "_headwater_table", True)
            object.__setattr__(layer, "call", _Call(layer, number))


class _Call:
    """A layer's ``call``."""

    def __init__(self, layer: Any, number: int) -> None:
        self._layer = layer
        self._number = number
        self._call = layer.call

    def __call__(self, inputs: Any) -> Any:
        layer = self._layer
        if _tracing.noted is not None:
            numbers = _whole(inputs)
            _tracing.noted[self._number].append(numbers.reshape(-1))
            return _jnp.zeros((*numbers.shape, layer.output_dim), layer.compute_dtype)
        if _tracing.read is not None:
            numbers, rows = _tracing.read[self._number]
            return _jnp.take(rows, _jnp.searchsorted(numbers, _whole(inputs)), axis=0).astype(layer.compute_dtype)
        return self._call(inputs)


def _whole(inputs: Any) -> Any:
    numbers = _jnp.asarray(inputs)
    return numbers if _jnp.issubdtype(numbers.dtype, _jnp.integer) else numbers.astype("int32")


@contextmanager
def noting(tables: int) -> Generator[dict[int, list[Any]]]:
    """Within it, layers note the numbers they are given, by their own number, and give zeros."""
    _tracing.noted = {number: [] for number in range(tables)}
    try:
        yield _tracing.noted
    finally:
        _tracing.noted = None


@contextmanager
def reading(read: dict[int, tuple[Any, Any]]) -> Generator[None]:
    """Within it, layers take rows from ``read``: by their number, numbers of rows, ascending, and the rows."""
    _tracing.read = read
    try:
        yield
    finally:
        _tracing.read = None
