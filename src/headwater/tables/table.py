"""A dynamic table of rows: the engine, for use within one process by any number of threads.

    table = Table("users", TableConfig(dim=16, optimizer=Adagrad(0.05)))
    rows = table.look_up(ids)  # [n, 16]; a key's row is created at its first use
    table.update(ids, gradients)  # gradients of one key are added first

Calls are synchronous. A call with many keys is atomic with respect to saves: a save has all of its changes or none.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from headwater.errors import FailedPreconditionError, InvalidArgumentError, ResourceExhaustedError
from headwater.tables import fields as f
from headwater.tables import kernels, pooling, row_access, shard_kernels, together
from headwater.tables.compiled import Reals, Words
from headwater.tables.description import TableConfig, TableStatistics
from headwater.tables.hashing import add_up, distinct, string_keys
from headwater.tables.initializers import KINDS
from headwater.tables.optimizers import HISTORY, GeneralOptimizer, step_rate
from headwater.tables.row_eviction import RowEvictor
from headwater.tables.shards import Gate, Shards

if TYPE_CHECKING:
    import numpy.typing as npt


COMBINERS: Final = ("sum", "mean", "sqrtn")
_NO_WORDS: Words = np.empty(0, np.int64)
_NO_REALS: Reals = np.empty(0, np.float32)


class Keys:
    """Checked ids: the word of each key and, if keys are strings, a second word (``checks``)."""

    __slots__ = ("checks", "words")

    def __init__(self, words: Words, checks: Words) -> None:
        self.words: Words = words
        self.checks: Words = checks

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, which: Words) -> Keys:
        return Keys(self.words[which], self.checks[which] if len(self.checks) else self.checks)


class Table:
    """A table of rows.

    >>> import numpy as np
    >>> from headwater.tables import SGD, Table, TableConfig
    >>> users = Table("users", TableConfig(dim=2, optimizer=SGD(0.5)))
    >>> before = users.look_up([7, 11])
    >>> users.update([7, 7], np.ones((2, 2), np.float32))  # gradients of one key are added
    >>> (users.look_up([7, 11]) - before).tolist()
    [[-1.0, -1.0], [0.0, 0.0]]

    Args:
      name: the name of the table, for errors.
      config: the configuration.
      task: the name of the task, for errors.

    Attributes:
      name, config: see the arguments.
      gate: shared by calls that change rows; the start of a save is exclusive.
    """

    def __init__(self, name: str, config: TableConfig, *, task: str = "this process") -> None:
        self.name = name
        self.config = config
        self.task = task
        self.gate: Gate = Gate()
        if config.folder is not None and not os.path.isdir(config.folder):
            raise InvalidArgumentError(
                f"{self._where()}: there is no folder {config.folder!r} for rows beyond memory_rows"
            )
        optimizer = config.optimizer
        shards = config.shards
        shape = np.zeros(row_access.SHAPE_SIZE, np.int64)
        shape[row_access.DIM] = config.dim
        shape[row_access.WIDTH] = config.width
        shape[row_access.WORDS] = config.words
        shape[row_access.SHARDS] = shards
        shape[row_access.LIMIT] = config.row_limit or 1 << 62
        shape[row_access.SEED] = np.int64(np.uint64(config.seed & ((1 << 64) - 1)).view(np.int64))
        shape[row_access.INITIALIZER] = KINDS[config.initializer.kind]
        shape[row_access.ADMISSION] = config.admission.kind
        shape[row_access.SIGHTINGS] = config.admission.sightings
        shape[row_access.OPTIMIZER] = optimizer.kind
        shape[row_access.EXACT] = optimizer.exact
        self._shape = shape
        first = (config.initializer.a, config.initializer.b, config.admission.probability, 0.0)
        self._reals = np.array([*first, *optimizer.slots], np.float64)
        self._hyper = np.array(optimizer.hyper, np.float64)
        self._rates = np.zeros(HISTORY, np.float64)
        self._rate = optimizer.learning_rate
        self._step = 0
        # Guards `_step` and `_rates`, as several threads may begin an update at the same time.
        self._counting = threading.Lock()
        # Held during an update by a `GeneralOptimizer`, whose rows are not locked while Python computes.
        self._in_python = threading.Lock()
        # Limits of the whole table, divided evenly: keys are hashed to shards, so the shards have similar sizes.
        memory_rows = None if config.memory_rows is None else max(1, config.memory_rows // shards)
        candidates = max(64, config.admission.candidates // shards) if config.admission.kind == 1 else 0
        self.shards: Shards = Shards(shape, memory_rows=memory_rows, folder=config.folder, candidates=candidates)
        self._evictor = RowEvictor(self.shards, config.eviction) if config.eviction is not None else None
        self._closed = False
        # The handle contains only the addresses of these arrays, so this object has to keep references to all of them.
        arrays = self.shards.directory, shape, self._reals, self._hyper, self._rates
        #: The argument of compiled functions, see `headwater.tables.row_access`.
        self.handle: Words = np.array([*(array.ctypes.data for array in arrays), 0], np.int64)
        #: Whether a delta may follow the last save.
        self.delta_may_follow: bool = False
        #: The folder of the last save.
        self.saved_in: str = ""

    def close(self) -> None:
        """Frees the memory; no call may follow."""
        with self.gate.alone():
            self._closed = True
            self.shards.close()

    @property
    def step(self) -> int:
        """The number of updates so far."""
        return self._step

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next update."""
        return self._rate

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        if not (math.isfinite(rate) and rate >= 0):
            raise InvalidArgumentError(f"table {self.name!r}: the learning rate cannot be {rate}")
        self._rate = rate

    def __len__(self) -> int:
        return self.shards.rows

    def _where(self) -> str:
        return f"table {self.name!r} on {self.task}"

    # Keys -------------------------------------------------------------------------------------------------------------

    def keys(self, ids: Keys | npt.ArrayLike) -> Keys:
        """Checks ids of rank 1.

        Raises:
          InvalidArgumentError: the ids are of another rank or type.
        """
        if isinstance(ids, Keys):
            return ids
        array = np.asarray(ids)
        if array.ndim != 1:
            raise InvalidArgumentError(
                f"{self._where()}: ids have rank {array.ndim}, shape {array.shape}; they must have rank 1"
            )
        if self.config.strings:
            try:
                if array.dtype.kind not in "OSU":
                    raise TypeError(f"keys are of type {array.dtype}, not text")
                words = string_keys(array)
            except TypeError as error:
                raise InvalidArgumentError(f"{self._where()} has strings for keys: {error}") from error
            return Keys(np.ascontiguousarray(words[:, 0]), np.ascontiguousarray(words[:, 1]))
        if array.dtype.kind not in "iu" and array.size:
            raise InvalidArgumentError(f"{self._where()}: ids are of type {array.dtype}; they must be whole numbers")
        return Keys(np.ascontiguousarray(array.astype(np.int64, copy=False)), _NO_WORDS)

    def _key_named(self, word: int) -> str:
        return f"key {word}" if not self.config.strings else f"key with hash {word:#x}"

    # Reading ----------------------------------------------------------------------------------------------------------

    def look_up(self, ids: Keys | npt.ArrayLike, *, training: bool = True) -> Reals:
        """Returns the rows of ids, [n, dim].

        Args:
          ids: the ids, [n]; keys may be repeated.
          training: whether to count the use, and to create rows for keys without one. If False, the table is unchanged,
            and the result has the initial row of such a key.

        Raises:
          InvalidArgumentError: the ids have the wrong rank or type.
          ResourceExhaustedError: the table is full and evicts no rows, or there is no memory.
        """
        keys = self.keys(ids)
        rows = together.look_up((self,), keys.words, keys.checks, (len(keys),), training=training)
        return rows.reshape(-1, self.config.dim)

    def pool(
        self,
        ids: npt.ArrayLike,
        offsets: Words,
        *,
        combiner: str = "sum",
        weights: Reals | None = None,
        training: bool = True,
    ) -> Reals:
        """Returns the pooled rows of bags of ids, [bags, dim].

        Args:
          ids: the ids of all bags, one after the other, [n].
          offsets: the start of each bag, and the end of the last one, [bags + 1].
          combiner: ``"sum"``, ``"mean"`` or ``"sqrtn"``.
          weights: the weights of the ids, [n]; all 1 if None.
          training: as for `look_up`. A repeated key counts as one use.

        Raises:
          InvalidArgumentError: an argument is invalid.
        """
        keys, kind, weights = self._bags(ids, offsets, combiner, weights)
        first, inverse = distinct(keys.words, keys.checks)
        rows = self.look_up(keys[first], training=training)
        return pooling.pool(rows, inverse, np.asarray(offsets, np.int64), weights, kind)

    def _bags(
        self, ids: npt.ArrayLike, offsets: Words, combiner: str, weights: Reals | None
    ) -> tuple[Keys, int, Reals]:
        keys = self.keys(ids)
        if combiner not in COMBINERS:
            raise InvalidArgumentError(f"{self._where()}: combiner is {combiner!r}, not one of {', '.join(COMBINERS)}")
        ends = np.asarray(offsets)
        if ends.ndim != 1 or len(ends) == 0 or ends[0] != 0 or ends[-1] != len(keys) or np.any(np.diff(ends) < 0):
            raise InvalidArgumentError(
                f"{self._where()}: offsets must increase from 0 to the number of ids, {len(keys)}"
            )
        if weights is None:
            return keys, COMBINERS.index(combiner), _NO_REALS
        checked = np.ascontiguousarray(weights, np.float32)
        if checked.shape != (len(keys),):
            raise InvalidArgumentError(
                f"{self._where()}: weights have shape {checked.shape}; there are {len(keys)} ids"
            )
        return keys, COMBINERS.index(combiner), checked

    # Changing ---------------------------------------------------------------------------------------------------------

    def update(self, ids: Keys | npt.ArrayLike, gradients: npt.ArrayLike) -> None:
        """Performs one update. Gradients of equal keys are summed first.

        Args:
          ids: the ids, [n].
          gradients: the gradients, [n, dim].

        Raises:
          InvalidArgumentError: an argument is invalid, or a gradient is not finite; the table was not changed.
          ResourceExhaustedError: see `look_up`.
        """
        keys = self.keys(ids)
        values = np.ascontiguousarray(gradients, np.float32)
        if values.shape != (len(keys), self.config.dim):
            raise InvalidArgumentError(
                f"{self._where()}: gradients have shape {values.shape}; {len(keys)} ids need "
                f"({len(keys)}, {self.config.dim})"
            )
        # Check before any row changes: otherwise a bad gradient could leave an update applied to a part of its rows.
        bad = int(kernels.all_finite(values))
        if bad >= 0:
            raise InvalidArgumentError(
                f"{self._where()}: the gradient of {self._key_named(int(keys.words[bad]))} is not finite"
            )
        first, inverse = distinct(keys.words, keys.checks)
        if len(first) < len(keys):
            values = add_up(values, inverse, len(first))
            keys = keys[first]
        self.apply(keys, values)

    def update_pooled(
        self,
        ids: npt.ArrayLike,
        offsets: Words,
        gradients: npt.ArrayLike,
        *,
        combiner: str = "sum",
        weights: Reals | None = None,
    ) -> None:
        """Performs one update, from gradients of the result of `pool`, [bags, dim]."""
        keys, kind, weights = self._bags(ids, offsets, combiner, weights)
        values = np.ascontiguousarray(gradients, np.float32)
        if values.shape != (len(offsets) - 1, self.config.dim):
            raise InvalidArgumentError(
                f"{self._where()}: gradients of {len(offsets) - 1} bags have shape {values.shape}"
            )
        first, inverse = distinct(keys.words, keys.checks)
        ends = np.asarray(offsets, np.int64)
        self.update(keys[first], pooling.pool_gradients(values, inverse, ends, weights, kind, len(first)))

    def apply(self, keys: Keys, gradients: Reals) -> None:
        """Performs one update of distinct keys, with gradients that were checked."""
        if self.config.optimizer.kind >= 0:
            together.apply((self,), keys.words, keys.checks, (len(keys),), gradients)
            return
        with self.gate.shared():
            self.require_open()
            self._apply_in_python(keys, gradients, self.count_update())

    def count_update(self) -> int:
        """Counts an update and records its learning-rate factor; the caller is inside the gate.

        Returns the number of the update, from 1.
        """
        with self._counting:
            self._step = step = self._step + 1
            self._rates[step % HISTORY] = step_rate(self.config.optimizer, self._rate, step)
        return step

    def _apply_in_python(self, keys: Keys, gradients: Reals, step: int) -> None:
        optimizer, rate = self.config.optimizer, self._rate
        assert isinstance(optimizer, GeneralOptimizer)
        with self._in_python:  # two concurrent updates could read the same values of a row, and one would be lost
            records, known = self.read_records(keys)
            if not known.all():
                # With an admission policy, only lookups for training admit keys, so gradients of other keys are
                # dropped.
                if self.config.admission.kind == 0:
                    new = keys[np.flatnonzero(~known)]
                    together.look_up_inside((self,), new.words, new.checks, (len(new),), (step - 1,), True)
                    records, known = self.read_records(keys)
                which = np.flatnonzero(known)
                keys, gradients, records = keys[which], gradients[which], records[which]
            dim = self.config.dim
            parts = [np.ascontiguousarray(records[:, at : at + dim]) for at in range(0, self.config.width, dim)]
            rows, state = optimizer.apply(parts[0], parts[1:], gradients, step, rate)
            changed = np.concatenate([rows, *state], axis=1, dtype=np.float32)
            if changed.shape != records.shape:
                raise InvalidArgumentError(
                    f"{self._where()}: the optimizer returned records of shape {changed.shape[1:]}, not "
                    f"{records.shape[1:]}"
                )
            self.write_records(keys, changed)

    # Whole records ----------------------------------------------------------------------------------------------------

    def read_records(self, keys: Keys) -> tuple[Reals, NDArray[np.bool_]]:
        """Returns rows with their optimizer's state, [n, width] (missing rows: zeros), and whether each row exists."""
        out = np.zeros((len(keys), self.config.width), np.float32)
        known = np.zeros(len(keys), np.bool_)
        self._run(
            keys,
            lambda order, cursor, stop: kernels.read_records(
                self.shards.directory, self._shape, keys.words, keys.checks, order, cursor, stop, out, known
            ),
        )
        return out, known

    def write_records(self, keys: Keys, records: Reals, uses: Words = _NO_WORDS) -> None:
        """Stores rows with their optimizer's state. Creates missing rows, even for keys that are not admitted."""
        self._run(
            keys,
            lambda order, cursor, stop: kernels.write_records(
                self.shards.directory,
                self._shape,
                self._reals,
                keys.words,
                keys.checks,
                order,
                cursor,
                stop,
                records,
                uses,
                self._step,
            ),
        )

    def shard_records(self, s: int) -> tuple[Words, Reals]:
        """Returns all rows of one shard.

        Returns:
          The words (key, use and, if keys are strings, second word), [n, words]; and the values with the optimizer's
          state, [n, width].
        """
        with self.gate.shared():
            self.require_open()
            with self.shards.locked(s) as d:
                meta = shard_kernels.read_meta(d, self.config.words, int(d[f.ROWS]))
            # The lock is released here, because `read_records` acquires it again. A row that is removed in between is
            # not `known`.
            words = meta[(meta[:, 1] >> f.COUNT_SHIFT) & f.COUNT_MASK > 0]
            records, known = self.read_records(self.keys_of(words))
        return words[known], records[known]

    def store_records(self, words: Words, records: Reals) -> None:
        """Stores rows in the form of `shard_records`.

        Raises:
          InvalidArgumentError: the arrays are of another shape.
          ResourceExhaustedError: the table is full.
        """
        count, config = len(words), self.config
        if words.shape != (count, config.words) or records.shape != (count, config.width):
            raise InvalidArgumentError(
                f"{self._where()} has rows of {config.words} words and {config.width} numbers, but received rows of "
                f"shapes {words.shape[1:]} and {records.shape[1:]}"
            )
        with self.gate.shared():
            self.require_open()
            uses = np.ascontiguousarray(words[:, 1])
            self.write_records(self.keys_of(words), np.ascontiguousarray(records, np.float32), uses)

    def keys_of(self, words: Words) -> Keys:
        """Returns the keys in the words from `shard_records`."""
        checks = words[:, 2] if self.config.strings else words[:0, 0]
        return Keys(np.ascontiguousarray(words[:, 0]), np.ascontiguousarray(checks))

    def assign(self, ids: Keys | npt.ArrayLike, rows: npt.ArrayLike) -> None:
        """Sets rows [n, dim] of distinct ids, and resets their optimizer's state."""
        keys = self.keys(ids)
        values = np.asarray(rows, np.float32)
        if values.shape != (len(keys), self.config.dim):
            raise InvalidArgumentError(
                f"{self._where()}: rows have shape {values.shape}; {len(keys)} ids need "
                f"({len(keys)}, {self.config.dim})"
            )
        state = np.repeat(np.array(self.config.optimizer.slots, np.float32), self.config.dim)
        records = np.concatenate([values, np.broadcast_to(state, (len(keys), len(state)))], axis=1)
        with self.gate.shared():
            self.require_open()
            self.write_records(keys, np.ascontiguousarray(records))

    def restore_progress(self, step: int, rate: float, rates: NDArray[np.float64]) -> None:
        """Restores the number of updates ``step``, the learning rate, and the factors of past updates, see `rates`."""
        self._step = step
        self._rate = rate
        self._rates[:] = rates

    @property
    def rates(self) -> NDArray[np.float64]:
        """Learning-rate factors of the last updates: the factor of update n is at n modulo `HISTORY`."""
        return self._rates

    # Removing ---------------------------------------------------------------------------------------------------------

    def sweep(self) -> int:
        """Removes rows that have expired by the eviction policy; returns their number."""
        eviction = self.config.eviction
        if eviction is None:
            return 0
        removed = 0
        with self.gate.shared():
            self.require_open()
            for s in range(len(self.shards)):
                with self.shards.locked(s) as d:
                    rows, counts, steps = self.shards.uses(d)
                    gone = rows[eviction.expired(counts, steps, self._step)]
                    self.shards.remove(s, gone)
                removed += len(gone)
        return removed

    def remove(self, ids: Keys | npt.ArrayLike) -> int:
        """Removes existing rows of distinct ids; returns their number."""
        keys = self.keys(ids)
        removed = 0
        with self.gate.shared():
            self.require_open()
            for s in range(len(self.shards)):
                with self.shards.locked(s):
                    rows = shard_kernels.rows_of(self.shards.directory, s, self._shape, keys.words, keys.checks)
                    self.shards.remove(s, rows)
                removed += len(rows)
        return removed

    def clear(self) -> None:
        """Removes all rows, and resets the number of updates to 0."""
        with self.gate.alone():
            self.require_open()
            self.shards.clear()
            if self._evictor is not None:
                self._evictor.clear()
            self._step = 0
            self.delta_may_follow = False

    # Calls of compiled functions --------------------------------------------------------------------------------------

    def require_open(self) -> None:
        """Raises FailedPreconditionError if the table was closed."""
        if self._closed:
            raise FailedPreconditionError(f"{self._where()} is closed")

    def _run(self, keys: Keys, call: Callable[[Words, Words, Words], int]) -> None:
        together.finish((self,), keys.words, np.array([len(keys)], np.int64), call)

    def make_space(self, words: Words, first: int, count: int) -> None:
        """Evicts rows of a full table, so that there is room for key number ``first`` and, if possible, ``count`` keys.

        Raises:
          ResourceExhaustedError: the table evicts no rows.
        """
        limit = self.config.row_limit
        assert limit is not None
        if self.shards.rows >= limit:
            self._evict(words, first, count)

    def make_room(self, keys: Keys, gone: list[Words], *, looks_up: bool) -> None:
        """Evicts rows, so that there is room for all rows that the next call with these keys may create. Meanwhile,
        other threads may only read the table.

        Args:
          keys: the keys of the call.
          gone: a list to which the keys of removed rows, [n, 2], are appended, even if the call then fails.
          looks_up: whether the call is a lookup for training, see `look_up`; otherwise all keys get rows.

        Raises:
          ResourceExhaustedError: the table evicts no rows, or its maximum is less than the required number.
        """
        limit, shards = self.config.row_limit, self.shards
        # The common case, without a search for each key: there is room even if all keys are new.
        if limit is None or shards.rows + len(keys) <= limit:
            return
        shards.on_remove = gone.append
        try:
            # Repeat, because an eviction removes only a small part of the rows. If it removes rows of this call's keys,
            # these rows have to be created again, so count the required rows each time.
            while True:
                wanted, first = shard_kernels.rows_to_make(
                    shards.directory, self._shape, self._reals, keys.words, keys.checks, self._step, looks_up
                )
                if shards.rows + wanted <= limit:
                    return
                if wanted > limit and self._evictor is not None:
                    raise ResourceExhaustedError(
                        f"{self._where()} may have {limit} rows, and one call needs {wanted} new rows. Raise max_rows "
                        "or max_bytes, or use smaller batches"
                    )
                self._evict(keys.words, first, shards.rows + wanted - limit)
        finally:
            shards.on_remove = None

    def _evict(self, words: Words, first: int, count: int) -> None:
        if self._evictor is None:
            limit = self.config.row_limit
            raise ResourceExhaustedError(
                f"{self._where()} is full: it has {len(self)} rows of at most {limit}, and "
                f"{self._key_named(int(words[first]))} needs one more. Raise max_rows or max_bytes, or give the table "
                "an eviction policy"
            )
        self._evictor.make_space(count, self._step)

    # Status -----------------------------------------------------------------------------------------------------------

    def statistics(self) -> TableStatistics:
        """Returns statistics; while other threads use the table, the numbers may be of slightly different moments."""
        shards = self.shards
        file_bytes = shards.nbytes((f.COLD,))
        cold = np.maximum(shards.directory[:-1, f.ROWS] - shards.directory[:-1, f.HOT], 0)
        rows = shards.counter(f.ROWS)
        nbytes = rows * 8 * self.config.words + (rows - int(cold.sum())) * 4 * self.config.width
        nbytes += self._evictor.nbytes if self._evictor is not None else 0
        return TableStatistics(
            rows=len(self),
            nbytes=nbytes + 4 * shards.counter(f.SLOTS),
            file_bytes=file_bytes,
            hits=shards.counter(f.HITS),
            misses=shards.counter(f.MISSES),
            made=shards.counter(f.CREATED),
            evicted=shards.counter(f.EVICTED),
            refused=shards.counter(f.REFUSED),
            dropped=shards.counter(f.DROPPED),
            step=self._step,
        )

    def hottest(self, count: int) -> list[tuple[int, int]]:
        """Returns the most used keys with their numbers of uses, most used first."""
        uses_of_keys: list[tuple[int, int]] = []
        with self.gate.shared():
            self.require_open()
            for s in range(len(self.shards)):
                with self.shards.locked(s) as d:
                    meta = shard_kernels.read_meta(d, self.config.words, int(d[f.ROWS]))
                counts = (meta[:, 1] >> f.COUNT_SHIFT) & f.COUNT_MASK
                best = np.argsort(-counts, kind="stable")[:count]
                uses_of_keys += [(int(meta[row, 0]), int(counts[row])) for row in best if counts[row]]
        return sorted(uses_of_keys, key=lambda pair: (-pair[1], pair[0]))[:count]
