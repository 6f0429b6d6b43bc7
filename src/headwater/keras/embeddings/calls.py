"""Calls of embedding layers while a step is traced, for layers whose rows are not in the model.

Keras's own layer, `keras.layers.Embedding`, keeps its class, but its ``call`` is patched. While a step is traced, the
patched method either records the layer's ids, or returns rows that were read for the batch. In
`headwater.keras.layers.DynamicEmbedding`, ``call`` has only these two modes.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jax
import keras

if TYPE_CHECKING:
    from headwater.keras.types import Tree

_jnp = jax.numpy


@dataclass(frozen=True, kw_only=True, slots=True)
class Rows:
    """The rows of a layer in a step.

    Attributes:
      where: an array that maps ids to rows. For a layer whose inputs are codes (`headwater.keras.embeddings.ids`), it
        has the row number of each code, or without ``rows``, the id of each code. For other layers, it has the ids of
        the rows, ascending.
      rows: the rows, [n, dim]; None if the layer has its whole table.
      coded: whether the layer's inputs are codes.
      taken: number of pooled rows that the layer's calls have taken so far, in the order of the calls.
    """

    where: Tree
    rows: Any
    coded: bool
    taken: list[int] = field(default_factory=lambda: [0])

    def next_pooled_rows(self, shape: tuple[int, ...]) -> jax.Array:
        """Takes the pooled rows of a layer's next call; ``shape`` is the shape of its ids."""
        count = math.prod(shape[:-1])
        start = self.taken[0]
        self.taken[0] += count
        return _jnp.reshape(self.rows[start : start + count], (*shape[:-1], self.rows.shape[-1]))

    def look_up_rows(self, inputs: Tree) -> Tree:
        """Returns the rows of a layer's inputs, or their ids if there are no rows."""
        if self.rows is None:
            return self.where[inputs] if self.coded else inputs
        return _jnp.take(self.rows, self.where[inputs] if self.coded else _jnp.searchsorted(self.where, inputs), axis=0)


class _Tracing(threading.local):
    """This thread's mode of tracing: recorded ids, or rows to use, by the layer's `id`."""

    noted: dict[int, list[tuple[Any, Any]]] | None = None
    read: Mapping[int, Rows] | None = None


_tracing = _Tracing()


def find_tables(model: Any, least_bytes: int) -> list[object]:
    """Returns the embedding layers of ``model`` with tables that can stay on the ``ps``.

    These layers are exactly of class `keras.layers.Embedding`, built, trainable and of at least ``least_bytes``. They
    have no regularizer, constraint, LoRA or quantization, and share their table with no other layer.
    """
    tables: list[keras.Layer] = []
    for layer in plain_embeddings(model):
        plain = (
            layer.trainable
            and layer.quantization_mode is None
            and not layer.lora_enabled
            and layer.embeddings_regularizer is None
            and layer.embeddings_constraint is None
        )
        if plain and 4 * layer.input_dim * layer.output_dim >= least_bytes:
            tables.append(layer)
    used = [id(variable) for layer in model._flatten_layers() for variable in layer._trainable_variables]
    return [layer for layer in tables if used.count(id(layer.embeddings)) == 1]


def plain_embeddings(model: Any) -> list[Any]:
    """Returns the layers of ``model`` of Keras's own class `Embedding`, of any size."""
    return [layer for layer in model._flatten_layers() if type(layer) is keras.layers.Embedding and layer.built]


def patch_layers(layers: Sequence[Any]) -> None:
    """Patches the ``call`` of each layer, of Keras's own class, to support `noting` and `reading`."""
    for layer in layers:
        if not isinstance(layer.call, _Call):
            object.__setattr__(layer, "call", _Call(layer))


class _Call:
    """A layer's ``call``."""

    def __init__(self, layer: keras.Layer) -> None:
        self._layer = layer
        self._call = layer.call

    def __call__(self, inputs: Tree) -> Tree:
        ids_and_rows = traced_rows(self._layer, inputs, self._layer.output_dim)
        if ids_and_rows is None:
            return self._call(inputs)
        ids, rows = ids_and_rows
        return self._call(ids) if rows is None else rows


def traced_rows(
    layer: keras.layers.Layer, inputs: object, dim: int, *, pools: bool = False, weights: object = None
) -> tuple[Any, Any] | None:
    """Returns a layer's ids and rows while a step is traced.

    Args:
      layer: the embedding layer.
      inputs: its ids.
      dim: number of elements of a row.
      pools: whether rows are pooled: one row for all ids along the last axis.
      weights: the weights of the ids in this pooling, of the same shape, or None.

    Returns:
      The ids and the rows; None as rows if the layer must use its own table. None instead of both outside of tracing,
      or for a layer that is not in the traced model.
    """
    key = id(layer)
    if _tracing.noted is not None and key in _tracing.noted:
        ids = _whole(inputs)
        _tracing.noted[key].append((ids, None if weights is None else _jnp.asarray(weights)))
        return ids, _jnp.zeros((*(ids.shape[:-1] if pools else ids.shape), dim), layer.compute_dtype)
    if _tracing.read is not None and key in _tracing.read:
        read, ids = _tracing.read[key], _whole(inputs)
        if pools:
            return ids, read.next_pooled_rows(ids.shape).astype(layer.compute_dtype)
        embedded = read.look_up_rows(ids)
        return (embedded, None) if read.rows is None else (ids, embedded.astype(layer.compute_dtype))
    return None


def _whole(inputs: object) -> jax.Array:
    ids = _jnp.asarray(inputs)
    return ids if _jnp.issubdtype(ids.dtype, _jnp.integer) else ids.astype("int32")


@contextmanager
def noting(layers: Sequence[keras.Layer]) -> Generator[dict[int, list[tuple[Any, Any]]]]:
    """A context in which ``layers`` record their ids and return zeros. Yields, by the layer's `id`, the ids of each
    call and the weights of these ids, or None."""
    before, _tracing.noted = _tracing.noted, {id(layer): [] for layer in layers}
    try:
        yield _tracing.noted
    finally:
        _tracing.noted = before


@contextmanager
def reading(read: Mapping[int, Rows]) -> Generator[None]:
    """A context in which layers use the rows in ``read``, by the layer's `id`."""
    before, _tracing.read = _tracing.read, read
    try:
        yield
    finally:
        _tracing.read = before


def is_tracing() -> bool:
    """Returns whether this thread is within `noting` or `reading`."""
    return _tracing.noted is not None or _tracing.read is not None
