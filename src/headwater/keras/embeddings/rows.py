"""The rows of a batch: finds their numbers, reads them, and passes them to a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from headwater.errors import InvalidArgumentError
from headwater.keras.embeddings.bags import Bags
from headwater.keras.embeddings.calls import Rows, patch_layers
from headwater.keras.embeddings.ids import Coded, IdFinder, Ids, Values
from headwater.keras.parameter_server.table_updates import compiled_size
from headwater.ps.updater import Array

if TYPE_CHECKING:
    from headwater.keras.types import Tree

#: Reads rows of fixed tables, given the ascending row numbers for each table.
ReadRows = Callable[[Sequence[Array]], Sequence[Array]]


@dataclass(frozen=True, kw_only=True, slots=True)
class StepInputs:
    """The inputs of a step for its embedding layers.

    Attributes:
      x: the model's inputs.
      where: `headwater.keras.embeddings.calls.Rows.where` of each layer; None for a layer whose inputs are not codes
        and whose table is in the model.
      rows: the rows of each layer whose table is not in the model. Layers with a table in the model have no entry.
      coded: for each layer, whether its inputs are codes.
      keys: the identity of the rows, for each entry of ``rows``: row numbers, or a result of `DynamicEmbedding.divide`.
    """

    x: object
    where: list[Tree]
    rows: list[Array]
    coded: tuple[bool, ...]
    keys: list[Any]


class ModelEmbeddings:
    """All embedding layers of a model.

    Args:
      model: a built Keras model.
      tables: Keras's own layers with rows that are read for each batch.
      dynamic: layers of class `headwater.keras.layers.DynamicEmbedding`.
      whole: Keras's own layers with all rows in the model; their ids are checked.
    """

    def __init__(
        self, model: object, tables: Sequence[Any] = (), dynamic: Sequence[Any] = (), whole: Sequence[object] = ()
    ) -> None:
        self.tables: list[Any] = list(tables)
        self.dynamic: list[Any] = list(dynamic)
        self._whole = list(whole)
        self.layers: list[Any] = [*self.tables, *self.dynamic, *self._whole]
        patch_layers([*self.tables, *self._whole])
        variables = [layer.embeddings for layer in self.tables]
        self._finder = IdFinder(model, self.layers, variables)

    def code(self, x: object) -> Tree:
        """Encodes a batch's inputs for a step."""
        return self._finder.code(x).x if self.layers else without_bags(x)

    def trainable(self, dense: Sequence[object]) -> list[Any]:
        """See `IdFinder.trainable`."""
        return self._finder.trainable(dense)

    def find(self, values: Values, x: object, *, training: bool, read: ReadRows | None) -> StepInputs:
        """Reads the rows of a batch.

        Args:
          values: returns the values of trainable and of other variables, see `IdFinder.find`.
          x: the model's inputs.
          training: whether new keys get rows, and uses are counted.
          read: returns rows of ``tables``.

        Raises:
          InvalidArgumentError: an id is outside its table, or of a wrong type.
        """
        if not self.layers:
            return StepInputs(x=without_bags(x), where=[], rows=[], coded=(), keys=[])
        coded = self._finder.code(x)
        ids = self._finder.find(values, coded)
        where: list[Tree] = []
        keys: list[Any] = []
        for layer, of_layer in zip(self.layers, ids, strict=True):
            if layer in self.dynamic:
                place, key = _dynamic(layer, of_layer, coded)
                keys.append(key)
            elif layer in self.tables:
                check_ids(layer, of_layer)
                place, key = _fixed(layer, of_layer, coded)
                keys.append(key)
            else:
                check_ids(layer, of_layer)
                place = coded.pools[0].values.astype(np.int32) if of_layer.codes is not None else None
            where.append(place)
        count = len(self.tables)
        rows: list[Array] = []
        if count:
            assert read is not None
            rows += read(keys[:count])
        rows += read_dynamic(self.dynamic, keys[count:], training=training)
        return StepInputs(
            x=coded.x,
            where=where,
            rows=[_fill_up(array, compiled_size(len(array)), 0) for array in rows],
            coded=coded.plan.layers,
            keys=keys,
        )

    def reads(self, where: Sequence[Tree], rows: Sequence[object], coded: Sequence[bool]) -> dict[int, Rows]:
        """Returns the argument of `headwater.keras.embeddings.calls.reading`, with which a step is traced."""
        every = [*rows, *([None] * (len(self.layers) - len(rows)))]
        return {
            id(layer): Rows(where=place, rows=array, coded=is_coded)
            for layer, place, array, is_coded in zip(self.layers, where, every, coded, strict=True)
        }


