"""A worker's end of embedding tables: which ``ps`` has which key, and one frame to each for all tables."""

from __future__ import annotations

import dataclasses
import logging
import os
import secrets
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from headwater.errors import (
    AbortedError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    UnavailableError,
)
from headwater.io import files
from headwater.parameters.client import ServerLink
from headwater.parameters.conversation import Traffic
from headwater.parameters.table_protocol import Array, pack
from headwater.parameters.table_requests import Divided, in_bags
from headwater.tables import TableConfig, TableStatistics
from headwater.tables.hashing import add_up, distinct, owners, string_keys
from headwater.tables.kernels import all_finite
from headwater.tables.row_formats import Format, decode, encode, require_format
from headwater.tables.snapshots import Part, Save, commit_parts, delete_older, next_number
from headwater.task import kinds
from headwater.task.answers import bad_header, raise_error
from headwater.transport.channel import Channel
from headwater.transport.frames import Frame
from headwater.transport.waiting import Patience

if TYPE_CHECKING:
    import numpy.typing as npt


_log = logging.getLogger("headwater")

Reals = NDArray[np.float32]
Words = NDArray[np.int64]

#: Rows that one frame brings to a ``ps`` when a table gets other rows.
_STORED_ROWS = 1 << 16


@dataclass(kw_only=True, slots=True)
class _Session:
    task: str
    link: ServerLink
    channel: Channel | None = None


@dataclass(kw_only=True, slots=True)
class _Opened:
    config: TableConfig
    folder: str | None
    wire: Format = "float32"
    rate: float | None = None
    #: Of the last save by this worker: its folder and its number.
    last_save: tuple[str, int] | None = None
    #: Bytes of the last whole save, and of the deltas since.
    whole_bytes: int = 0
    delta_bytes: int = 0


