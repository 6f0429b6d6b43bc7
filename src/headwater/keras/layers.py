"""Embedding layers for tables that are too large for one machine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import jax
import jax.core
import keras
import numpy as np

from headwater.errors import FailedPreconditionError, InvalidArgumentError
from headwater.keras.embeddings.calls import traced_rows
from headwater.keras.embeddings.inference import watch_dynamic
from headwater.keras.internals import in_symbolic_scope
from headwater.ps.tables.client import TableClient
from headwater.ps.tables.protocol import eviction_of, pack_eviction
from headwater.ps.tables.requests import DividedIds, group_into_bags
from headwater.ps.updater import Array
from headwater.tables.description import TableConfig, TableStatistics
from headwater.tables.hashing import distinct
from headwater.tables.initializers import Initializer
from headwater.tables.optimizers import AnyOptimizer, GeneralOptimizer
from headwater.tables.policies import Admission, Eviction
from headwater.tables.row_formats import Format, require_format
from headwater.tables.table import COMBINERS, Keys, Table

if TYPE_CHECKING:
    from headwater.keras.types import Tree

_NAMED = {
    "uniform": Initializer(),
    "zeros": Initializer(kind="constant", a=0.0, b=0.0),
    "normal": Initializer(kind="normal", a=0.0, b=0.05),
}


@keras.saving.register_keras_serializable(package="headwater")
class DynamicEmbedding(keras.layers.Layer):
    """An embedding for ids of any kind, 64-bit integers or strings, without a vocabulary.

    A row is created when its id is first used in training. Its initial values depend on ``seed`` and the id only; the
    model's optimizer updates it. In the scope of a `headwater.keras.ParameterServerStrategy` the rows are stored on the
    ``ps`` tasks, partitioned by id, and only the rows of a batch are sent. A saved model contains all rows, with their
    optimizer state. A model that was loaded outside of such a scope predicts and evaluates, and cannot be trained.

    The model may slice, reshape and concatenate its inputs before this layer. Ids that the model computes have 32 bits.
    For an id without a row, predictions use the initial values of its row.

    Args:
      dim: numbers in a row.
      initializer: `headwater.tables.Initializer`, or ``"uniform"`` (between -0.05 and 0.05), ``"normal"``, ``"zeros"``.
      seed: seed of the initializer, and of random admission.
      strings: whether ids are strings.
      admission: the ids that get a row, `headwater.tables.Admission`; by default all.
      eviction: the rows to remove when there are too many: `headwater.tables.LeastRecent`, `LeastFrequent` or `Age`.
      max_rows: maximum number of rows on each ``ps``.
      max_bytes: maximum size of the rows on each ``ps``, in bytes.
      memory_rows: maximum number of rows in memory on each ``ps``; further rows are stored in a file.
      folder: the folder of that file, on the machine of a ``ps``.
      saves: a folder that all tasks share. The rows are saved there after every epoch, and a restarted ``ps`` loads its
        rows from there.
      combiner: ``"sum"``, ``"mean"`` (divided by the sum of the weights) or ``"sqrtn"`` (divided by the root of the sum
        of their squares): pools the rows of ids along the last axis, on the ``ps`` if this sends fewer bytes. None: no
        pooling.
      padding: the id that means "no id", for pooled rows.
      wire: format of numbers between a worker and the ``ps``: ``"float32"``; ``"bfloat16"``, with half the bytes; or
        ``"int8"``, with one byte for each number of a row (gradients as bfloat16).

    Inputs: ids of any shape. With ``combiner``, bags of any number of ids are possible: an input of shape ``(None,)``
    for which a dataset has sparse or ragged components, or an array has sequences. ``weights=`` are the weights of the
    ids, by default 1: an input of the model with the same shape, or bags of the same sizes. They have no gradient.
    Output: ``[*ids.shape, dim]``, or with ``combiner`` ``[*ids.shape[:-1], dim]``; zeros for an empty bag.
    """

    def __init__(
        self,
        dim: int,
        *,
        initializer: Initializer | Mapping[str, Any] | str = "uniform",
        seed: int = 0,
        strings: bool = False,
        admission: Admission | Mapping[str, Any] | None = None,
        eviction: Eviction | tuple[str, int] | None = None,
        max_rows: int | None = None,
        max_bytes: int | None = None,
        memory_rows: int | None = None,
        folder: str | None = None,
        saves: str | None = None,
        combiner: str | None = None,
        padding: int | str | None = None,
        wire: Format = "float32",
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        if combiner is not None and combiner not in COMBINERS:
            raise ValueError(f"combiner is {combiner!r}, not one of {', '.join(COMBINERS)}")
        if padding is not None and combiner is None:
            raise ValueError("padding excludes ids from pooling, and requires a combiner")
        if padding is not None and isinstance(padding, str) != strings:
            raise ValueError(f"padding is {padding!r}, and ids are {'strings' if strings else 'integers'}")
        if isinstance(initializer, str):
            if initializer not in _NAMED:
                raise ValueError(f"initializer is {initializer!r}, not one of {', '.join(_NAMED)}")
            initializer = _NAMED[initializer]
        elif isinstance(initializer, Mapping):
            initializer = Initializer(**initializer)
        if isinstance(admission, Mapping):
            admission = Admission(**admission)
        if isinstance(eviction, (tuple, list)):
            eviction = eviction_of(eviction)
        #: The configuration of its table, without the optimizer, which is the model's.
        self.config = TableConfig(
            dim=dim,
            initializer=initializer,
            seed=seed,
            strings=strings,
            admission=admission or Admission(),
            eviction=eviction,
            max_rows=max_rows,
            max_bytes=max_bytes,
            memory_rows=memory_rows,
            folder=folder,
        )
        self.saves = saves
        self.combiner = combiner
        self.padding = padding
        self.wire: Format = require_format(wire, "wire")
        #: Client of the rows' servers; None if the rows are in this process.
        self.client: TableClient | None = None
        self.table_name = self.name
        #: Whether this process has rows that were not sent to the servers yet.
        self.changed = False
        self._own: Table | None = None
        self._slots: tuple[float, ...] = ()
        self._convert_input_args = False
        self._allow_non_tensor_positional_args = True
        watch_dynamic()

    def build(self, input_shape: object = None) -> None:
        del input_shape
        self.built = True

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        return (*(input_shape if self.combiner is None else input_shape[:-1]), self.config.dim)

    def compute_output_spec(self, inputs: Tree, weights: Tree = None, **_: object) -> keras.KerasTensor:
        self._require_fit(inputs, weights)
        return keras.KerasTensor(self.compute_output_shape(inputs.shape), dtype=self.compute_dtype)

    def _require_fit(self, ids: Tree, weights: Tree) -> None:
        """Raises ValueError for weights without a pooling, or of another shape than the ids."""
        if weights is None:
            return
        if self.combiner is None:
            raise ValueError(f"layer {self.name!r}: weights of ids require a combiner")
        if len(ids.shape) != len(weights.shape) or any(
            None not in pair and pair[0] != pair[1] for pair in zip(ids.shape, weights.shape, strict=True)
        ):
            raise ValueError(
                f"layer {self.name!r}: ids and weights must have the same shape, not {tuple(ids.shape)} and "
                f"{tuple(weights.shape)}"
            )

    def call(self, inputs: Tree, weights: Tree = None) -> Tree:
        self._require_fit(inputs, weights)
        ids_and_rows = traced_rows(self, inputs, self.config.dim, pools=self.combiner is not None, weights=weights)
        if ids_and_rows is not None:
            return ids_and_rows[1]
        if in_symbolic_scope():
            return keras.ops.zeros(self.compute_output_shape(inputs.shape), self.compute_dtype)
        if isinstance(inputs, jax.core.Tracer):
            raise FailedPreconditionError(
                f"layer {self.name!r} was called within a compiled function that is not the model's own, where its "
                "rows are not available. Call the model, or use its methods fit, evaluate and predict"
            )
        ids = np.asarray(inputs)
        if self.combiner is None:
            keys = self.divide(ids)
        else:
            of_ids = None if weights is None else np.asarray(weights).reshape(-1)
            keys = self.divide_bags(ids.reshape(-1), [ids.shape], None, of_ids)
        rows = self.own_rows(keys) if self.client is None else self.client.rows({self.table_name: keys}, training=False)
        found_rows: object = rows[self.table_name] if isinstance(rows, dict) else rows
        if self.combiner is None:
            found_rows = found_rows[keys.inverse]
        return keras.ops.convert_to_tensor(found_rows.reshape(self.compute_output_shape(ids.shape)), self.compute_dtype)

    def get_config(self) -> dict[str, object]:
        config = self.config
        plain = ("dim", "seed", "strings", "max_rows", "max_bytes", "memory_rows", "folder")
        return {
            **super().get_config(),
            **{name: getattr(config, name) for name in plain},
            "initializer": asdict(config.initializer),
            "admission": asdict(config.admission),
            "eviction": pack_eviction(config.eviction),
            "saves": self.saves,
            "combiner": self.combiner,
            "padding": self.padding,
            "wire": self.wire,
        }

    # Where the rows are -----------------------------------------------------------------------------------------------

    def connect(self, client: TableClient, name: str, optimizer: AnyOptimizer) -> None:
        """Opens the table ``name`` of ``client``, and uses its rows from now on."""
        client.open(name, self.table_config(optimizer), self.saves, wire=self.wire)
        self.client, self.table_name, self._slots = client, name, optimizer.slots

    def statistics(self) -> dict[str, TableStatistics]:
        """Statistics of the rows on each ``ps``, by task name; empty if the rows are in this process."""
        return {} if self.client is None else self.client.statistics(self.table_name)

    def table_config(self, optimizer: AnyOptimizer) -> TableConfig:
        """The configuration of the table with an optimizer."""
        return replace(self.config, optimizer=optimizer)

    def send_loaded_rows(self) -> None:
        """Sends the rows that were loaded into this process, if any, to the servers."""
        if not self.changed:
            return
        assert self.client is not None
        store: dict[str, Any] = {}
        self._store_own(store)
        values, slots = store["values"], self._slots
        if values.shape[1] != self.config.dim * (1 + len(slots)):
            # The rows were trained by another optimizer; this one cannot use its state and starts with initial slots.
            state = np.repeat(np.array(slots, np.float32), self.config.dim)
            rows = values[:, : self.config.dim]
            values = np.concatenate([rows, np.broadcast_to(state, (len(rows), len(state)))], axis=1)
        self.client.replace(self.table_name, int(store["step"]), store["words"], values)
        self.forget()

    def forget(self) -> None:
        """Drops rows that were loaded into this process."""
        self.changed = False
        if self._own is not None:
            self._own.close()
            self._own = None

    def divide(self, ids: object) -> DividedIds:
        """Returns the distinct ids, divided by the ``ps`` that hold their rows."""
        if self.client is not None:
            return self.client.divide(self.table_name, ids)
        keys = self._own_table().keys(np.asarray(ids).reshape(-1))
        first, inverse = distinct(keys.words, keys.checks)
        keys = keys[first]
        return DividedIds(words=keys.words, checks=keys.checks, inverse=inverse, bounds=np.array([0, len(keys)]))

    def divide_bags(
        self, ids: Array, shapes: Sequence[tuple[int, ...]], offsets: Array | None, weights: Array | None
    ) -> DividedIds:
        """Like `divide`, for rows that are pooled: the result also has the bags, which are the sets of rows that are
        pooled into one.

        Args:
          ids: the ids of all calls, [n].
          shapes: the shape of the ids, or of their codes, in each call.
          offsets: the start of the ids of each code, and the end of the last one; None if each code is an id.
          weights: the weights of the ids, [n], or None.
        """
        assert self.combiner is not None
        for shape in shapes:
            if not shape:
                raise InvalidArgumentError(f"layer {self.name!r} pools along the last axis, but the ids have no axes")
        sizes = np.concatenate([np.full(math.prod(shape[:-1]), shape[-1], np.int64) for shape in shapes])
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
        if offsets is not None:
            ends = offsets[ends]
        if self.padding is not None:
            is_id = np.asarray(ids != self.padding)
            ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(is_id)])[ends]
            ids = ids[is_id]
            weights = None if weights is None else weights[is_id]
        return group_into_bags(self.divide(ids), ends, self.combiner, weights, f"layer {self.name!r}")

    def own_rows(self, keys: DividedIds) -> Array:
        """Returns the rows of distinct ids, or the pooled rows of bags, from the table in this process."""
        rows = self._own_table().look_up(Keys(keys.words, keys.checks), training=False)
        return rows if keys.bags is None else keys.pool(rows)

    def _own_table(self, slots: int = 0, step: int = 0) -> Table:
        if self._own is None:
            config = TableConfig(
                dim=self.config.dim,
                initializer=self.config.initializer,
                seed=self.config.seed,
                strings=self.config.strings,
                optimizer=GeneralOptimizer(apply=_refuse, slots=(0.0,) * slots),
            )
            self._own = Table(self.name, config)
            self._own.restore_progress(step, 0.0, self._own.rates)
        return self._own

    # Saving -----------------------------------------------------------------------------------------------------------

    def save_own_variables(self, store: Any) -> None:
        if self.client is None:
            self._store_own(store)
            return
        parts = list(self.client.all_rows(self.table_name))
        store["step"] = np.array(max(step for step, _, _ in parts), np.int64)
        store["words"] = np.concatenate([words for _, words, _ in parts])
        store["values"] = np.concatenate([values for _, _, values in parts])

    def _store_own(self, store: Any) -> None:
        table = self._own_table()
        parts = [table.shard_records(shard) for shard in range(table.config.shards)]
        store["step"] = np.array(table.step, np.int64)
        store["words"] = np.concatenate([words for words, _ in parts])
        store["values"] = np.concatenate([values for _, values in parts])

    def load_own_variables(self, store: Any) -> None:
        words, values = np.asarray(store["words"], np.int64), np.asarray(store["values"], np.float32)
        dim = self.config.dim
        if words.shape[1] != self.config.words or values.shape[1] % dim:
            raise InvalidArgumentError(
                f"layer {self.name!r} has {'strings' if self.config.strings else 'integers'} for ids and {dim} numbers "
                f"in a row; the saved rows have {'strings' if words.shape[1] == 3 else 'integers'} and "
                f"{values.shape[1]} numbers with the optimizer's state"
            )
        self.forget()
        self._own_table(values.shape[1] // dim - 1, int(np.asarray(store["step"]))).store_records(words, values)
        self.changed = True


def _refuse(*_: object) -> Any:
    raise FailedPreconditionError("rows that are in this process are not trained")