def read_dynamic(layers: Sequence[Any], keys: Sequence[Any], *, training: bool) -> list[Array]:
    """Returns the rows of dynamic tables, read in one round trip if the tables are on servers."""
    together: dict[int, tuple[Any, dict[str, Any]]] = {}
    for layer, key in zip(layers, keys, strict=True):
        if layer.client is not None:
            together.setdefault(id(layer.client), (layer.client, {}))[1][layer.table_name] = key
    rows_of: dict[int, Mapping[str, Array]] = {
        at: client.rows(divided, training=training) for at, (client, divided) in together.items()
    }
    return [
        layer.own_rows(key) if layer.client is None else rows_of[id(layer.client)][layer.table_name]
        for layer, key in zip(layers, keys, strict=True)
    ]


def check_ids(layer: keras.Layer, looked_up: Ids) -> None:
    """Raises InvalidArgumentError for an id outside of the table of one of Keras's own layers."""
    ids = looked_up.ids
    if not len(ids):
        return
    if ids.dtype.kind not in "iu":
        raise InvalidArgumentError(f"layer {layer.name!r}: ids must be whole numbers; they are of type {ids.dtype}")
    if int(ids.min()) >= 0 and int(ids.max()) < layer.input_dim:
        return
    at = int(np.flatnonzero((ids < 0) | (ids >= layer.input_dim))[0])
    raise InvalidArgumentError(
        f"layer {layer.name!r}: id {int(ids[at])} at {looked_up.place(at)} of the batch is outside the table, whose "
        f"ids are 0 to {layer.input_dim - 1}"
    )


def _fixed(layer: keras.Layer, looked_up: Ids, coded: Coded) -> tuple[Array, Array]:
    numbers, inverse = np.unique(looked_up.ids, return_inverse=True)
    if looked_up.codes is not None:
        return _by_code(looked_up.codes, inverse, coded), numbers
    return _fill_up(numbers, compiled_size(len(numbers)), layer.input_dim), numbers


def _dynamic(layer: keras.Layer, looked_up: Ids, coded: Coded) -> tuple[Array | None, object]:
    if layer.combiner is not None:
        return None, layer.divide_bags(looked_up.ids, looked_up.shapes, looked_up.offsets, looked_up.weights)
    if looked_up.codes is not None:
        divided = layer.divide(looked_up.ids)
        return _by_code(looked_up.codes, divided.inverse, coded), divided
    numbers = np.unique(looked_up.ids)
    # Distinct ids keep their order.
    return _fill_up(numbers, compiled_size(len(numbers)), np.iinfo(np.int32).max), layer.divide(numbers)


def _by_code(codes: Array, inverse: Array, coded: Coded) -> Array:
    where = np.zeros(coded.codes, np.int32)
    where[codes] = inverse
    return where


def without_bags(x: Tree) -> Tree:
    """Returns the inputs of a model without embedding layers; raises ValueError for bags."""
    if any(isinstance(leaf, Bags) for leaf in keras.tree.flatten(x)):
        raise ValueError(
            "the data have sparse or ragged components, and the model has no DynamicEmbedding that pools them. In a "
            "map, make them arrays by tf.sparse.to_dense or to_tensor"
        )
    return x


def _fill_up(array: Array, size: int, value: int) -> Array:
    if len(array) == size:
        return array
    filled = np.full((size, *array.shape[1:]), value, array.dtype)
    filled[: len(array)] = array
    return filled