class TableClient:
    """One worker's access to all embedding tables. Used by one thread at a time.

    Args:
      worker: its name.
      links: to every ``ps``, with its name.
    """

    def __init__(self, worker: str, links: Sequence[tuple[str, ServerLink]]) -> None:
        self._worker = worker
        self._sessions = [_Session(task=task, link=link) for task, link in links]
        self._number = secrets.randbits(62)
        self._tables: dict[str, _Opened] = {}
        self._updates = 0
        self._traffic = Traffic()
        #: What was looked up last, for the gradients that follow.
        self._looked_up: Mapping[str, Divided] = {}

    def open(self, name: str, config: TableConfig, folder: str | None = None, *, wire: Format = "float32") -> None:
        """Makes a table on every ``ps``, unless it is there.

        Args:
          name: of the table.
          config: what it is.
          folder: where saves of it are. A ``ps`` that does not have the table takes its rows of the last one.
          wire: in which form rows travel to this worker, see `headwater.tables.row_formats`. Its gradients travel as
            bfloat16 where that is another one than float32.

        Raises:
          FailedPreconditionError: there is another table of that name.
          ValueError: there is no such form.
        """
        pack(config)
        wire = require_format(wire, "wire")
        if name in self._tables:
            if self._tables[name].config != config:
                raise FailedPreconditionError(None, None, f"table {name!r} was opened with another configuration")
            return
        self._tables[name] = _Opened(config=config, folder=folder, wire=wire)
        try:
            for session in self._sessions:
                self._drop(session)
            for session in self._sessions:
                self._meet(session)
        except BaseException:
            del self._tables[name]
            raise

    def close(self) -> None:
        """Ends all conversations."""
        for session in self._sessions:
            self._drop(session)

    def set_rate(self, name: str, rate: float) -> None:
        """Sets a table's learning rate, from its next update on."""
        self._opened(name).rate = float(rate)

    # Conversations ----------------------------------------------------------------------------------------------------

    def _drop(self, session: _Session) -> None:
        if session.channel is not None:
            session.link.give_back(session.channel, False)
            session.channel = None

    def _meet(self, session: _Session) -> Channel:
        self._drop(session)
        session.link.reach()
        channel = session.channel = session.link.take()
        told = [(name, pack(table.config), table.folder) for name, table in self._tables.items()]
        channel.send(Frame(kinds.OPEN_TABLES, (self._number, told)))
        _answer(channel, session.task)
        return channel

    def _exchange(self, frames: Sequence[Frame | None]) -> list[Frame | None]:
        """One frame to each ``ps``, or None; all work at the same time. A ``ps`` that is lost is waited for."""
        sent = [self._send(session, frame) for session, frame in zip(self._sessions, frames, strict=True)]
        answers: list[Frame | None] = []
        failed: OpError | None = None
        for session, frame, was_sent in zip(self._sessions, frames, sent, strict=True):
            try:
                answers.append(None if frame is None else self._receive(session, frame, was_sent))
            except OpError as error:  # the others' answers are on their way
                failed = failed or error
            except BaseException:
                self.close()  # an answer that is not read now would be taken for that to a later frame
                raise
        if failed is not None:
            raise failed
        self._traffic += Traffic(sent_bytes=_nbytes(frames), received_bytes=_nbytes(answers), round_trips=1)
        return answers

    def traffic(self) -> Traffic:
        """What has travelled so far."""
        return self._traffic

    def _send(self, session: _Session, frame: Frame | None) -> bool:
        if frame is None or session.channel is None:
            return False
        try:
            session.channel.send(frame)
        except (UnavailableError, AbortedError):
            return False
        return True

    def _receive(self, session: _Session, frame: Frame, was_sent: bool) -> Frame:
        give_up_at = time.monotonic() + Patience.from_environment().deadline_s
        while True:
            try:
                if not was_sent:
                    self._meet(session).send(frame)
                assert session.channel is not None
                return _answer(session.channel, session.task)
            except (UnavailableError, AbortedError) as error:
                if time.monotonic() >= give_up_at:
                    raise
                _log.warning("%s goes on with %s anew: %s", self._worker, session.task, error.message)
                was_sent = False

    # Rows -------------------------------------------------------------------------------------------------------------

    def _opened(self, name: str) -> _Opened:
        if name not in self._tables:
            raise NotFoundError(None, None, f"there is no table {name!r}; there are {sorted(self._tables)}")
        return self._tables[name]

    def divide(self, name: str, ids: object) -> Divided:
        """Which of the keys of a table are wanted, and which ``ps`` has each.

        Args:
          name: of the table.
          ids: of any shape.

        Raises:
          InvalidArgumentError: they are of another type than the table's keys.
        """
        config = self._opened(name).config
        array = np.asarray(ids)
        flat = array.reshape(-1)
        if config.strings:
            try:
                if array.dtype.kind not in "OSU" and array.size:
                    raise TypeError(f"they are of type {array.dtype}")
                both = string_keys(flat)
            except TypeError as error:
                raise InvalidArgumentError(
                    None, None, f"table {name!r}, {self._worker}: ids must be strings: {error}"
                ) from error
            words, checks = np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])
        else:
            if array.dtype.kind not in "iu" and array.size:
                raise InvalidArgumentError(
                    None,
                    None,
                    f"table {name!r}, {self._worker}: ids must be whole numbers; they are of type {array.dtype}",
                )
            words, checks = np.ascontiguousarray(flat.astype(np.int64)), np.empty(0, np.int64)
        first, inverse = distinct(words, checks)
        words, checks = words[first], checks[first] if len(checks) else checks
        if len(self._sessions) == 1:
            return Divided(words=words, checks=checks, inverse=inverse, places=[slice(None)])
        owner = owners(words, len(self._sessions))
        places = [np.flatnonzero(owner == task) for task in range(len(self._sessions))]
        return Divided(words=words, checks=checks, inverse=inverse, places=places)

    def _divide_again(self, name: str, ids: npt.ArrayLike) -> Divided:
        """As `divide`, from the last lookup where that was of the same integers."""
        last = self._looked_up.get(name)
        if last is not None and not len(last.checks):
            array = np.asarray(ids)
            if array.dtype.kind in "iu" and np.array_equal(last.words[last.inverse], array.reshape(-1)):
                return last
        return self.divide(name, ids)

    def look_up(self, ids: Mapping[str, Any], *, training: bool = True) -> dict[str, Reals]:
        """Rows of several tables, in one round trip.

        Args:
          ids: by table, of any shape.
          training: counts the use, and makes rows for keys that have none; without it such a key gets its initial row.

        Returns:
          By table the rows, shape ``[*ids.shape, dim]``.
        """
        divided = {name: self.divide(name, wanted) for name, wanted in ids.items()}
        rows = self.rows(divided, training=training)
        self._looked_up = divided
        return {
            name: rows[name].take(divided[name].inverse, axis=0).reshape(*np.shape(ids[name]), -1) for name in divided
        }

    def rows(self, divided: Mapping[str, Divided], *, training: bool = True) -> dict[str, Reals]:
        """By table the rows of its distinct keys, or of its bags, in one round trip; see `look_up`."""
        names = list(divided)
        forms: list[Format] = [self._tables[name].wire for name in names]
        dims = [self._tables[name].config.dim for name in names]
        pooled = [divided[name].pooled(form, dim) for name, form, dim in zip(names, forms, dims, strict=True)]
        bags = [divided[name].how(is_pooled) for name, is_pooled in zip(names, pooled, strict=True)]
        frames: list[Frame | None] = []
        for task in range(len(self._sessions)):
            tensors = [t for name, of in zip(names, pooled, strict=True) for t in divided[name].tensors(task, of)]
            frames.append(Frame(kinds.LOOK_UP, (training, names, forms, bags), tensors))
        arrived: list[list[Reals]] = [[] for _ in names]
        for session, answer in zip(self._sessions, self._exchange(frames), strict=True):
            assert answer is not None
            if len(answer.tensors) != len(names):
                raise bad_header(answer, session.task)
            for found, tensor, dim, form in zip(arrived, answer.tensors, dims, forms, strict=True):
                found.append(decode(tensor, dim, form))
        self._traffic += Traffic(rows=sum(len(rows) for found in arrived for rows in found))
        return {
            name: divided[name].wanted(found, dim, of)
            for name, found, dim, of in zip(names, arrived, dims, pooled, strict=True)
        }

    def _where(self, name: str) -> str:
        return f"table {name!r}, {self._worker}"

    def bags(self, name: str, ids: Any, offsets: Any, combiner: str, weights: Any = None) -> Divided:
        """Ids of a table, in bags; see `RowTable.pool`."""
        return in_bags(self._divide_again(name, ids), offsets, combiner, weights, self._where(name))

    def pool(self, bags: Mapping[str, Divided], *, training: bool = True) -> dict[str, Reals]:
        """By table the pooled rows of its bags, [bags, dim], in one round trip. See `bags`."""
        self._looked_up = bags
        return self.rows(bags, training=training)

    def update(self, ids: Mapping[str, Any], gradients: Mapping[str, Any]) -> None:
        """One update of several tables, in one round trip. Gradients of one key are added before they travel.

        Args:
          ids: by table, of any shape.
          gradients: by table, shape ``[*ids.shape, dim]``.

        Raises:
          InvalidArgumentError: shapes do not fit, or a gradient is not finite.
        """
        divided = {name: self._divide_again(name, wanted) for name, wanted in ids.items()}
        names = list(divided)
        sums: dict[str, Reals] = {}
        for name in names:
            dim = self._tables[name].config.dim
            values = np.asarray(gradients[name], np.float32)
            if values.shape != (*np.shape(ids[name]), dim):
                raise InvalidArgumentError(
                    None,
                    None,
                    f"table {name!r}, {self._worker}: gradients have shape {values.shape}; the ids' shape "
                    f"{np.shape(ids[name])} asks for {(*np.shape(ids[name]), dim)}",
                )
            flat = np.ascontiguousarray(values.reshape(-1, dim))
            sums[name] = add_up(flat, divided[name].inverse, len(divided[name].words))
        self.push(divided, sums)

    def push(self, divided: Mapping[str, Divided], sums: Mapping[str, Reals]) -> None:
        """One update of several tables: gradients of distinct keys, or of bags, one for each.

        Raises:
          InvalidArgumentError: a gradient is not finite, or there are too few or too many.
        """
        names = list(divided)
        sums = {name: np.ascontiguousarray(sums[name], np.float32) for name in names}
        forms: list[Format] = []
        pooled: list[bool] = []
        brought: list[list[Reals]] = []
        for name in names:
            of_table, opened = divided[name], self._tables[name]
            if sums[name].shape != (len(of_table), opened.config.dim):
                raise InvalidArgumentError(
                    None,
                    None,
                    f"{self._where(name)}: gradients have shape {sums[name].shape}, not "
                    f"{(len(of_table), opened.config.dim)}",
                )
            bad = int(all_finite(sums[name]))
            if bad >= 0:
                which = f"bag {bad}" if of_table.bags is not None else f"key {int(of_table.words[bad])}"
                raise InvalidArgumentError(None, None, f"{self._where(name)}: the gradient of {which} is not finite")
            forms.append("float32" if opened.wire == "float32" else "bfloat16")
            pooled.append(of_table.pooled(forms[-1], opened.config.dim))
            brought.append(of_table.gradients(sums[name], pooled[-1]))
        self._updates += 1
        rates = [self._tables[name].rate for name in names]
        bags = [divided[name].how(of) for name, of in zip(names, pooled, strict=True)]
        frames: list[Frame | None] = []
        for task in range(len(self._sessions)):
            tensors: list[Array] = []
            for name, form, of, parts in zip(names, forms, pooled, brought, strict=True):
                tensors += [*divided[name].tensors(task, of), encode(parts[task], form)]
            frames.append(Frame(kinds.UPDATE, (self._updates, names, rates, forms, bags), tensors))
        self._exchange(frames)

    # All rows ---------------------------------------------------------------------------------------------------------

    def all_rows(self, name: str) -> Generator[tuple[int, Words, Reals]]:
        """All rows, a shard of a ``ps`` at a time: how many updates the ``ps`` had made, words and values, as
        `headwater.tables.Table.shard_records` gives them."""
        self._opened(name)
        for index, session in enumerate(self._sessions):
            shard, shards = 0, 1
            while shard < shards:
                frames: list[Frame | None] = [None] * len(self._sessions)
                frames[index] = Frame(kinds.READ_TABLE, (name, shard))
                answer = self._exchange(frames)[index]
                assert answer is not None
                match answer.header, answer.tensors:
                    case (int(step), int(shards)), (words, values):
                        yield step, words, values
                    case _:
                        raise bad_header(answer, session.task)
                shard += 1

    def replace(self, name: str, step: int, words: Words, values: Reals) -> None:
        """Gives a table other rows, as `all_rows` has given them, and says how many updates it has seen."""
        self._opened(name)
        owner = owners(np.ascontiguousarray(words[:, 0]), len(self._sessions))
        places = [np.flatnonzero(owner == task) for task in range(len(self._sessions))]
        for start in range(0, max(1, *map(len, places)), _STORED_ROWS):
            parts = [place[start : start + _STORED_ROWS] for place in places]
            header = (name, None if start else step)
            self._exchange([Frame(kinds.WRITE_TABLE, header, [words[part], values[part]]) for part in parts])

    # Saving and telling -----------------------------------------------------------------------------------------------

    def save(self, name: str, folder: files.Path, *, delta: bool = False) -> Save:
        """Saves a table: each ``ps`` writes its own part, then this worker makes a save of them.

        The folder must be one that all tasks share. One worker saves; the others train on.

        Raises:
          FailedPreconditionError: a delta was asked for, and some ``ps`` has no save to build on, or it is not this
            worker's last one.
        """
        opened = self._opened(name)
        path = os.path.abspath(files.as_path(folder)) if "://" not in files.as_path(folder) else files.as_path(folder)
        files.makedirs(path)
        number = next_number(path, name)
        if delta and opened.last_save != (path, number - 1):
            raise FailedPreconditionError(
                None, None, f"table {name!r}, {self._worker}: save all of it into {path} before the first delta"
            )
        opened.last_save = None
        answers = self._exchange([Frame(kinds.SAVE_TABLE, (name, path, number, delta)) for _ in self._sessions])
        parts: list[Part] = []
        steps: list[int] = []
        for session, answer in zip(self._sessions, answers, strict=True):
            assert answer is not None
            match answer.header:
                case (str(file), int(rows), int(gone), int(nbytes), int(step)):
                    parts.append(Part(file=file, rows=rows, gone=gone, nbytes=nbytes))
                    steps.append(step)
                case _:
                    raise bad_header(answer, session.task)
        base = number - 1 if delta else None
        made = commit_parts(path, name, opened.config, number, parts, steps=steps, base=base)
        opened.last_save = path, number
        nbytes = sum(part.nbytes for part in parts)
        if delta:
            opened.delta_bytes += nbytes
        else:
            opened.whole_bytes, opened.delta_bytes = nbytes, 0
        return made

    def save_again(self, name: str, folder: files.Path) -> Save:
        """Saves what changed since the last time, or all of a table where that is due: at first, after another save,
        once deltas have half the size of the whole, and where a ``ps`` was started anew. A whole save deletes what is
        older than the whole one before it.

        Args:
          folder: as of `save`.
        """
        opened = self._opened(name)
        if opened.last_save is not None and 2 * opened.delta_bytes < opened.whole_bytes:
            try:
                return self.save(name, folder, delta=True)
            except FailedPreconditionError as error:
                _log.info("%s: all rows are saved: %s", self._worker, error.message)
        made = self.save(name, folder)
        delete_older(folder, name)
        return made

    def statistics(self, name: str) -> dict[str, TableStatistics]:
        """What each ``ps`` says of a table, by its name."""
        return {task: TableStatistics(**told) for task, (told, _) in self._told(name, 0)}

    def hottest(self, name: str, count: int) -> list[tuple[int, int]]:
        """The most used keys (of strings: their first words), each with how often it was used, most used first."""
        found = [(key, uses) for _, (_, hot) in self._told(name, count) for key, uses in hot]
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:count]

    def _told(self, name: str, count: int) -> Iterable[tuple[str, tuple[dict[str, Any], Sequence[tuple[int, int]]]]]:
        self._opened(name)
        answers = self._exchange([Frame(kinds.TELL_TABLE, (name, count)) for _ in self._sessions])
        for session, answer in zip(self._sessions, answers, strict=True):
            assert answer is not None
            yield session.task, cast(Any, tuple(answer.header))


