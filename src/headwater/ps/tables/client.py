"""A worker's client of embedding tables: it finds the ``ps`` of each key, and sends each ``ps`` one frame for all
tables."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from headwater.cluster.task import kinds
from headwater.cluster.task.answers import bad_header
from headwater.cluster.transport.frames import Frame
from headwater.data.io import files
from headwater.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from headwater.ps.client import ServerLink
from headwater.ps.conversation import Traffic
from headwater.ps.tables.protocol import Array, flat_rows, pack, split_array
from headwater.ps.tables.requests import Batch, DividedIds, Ids, concatenate_keys, group_into_bags
from headwater.ps.tables.rounds import Round
from headwater.ps.tables.sessions import TableSessions
from headwater.tables.compiled import Reals, Words
from headwater.tables.description import TableConfig, TableStatistics
from headwater.tables.flat import add_up, gather
from headwater.tables.hashing import owners, string_keys
from headwater.tables.kernels import all_finite
from headwater.tables.parts import Part
from headwater.tables.row_formats import Format, decode, encode, require_format
from headwater.tables.snapshots import Save, commit_parts, delete_older, next_number

_log = logging.getLogger("headwater")


#: Number of rows in a frame that replaces rows of a table on a ``ps``.
_STORED_ROWS = 1 << 16
_NO_WORDS: Words = np.empty(0, np.int64)


@dataclass(kw_only=True, slots=True)
class _Opened:
    config: TableConfig
    folder: str | None
    wire: Format = "float32"
    rate: float | None = None
    #: Folder and number of the last save by this worker.
    last_save: tuple[str, int] | None = None
    #: Bytes of the last full save, and of the deltas since.
    whole_bytes: int = 0
    delta_bytes: int = 0


class TableClient:
    """One worker's access to all embedding tables. Used by one thread at a time.

    Args:
      worker: the name of the worker.
      links: a name for messages and a route, for each ``ps``, or for each part if parts have two replicas or move.
      replicas, shards, on_handshake: see `TableSessions`.
    """

    def __init__(
        self,
        worker: str,
        links: Sequence[tuple[str, ServerLink]],
        *,
        replicas: int = 1,
        shards: int | None = None,
        on_handshake: Callable[[int, int], None] | None = None,
    ) -> None:
        self._worker = worker
        self._sessions = TableSessions(
            worker, links, self._first_words, replicas=replicas, shards=shards, on_handshake=on_handshake
        )
        self._tables: dict[str, _Opened] = {}
        self._updates = 0
        self._round: Callable[[], Round] | None = None
        self._rank = 0
        self._settled: Round | None = None
        #: The latest lookup, whose keys are reused for the gradients that follow.
        self._looked_up: Ids | None = None

    def open(self, name: str, config: TableConfig, folder: str | None = None, *, wire: Format = "float32") -> None:
        """Opens a table, and creates it on every ``ps`` that does not have it yet.

        Args:
          name: the name of the table.
          config: the table's configuration.
          folder: a folder with saves of the table. A ``ps`` that creates the table restores the rows of the latest save
            there.
          wire: encoding of the rows that are sent to this worker, see `headwater.tables.row_formats`. If it is not
            float32, the worker sends gradients as bfloat16.

        Raises:
          FailedPreconditionError: there is another table with that name.
          ValueError: there is no such encoding.
        """
        pack(config)  # raises an error here, before the table is registered, if the configuration cannot be sent
        wire = require_format(wire, "wire")
        if name in self._tables:
            if self._tables[name].config != config:
                raise FailedPreconditionError(f"table {name!r} was opened with another configuration")
            return
        self._tables[name] = _Opened(config=config, folder=folder, wire=wire)
        try:
            self._sessions.open()
        except BaseException:
            del self._tables[name]
            raise

    def close(self) -> None:
        """Closes all connections."""
        self._sessions.close()

    def set_rate(self, name: str, rate: float) -> None:
        """Sets a table's learning rate, effective from its next update."""
        self._find_table(name).rate = float(rate)

    def gather(self, present: Callable[[], Round], rank: int) -> None:
        """Gathers this worker's later updates in rounds of synchronous training; see `headwater.ps.tables.rounds`.

        Args:
          present: returns the round of the values that this worker has read.
          rank: this worker's unique number.
        """
        self._round, self._rank = present, rank

    def _named(self) -> Round | None:
        return None if self._round is None else self._round()

    def _apply_ended_rounds(self) -> None:
        """Makes every ``ps`` apply the updates of rounds that are over, before a request that names no round."""
        named = self._named()
        # SETTLE is sent once per round: after that, all earlier rounds are applied on every ps.
        if named is not None and named != self._settled:
            self._sessions.exchange([Frame(kinds.SETTLE, named) for _ in self._sessions.tasks])
            self._settled = named

    def _first_words(self) -> list[tuple[str, object, str | None]]:
        return [(name, pack(table.config), table.folder) for name, table in self._tables.items()]

    def traffic(self) -> Traffic:
        """Returns the amount of data exchanged so far."""
        return self._sessions.traffic

    # Rows -------------------------------------------------------------------------------------------------------------

    def _find_table(self, name: str) -> _Opened:
        if name not in self._tables:
            raise NotFoundError(f"there is no table {name!r}; there are {sorted(self._tables)}")
        return self._tables[name]

    def divide(self, name: str, ids: object) -> DividedIds:
        """Determines the distinct keys among the ids of a table, and the ``ps`` of each.

        Args:
          name: the name of the table.
          ids: ids of any shape.

        Raises:
          InvalidArgumentError: the ids have a different type than the table's keys.
        """
        return self._ids({name: ids}).divide(0, self._tables[name].config.strings)

    def _ids(self, ids: Mapping[str, object]) -> Ids:
        """Checks ids of several tables and computes their keys; reuses the keys of the latest lookup if the ids are
        equal."""
        names = list(ids)
        opened = [self._find_table(name) for name in names]
        arrays = [np.asarray(ids[name]) for name in names]
        shapes = [array.shape for array in arrays]
        checks = _NO_WORDS
        if any(table.config.strings for table in opened):
            both = [self._two_words(name, array) for name, array in zip(names, arrays, strict=True)]
            flat = np.concatenate([words for words, _ in both])
            checks = np.concatenate([seconds for _, seconds in both])
        else:
            for name, array in zip(names, arrays, strict=True):
                self._require_whole(name, array)
            flat = np.concatenate([array.reshape(-1) for array in arrays], dtype=np.int64, casting="unsafe")
            # Gradients usually belong to the ids of the preceding lookup. Comparing ids is cheaper than computing their
            # distinct keys.
            last = self._looked_up
            if last is not None and last.are_same(names, shapes, flat, checks):
                return last
        self._looked_up = Ids(names, shapes, flat, checks, len(self._sessions.tasks))
        return self._looked_up

    def _require_whole(self, name: str, array: Array) -> None:
        if array.dtype.kind not in "iu" and array.size:
            raise InvalidArgumentError(
                f"{self._where(name)}: ids must be whole numbers; they are of type {array.dtype}"
            )

    def _two_words(self, name: str, array: Array) -> tuple[Words, Words]:
        flat = array.reshape(-1)
        if not self._tables[name].config.strings:
            self._require_whole(name, array)
            return flat.astype(np.int64), np.zeros(len(flat), np.int64)
        try:
            if array.dtype.kind not in "OSU" and array.size:
                raise TypeError(f"they are of type {array.dtype}")
            both = string_keys(flat)
        except TypeError as error:
            raise InvalidArgumentError(f"{self._where(name)}: ids must be strings: {error}") from error
        return both[:, 0], both[:, 1]

    def look_up(self, ids: Mapping[str, object], *, training: bool = True) -> dict[str, Reals]:
        """Looks up rows of several tables, in one round trip.

        Args:
          ids: by table, of any shape.
          training: whether to count the use, and to create rows for keys without one. If False, the result has the
            initial row of such a key.

        Returns:
          The rows by table, shape ``[*ids.shape, dim]``.
        """
        if not ids:
            return {}
        batch = self._ids(ids)
        tables = [self._tables[name] for name in batch.names]
        dims = [table.config.dim for table in tables]
        forms: list[Format] = [table.wire for table in tables]
        if not flat_rows(forms, [0] * len(forms)):
            divided = {
                name: batch.divide(at, table.config.strings)
                for at, (name, table) in enumerate(zip(batch.names, tables, strict=True))
            }
            rows = self.rows(divided, training=training)
            return {
                name: rows[name].take(divided[name].inverse, axis=0).reshape(*shape, dim)
                for name, shape, dim in zip(batch.names, batch.shapes, dims, strict=True)
            }
        answers = self._request_rows(batch, training, forms, [0] * len(forms), [()] * len(self._sessions.tasks))
        arrived = [self._flat(answer, batch, task, dims) for task, answer in enumerate(answers)]
        sizes = [math.prod(shape) * dim for shape, dim in zip(batch.shapes, dims, strict=True)]
        values = np.empty(sum(sizes), np.float32)
        # One compiled call for all tables: a call for each costs more than the rows of a small batch.
        addresses = np.array([rows.ctypes.data for rows in arrived], np.int64)
        gather(addresses, batch.bounds, np.array(dims), batch.inverse, batch.ends, values)
        parts = split_array(values, sizes)
        return {
            name: part.reshape(*shape, dim)
            for name, part, shape, dim in zip(batch.names, parts, batch.shapes, dims, strict=True)
        }

    def _request_rows(
        self,
        batch: Batch,
        training: bool,
        forms: Sequence[Format],
        bags: Sequence[int],
        more: Sequence[Sequence[Array]],
    ) -> list[Frame]:
        """Sends a lookup to each ``ps`` and returns the answers.

        ``more`` has, for each ``ps``, further tensors that follow the keys in the request.
        """
        strings = [self._tables[name].config.strings for name in batch.names]
        frames: list[Frame | None] = []
        for task, tensors in enumerate(more):
            counts, sizes, keys = batch.keys(task, strings)
            header = (training, batch.names, forms, bags, counts, sizes, self._named())
            frames.append(Frame(kinds.LOOK_UP, header, [*keys, *tensors]))
        answers = self._sessions.exchange(frames)
        assert all(answer is not None for answer in answers)
        return cast("list[Frame]", answers)

    def _flat(self, answer: Frame, batch: Batch, task: int, dims: Sequence[int]) -> Reals:
        """Returns the rows, in one flat array, from an answer with a single flat tensor."""
        counts = batch.bounds[:, task + 1] - batch.bounds[:, task]
        rows, numbers = int(counts.sum()), sum(batch.element_counts(task, dims))
        if len(answer.tensors) != 1 or answer.tensors[0].dtype != np.float32 or answer.tensors[0].shape != (numbers,):
            raise bad_header(answer, self._sessions.tasks[task])
        self._sessions.traffic += Traffic(rows=rows)
        return answer.tensors[0]

    def rows(self, divided: Mapping[str, DividedIds], *, training: bool = True) -> dict[str, Reals]:
        """Looks up, in one round trip, a row for each distinct key or each bag of several tables; see `look_up`."""
        if not divided:
            return {}
        names, parts = list(divided), list(divided.values())
        forms: list[Format] = [self._tables[name].wire for name in names]
        dims = [self._tables[name].config.dim for name in names]
        pooled = [part.pools_on_server(form, dim) for part, form, dim in zip(parts, forms, dims, strict=True)]
        bags = [part.pooling_code(of) for part, of in zip(parts, pooled, strict=True)]
        batch, more = concatenate_keys(divided), self._bag_tensors(parts, pooled)
        arrived: list[list[Reals]] = [[] for _ in names]
        for task, answer in enumerate(self._request_rows(batch, training, forms, bags, more)):
            if flat_rows(forms, bags):
                flat = self._flat(answer, batch, task, dims)
                sizes = batch.element_counts(task, dims)
                for arrays, part, dim in zip(arrived, split_array(flat, sizes), dims, strict=True):
                    arrays.append(part.reshape(-1, dim))
                continue
            if len(answer.tensors) != len(names):
                raise bad_header(answer, self._sessions.tasks[task])
            for arrays, tensor, dim, form in zip(arrived, answer.tensors, dims, forms, strict=True):
                arrays.append(decode(tensor, dim, form))
            self._sessions.traffic += Traffic(rows=sum(len(tensor) for tensor in answer.tensors))
        return {
            name: part.assemble_rows(arrays, dim, of)
            for name, part, arrays, dim, of in zip(names, parts, arrived, dims, pooled, strict=True)
        }

    def _bag_tensors(self, parts: Sequence[DividedIds], pooled: Sequence[bool]) -> list[list[Array]]:
        """Returns, for each ``ps``, the tensors that describe the bags it pools."""
        return [
            [tensor for part, of in zip(parts, pooled, strict=True) if of for tensor in part.bag_tensors(task)]
            for task in range(len(self._sessions.tasks))
        ]

    def _where(self, name: str) -> str:
        return f"table {name!r}, {self._worker}"

    def bags(self, name: str, ids: object, offsets: object, combiner: str, weights: object = None) -> DividedIds:
        """Divides the ids of a table into bags; see `RowTable.pool`."""
        return group_into_bags(self.divide(name, ids), offsets, combiner, weights, self._where(name))

    def pool(self, bags: Mapping[str, DividedIds], *, training: bool = True) -> dict[str, Reals]:
        """Returns the pooled rows of the bags of each table, [bags, dim], in one round trip. See `bags`."""
        return self.rows(bags, training=training)

    def update(self, ids: Mapping[str, Any], gradients: Mapping[str, Any]) -> None:
        """Applies one update to several tables, in one round trip. Gradients of equal keys are added before they are
        sent.

        Args:
          ids: the ids of each table, of any shape.
          gradients: the gradients of each table, ``[*ids.shape, dim]``.

        Raises:
          InvalidArgumentError: gradients have the wrong shape, or a gradient is not finite.
        """
        if not ids:
            return
        batch = self._ids(ids)
        tables = [self._tables[name] for name in batch.names]
        dims = [table.config.dim for table in tables]
        values: list[Reals] = []
        for name, shape, dim in zip(batch.names, batch.shapes, dims, strict=True):
            value = np.ascontiguousarray(gradients[name], np.float32)
            if value.shape != (*shape, dim):
                raise InvalidArgumentError(
                    f"{self._where(name)}: gradients have shape {value.shape}; the ids' shape {shape} asks for "
                    f"{(*shape, dim)}"
                )
            values.append(value)
        addresses = np.array([value.ctypes.data for value in values], np.int64)
        sums, bad = add_up(addresses, batch.bounds, np.array(dims), batch.inverse, batch.ends)
        if bad >= 0:
            number = next(t for t, end in enumerate(batch.bounds[:, -1]) if bad < end)
            raise self._not_finite(batch.names[number], f"key {int(batch.words[bad])}")
        forms = self._gradient_forms(batch.names)
        by_task = split_array(
            sums, [sum(batch.element_counts(task, dims)) for task in range(len(self._sessions.tasks))]
        )
        tensors: list[list[Array]] = []
        for task, flat in enumerate(by_task):
            if flat_rows(forms, [0] * len(forms)):
                tensors.append([flat])
                continue
            sizes = batch.element_counts(task, dims)
            parts = zip(split_array(flat, sizes), dims, forms, strict=True)
            tensors.append([encode(part.reshape(-1, dim), form) for part, dim, form in parts])
        self._push(batch, forms, [0] * len(forms), tensors)

    def _not_finite(self, name: str, what: str) -> InvalidArgumentError:
        return InvalidArgumentError(f"{self._where(name)}: the gradient of {what} is not finite")

    def _gradient_forms(self, names: Sequence[str]) -> list[Format]:
        return ["float32" if self._tables[name].wire == "float32" else "bfloat16" for name in names]

    def _push(
        self,
        batch: Batch,
        forms: Sequence[Format],
        bags: Sequence[int],
        tensors: Sequence[Sequence[Array]],
        number: int | None = None,
    ) -> None:
        """Sends an update. ``tensors`` has, for each ``ps``, the tensors after the keys; ``number`` as in `push`."""
        self._updates += 1  # the number by which a ``ps`` recognizes a repeated update
        strings = [self._tables[name].config.strings for name in batch.names]
        rates = [self._tables[name].rate for name in batch.names]
        named = self._named()
        contribution = None if named is None else (*named, self._rank if number is None else number)
        frames: list[Frame | None] = []
        for task, more in enumerate(tensors):
            counts, sizes, keys = batch.keys(task, strings)
            header = (self._updates, batch.names, rates, forms, bags, counts, sizes, contribution)
            frames.append(Frame(kinds.UPDATE, header, [*keys, *more]))
        self._sessions.exchange(frames)

    def push(self, divided: Mapping[str, DividedIds], sums: Mapping[str, Reals], number: int | None = None) -> None:
        """Applies one update to several tables, with one gradient for each distinct key or for each bag.

        In a round, the gradients replace earlier gradients with the same ``number``. If ``number`` is None, it is this
        worker's number.

        Raises:
          InvalidArgumentError: a gradient is not finite, or the number of gradients is wrong.
        """
        if not divided:
            return
        names, parts = list(divided), list(divided.values())
        forms = self._gradient_forms(names)
        pooled: list[bool] = []
        to_send: list[list[Reals]] = []
        for name, part, form in zip(names, parts, forms, strict=True):
            dim, gradients = self._tables[name].config.dim, np.ascontiguousarray(sums[name], np.float32)
            if gradients.shape != (len(part), dim):
                raise InvalidArgumentError(
                    f"{self._where(name)}: gradients have shape {gradients.shape}, not {(len(part), dim)}"
                )
            bad = int(all_finite(gradients))
            # Check here and not on the ``ps``: no part of the update has been sent yet.
            if bad >= 0:
                raise self._not_finite(name, f"bag {bad}" if part.bags is not None else f"key {int(part.words[bad])}")
            pooled.append(part.pools_on_server(form, dim))
            to_send.append(part.gradients(gradients, pooled[-1]))
        bags = [part.pooling_code(of) for part, of in zip(parts, pooled, strict=True)]
        tensors = self._bag_tensors(parts, pooled)
        for task, more in enumerate(tensors):
            mine = [by_task[task] for by_task in to_send]
            if flat_rows(forms, bags):
                more.append(np.concatenate([rows.reshape(-1) for rows in mine]))
            else:
                more += [encode(rows, form) for rows, form in zip(mine, forms, strict=True)]
        self._push(concatenate_keys(divided), forms, bags, tensors, number)

    # All rows ---------------------------------------------------------------------------------------------------------

    def all_rows(self, name: str) -> Generator[tuple[int, Words, Reals]]:
        """Yields all rows, one shard of a ``ps`` at a time, as (number of updates made by the ``ps``, words, values);
        for words and values see `headwater.tables.Table.shard_records`."""
        self._find_table(name)
        self._apply_ended_rounds()
        for index, task in enumerate(self._sessions.tasks):
            shard, shards = 0, 1
            while shard < shards:
                frames: list[Frame | None] = [None] * len(self._sessions.tasks)
                frames[index] = Frame(kinds.READ_TABLE, (name, shard))
                answer = self._sessions.exchange(frames)[index]
                assert answer is not None
                match answer.header, answer.tensors:
                    case (int(step), int(shards)), (words, values):
                        yield step, words, values
                    case _:
                        raise bad_header(answer, task)
                shard += 1

    def replace(self, name: str, step: int, words: Words, values: Reals) -> None:
        """Replaces the rows of a table by rows as `all_rows` yields them, and sets its number of updates."""
        self._find_table(name)
        self._apply_ended_rounds()
        owner = owners(np.ascontiguousarray(words[:, 0]), len(self._sessions.tasks))
        places = [np.flatnonzero(owner == task) for task in range(len(self._sessions.tasks))]
        for start in range(0, max(1, *map(len, places)), _STORED_ROWS):
            parts = [place[start : start + _STORED_ROWS] for place in places]
            # Only the first frame has the step: a ``ps`` that receives the step removes all earlier rows of the table.
            header = (name, None if start else step)
            self._sessions.exchange([Frame(kinds.WRITE_TABLE, header, [words[part], values[part]]) for part in parts])

    # Saves and statistics ---------------------------------------------------------------------------------------------

    def save(self, name: str, folder: files.Path, *, delta: bool = False) -> Save:
        """Saves a table: each ``ps`` writes its own part, then this worker commits the save.

        All tasks must share the folder. One worker saves while other workers train.

        Raises:
          FailedPreconditionError: a delta was requested, and a ``ps`` has no save to build on, or the latest save is
            not this worker's.
        """
        opened = self._find_table(name)
        path = os.path.abspath(files.as_path(folder)) if "://" not in files.as_path(folder) else files.as_path(folder)
        files.makedirs(path)
        number = next_number(path, name)
        if delta and opened.last_save != (path, number - 1):
            raise FailedPreconditionError(
                f"table {name!r}, {self._worker}: save all of it into {path} before the first delta"
            )
        opened.last_save = None  # set again when this save is committed: no delta may build on a failed save
        self._apply_ended_rounds()
        answers = self._sessions.exchange(
            [Frame(kinds.SAVE_TABLE, (name, path, number, delta)) for _ in self._sessions.tasks]
        )
        parts: list[Part] = []
        steps: list[int] = []
        for task, answer in zip(self._sessions.tasks, answers, strict=True):
            assert answer is not None
            match answer.header:
                case (str(file), int(rows), int(gone), int(nbytes), int(step)):
                    parts.append(Part(file=file, rows=rows, gone=gone, nbytes=nbytes))
                    steps.append(step)
                case _:
                    raise bad_header(answer, task)
        base = number - 1 if delta else None
        save = commit_parts(path, name, opened.config, number, parts, steps=steps, base=base)
        opened.last_save = path, number
        nbytes = sum(part.nbytes for part in parts)
        if delta:
            opened.delta_bytes += nbytes
        else:
            opened.whole_bytes, opened.delta_bytes = nbytes, 0
        return save

    def save_again(self, name: str, folder: files.Path) -> Save:
        """Saves the changes since the last save, or the whole table if a full save is due.

        The whole table is saved the first time, after a save by another worker, after a restart of a ``ps``, and once
        the deltas together have half the size of a full save.

        A full save deletes saves older than the previous full one.

        Args:
          folder: see `save`.
        """
        opened = self._find_table(name)
        if opened.last_save is not None and 2 * opened.delta_bytes < opened.whole_bytes:
            try:
                return self.save(name, folder, delta=True)
            except FailedPreconditionError as error:
                _log.info("%s: all rows are saved: %s", self._worker, error.message)
        save = self.save(name, folder)
        delete_older(folder, name)
        return save

    def statistics(self, name: str) -> dict[str, TableStatistics]:
        """Returns the statistics of a table on each ``ps``, by its name."""
        return {task: TableStatistics(**values) for task, (values, _) in self._statistics(name, 0)}

    def hottest(self, name: str, count: int) -> list[tuple[int, int]]:
        """Returns the most used keys (of strings: their first words), each with its number of uses, in descending
        order."""
        uses_of_keys = [(key, uses) for _, (_, hot) in self._statistics(name, count) for key, uses in hot]
        return sorted(uses_of_keys, key=lambda pair: (-pair[1], pair[0]))[:count]

    def _statistics(
        self, name: str, count: int
    ) -> Iterable[tuple[str, tuple[dict[str, Any], Sequence[tuple[int, int]]]]]:
        self._find_table(name)
        self._apply_ended_rounds()
        answers = self._sessions.exchange([Frame(kinds.DESCRIBE_TABLE, (name, count)) for _ in self._sessions.tasks])
        for task, answer in zip(self._sessions.tasks, answers, strict=True):
            assert answer is not None
            yield task, cast(Any, tuple(answer.header))