def _nbytes(frames: Sequence[Frame | None]) -> int:
    """Bytes of the tensors of some frames."""
    return sum(tensor.nbytes for frame in frames if frame is not None for tensor in frame.tensors)


def _answer(channel: Channel, task: str) -> Frame:
    answer = channel.recv()
    if answer.kind == kinds.ERROR:
        raise_error(answer, task)
    if answer.kind != kinds.DONE:
        raise bad_header(answer, task)
    return answer


class RowTable:
    """An embedding table on the ``ps`` tasks, as a worker's program sees it.

    Args:
      name: of the table.
      config: what it is.
      client: how to reach it.
    """

    def __init__(self, name: str, config: TableConfig, client: Callable[[], TableClient]) -> None:
        self.name = name
        self.config = config
        self._client = client

    def lookup(self, ids: npt.ArrayLike, *, training: bool = True) -> Reals:
        """The rows of ids of any shape, ``[*ids.shape, dim]``; a key's row is made at its first use.

        With ``training=False`` nothing is made or counted, and a key without a row gets its initial one.
        """
        return self._client().look_up({self.name: ids}, training=training)[self.name]

    def push(self, ids: Any, gradients: Any) -> None:
        """Has the table's optimizer change the rows of ids, from gradients ``[*ids.shape, dim]``."""
        self._client().update({self.name: ids}, {self.name: gradients})

    def pool(
        self, ids: object, offsets: object, *, combiner: str = "mean", weights: object = None, training: bool = True
    ) -> Reals:
        """The pooled rows of bags of ids, ``[bags, dim]``; zeros for an empty bag.

        Rows are pooled on the ``ps`` where that is fewer bytes, and otherwise here.

        Args:
          ids: of all bags, one after the other, ``[n]``.
          offsets: where each bag begins, and the end of the last, ``[bags + 1]``.
          combiner: ``"sum"``; ``"mean"``, divided by the sum of the weights; or ``"sqrtn"``, by the root of the sum of
            their squares.
          weights: of the ids, ``[n]``; all 1 when None.
          training: as for `lookup`.

        Raises:
          InvalidArgumentError: an argument does not fit.
        """
        client = self._client()
        bags = client.bags(self.name, ids, offsets, combiner, weights)
        return client.pool({self.name: bags}, training=training)[self.name]

    def push_pooled(
        self, ids: object, offsets: object, gradients: Any, *, combiner: str = "mean", weights: object = None
    ) -> None:
        """As `push`, from gradients of what `pool` gave, ``[bags, dim]``. Weights get none."""
        client = self._client()
        bags = client.bags(self.name, ids, offsets, combiner, weights)
        client.push({self.name: bags}, {self.name: np.ascontiguousarray(gradients, np.float32)})

    def set_learning_rate(self, rate: float) -> None:
        """Sets the learning rate, from this worker's next `push` on, for all workers."""
        self._client().set_rate(self.name, rate)

    def save(self, folder: files.Path, *, delta: bool = False) -> Save:
        """Saves all rows, or with ``delta`` those that changed since this worker's last save, while others train on."""
        return self._client().save(self.name, folder, delta=delta)

    def statistics(self) -> dict[str, TableStatistics]:
        """What each ``ps`` says of the table."""
        return self._client().statistics(self.name)

    def hottest(self, count: int = 10) -> list[tuple[int, int]]:
        """The most used keys, each with how often it was used."""
        return self._client().hottest(self.name, count)

    def __len__(self) -> int:
        return sum(told.rows for told in self.statistics().values())

    def __repr__(self) -> str:
        return f"<RowTable {self.name!r}: {dataclasses.asdict(self.config)['dim']} numbers a row>"
