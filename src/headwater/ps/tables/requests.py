"""Requests of a worker to a ``ps`` for rows of tables, either each row or the sum of each bag.

A *bag* is a group of ids whose rows are combined to one row: a sum, perhaps with weights, divided by a *divisor*. Bags
are pooled on the ``ps`` if that transfers fewer bytes: each ``ps`` sums its rows of a bag, and the worker sums these
sums and divides. For gradients, the worker divides a bag's gradient and sends it once to each ``ps``, which adds it to
the gradients of the bag's rows. The result is mathematically equal to sending every row; rounding may differ in the
last bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, TypeAlias, cast

import numpy as np

from headwater.errors import InvalidArgumentError
from headwater.ps.tables.protocol import Array, smallest
from headwater.tables.compiled import Reals, Words
from headwater.tables.flat import divide, pack_keys
from headwater.tables.pooling import bag_divisors, pool, pool_gradients
from headwater.tables.row_formats import Format, row_bytes
from headwater.tables.table import COMBINERS

Counts: TypeAlias = "list[int]"

# Codes in headers: how the ``ps`` pools the rows of bags.
NOT_POOLED: Final = 0
POOLED: Final = 1
WEIGHTED: Final = 2

_NO_WEIGHTS: Reals = np.empty(0, np.float32)
_NO_WORDS: Words = np.empty(0, np.int64)


@dataclass(frozen=True, kw_only=True, slots=True)
class BagsPart:
    """One task's part of the bags.

    Attributes:
      counts: for each bag, the number of its ids that belong to the task, [bags].
      numbers: for each such id, the number of its key among the task's keys, [sum(counts)].
      weights: the weights of these ids, [sum(counts)]; empty if bags have no weights.
    """

    counts: Words
    numbers: Words
    weights: Reals

    def tensors(self, keys: int) -> list[Array]:
        """Returns the tensors that represent this part, for `decode_bags`.

        Args:
          keys: the number of the task's keys. If ``numbers`` is just 0 to ``keys`` - 1, an empty tensor replaces it.
        """
        numbers = self.numbers
        sent = numbers[:0] if len(numbers) == keys and np.array_equal(numbers, np.arange(keys)) else numbers
        tensors = [smallest(self.counts), smallest(sent)]
        return [*tensors, self.weights] if len(self.weights) else tensors

    @property
    def bag_numbers(self) -> Words:
        """The bags that contain keys of the task."""
        return np.flatnonzero(self.counts)


@dataclass(frozen=True, kw_only=True, slots=True)
class Bags:
    """Bags of ids.

    Attributes:
      offsets: start of each bag among the ids, and the end of the last, [bags + 1].
      weights: the weights of the ids, [ids]; empty if bags have no weights.
      divisors: the divisor of each bag's sum, [bags].
    """

    offsets: Words
    weights: Reals
    divisors: Reals

    def __len__(self) -> int:
        return len(self.divisors)


@dataclass(frozen=True, kw_only=True, slots=True)
class DividedIds:
    """Ids of a table, and their distinct keys, which are sorted by task.

    Attributes:
      words: the first words of the distinct keys, [keys].
      checks: the second words of the keys, [keys]; empty if keys have one word.
      inverse: index of the key of each id, [ids].
      bounds: start of the keys of each task, and the end of the last ones, [tasks + 1].
      bags: the bags in which rows are pooled; None to return the row of each key.
      parts: the part of the bags of each task; empty without bags.
    """

    words: Words
    checks: Words
    inverse: Words
    bounds: Words
    bags: Bags | None = None
    parts: Sequence[BagsPart] = ()

    def __len__(self) -> int:
        """Returns the number of rows in the result."""
        return len(self.words) if self.bags is None else len(self.bags)

    @property
    def places(self) -> list[slice]:
        """The range of the keys of each task."""
        ends = cast(list[int], self.bounds.tolist())
        return [slice(first, end) for first, end in pairwise(ends)]

    def bag_tensors(self, task: int) -> list[Array]:
        """Returns the tensors that are sent to a task besides its keys if the ``ps`` pools rows."""
        return self.parts[task].tensors(self._keys_of(task))

    def pools_on_server(self, form: Format, dim: int) -> bool:
        """Returns whether sending pooled rows takes fewer bytes than sending the rows.

        The pooled rows need additional arrays that describe the bags.

        Args:
          form: the encoding of rows.
          dim: numbers in a row.
        """
        if self.bags is None:
            return False
        row = row_bytes(dim, form)
        sent = [self.bag_tensors(task) for task in range(len(self.parts))]
        arrays = sum(array.nbytes for tensors in sent for array in tensors)
        return arrays + row * sum(len(part.bag_numbers) for part in self.parts) < row * len(self.words)

    def pooling_code(self, pooled: bool) -> int:
        """Returns the header's code for the way in which the ``ps`` pools the bags."""
        return NOT_POOLED if not pooled or self.bags is None else WEIGHTED if len(self.bags.weights) else POOLED

    def _keys_of(self, task: int) -> int:
        return int(self.bounds[task + 1] - self.bounds[task])

    def assemble_rows(self, arrived: Sequence[Reals], dim: int, pooled: bool) -> Reals:
        """Assembles the resulting rows, [len(self), dim], from the answers of all tasks.

        Args:
          arrived: for each task, its rows: of its `BagsPart.bag_numbers` if ``pooled``, else of its keys.
          dim: numbers in a row.
          pooled: whether the tasks have pooled the rows.
        """
        if pooled:
            assert self.bags is not None
            # Each task has pooled its own keys: a bag with keys of several tasks is the sum of their parts.
            total = np.zeros((len(self.bags), dim), np.float32)
            for part, rows in zip(self.parts, arrived, strict=True):
                total[part.bag_numbers] += rows
            return total / self.bags.divisors[:, None]
        if len(arrived) == 1 and self.bags is None:
            # The rows of a single task are the result already: avoid a copy.
            return arrived[0]
        all_rows = np.empty((len(self.words), dim), np.float32)
        for place, rows in zip(self.places, arrived, strict=True):
            all_rows[place] = rows
        return all_rows if self.bags is None else self.pool(all_rows)

    def pool(self, rows: Reals) -> Reals:
        """Pools rows of the keys, [keys, dim], into rows of the bags, [bags, dim]."""
        bags = self.bags
        assert bags is not None
        return pool(rows, self.inverse, bags.offsets, bags.weights, 0) / bags.divisors[:, None]

    def gradients(self, gradients: Reals, pooled: bool) -> list[Reals]:
        """Returns the gradients to send, by task.

        Args:
          gradients: the gradients of the resulting rows, [len(self), dim].
          pooled: whether to send gradients of bags, rather than of keys.
        """
        if self.bags is not None:
            gradients = gradients / self.bags.divisors[:, None]
            if pooled:
                return [gradients[part.bag_numbers] for part in self.parts]
            bags = self.bags
            gradients = pool_gradients(gradients, self.inverse, bags.offsets, bags.weights, 0, len(self.words))
        return [gradients[place] for place in self.places]


class Batch:
    """Keys of several tables, divided among tasks, in flat arrays; see `headwater.tables.flat.divide`.

    Args:
      names: the names of the tables.
      words: the first words of the keys, concatenated over the tables.
      checks: the second words of the keys; empty if no keys are strings.
      bounds: start of the keys of each task, and the end of the last ones, [tables, tasks + 1].
    """

    def __init__(self, names: Sequence[str], words: Words, checks: Words, bounds: Words) -> None:
        self.names: list[str] = list(names)
        self.words: Words = words
        self.checks: Words = checks
        self.bounds: Words = bounds
        self._sent: dict[int, tuple[Counts, Counts, list[Array]]] = {}

    def keys(self, task: int, strings: Sequence[bool]) -> tuple[Counts, Counts, list[Array]]:
        """Returns the keys to send to a task: for each table, the number of its keys and the bytes of a packed key; and
        the tensors with the packed keys.

        Args:
          task: number of the task.
          strings: whether the keys of each table are strings.
        """
        # Cached: a lookup and the update after it send the same keys.
        request = self._sent.get(task)
        if request is None:
            packed, sizes = pack_keys(self.words, self.bounds, task)
            tensors: list[Array] = [packed]
            if any(strings):
                both = [
                    row[task : task + 2].tolist() for row, is_one in zip(self.bounds, strings, strict=True) if is_one
                ]
                tensors.append(np.concatenate([self.checks[first:end] for first, end in both]))
            counts = self.bounds[:, task + 1] - self.bounds[:, task]
            request = self._sent[task] = cast(Counts, counts.tolist()), cast(Counts, sizes.tolist()), tensors
        return request

    def element_counts(self, task: int, dims: Sequence[int]) -> list[int]:
        """Returns, for each table, the number of elements in all rows of a task; ``dims`` are the lengths of a row."""
        return cast("list[int]", ((self.bounds[:, task + 1] - self.bounds[:, task]) * dims).tolist())


class Ids(Batch):
    """Ids of several tables, and their keys.

    Args:
      names: the names of the tables.
      shapes: the shape of the ids of each table.
      ids: the first words of all ids, flat.
      checks: the second words of all ids; empty if no keys are strings.
      tasks: number of tasks.
    """

    def __init__(
        self, names: Sequence[str], shapes: Sequence[tuple[int, ...]], ids: Words, checks: Words, tasks: int
    ) -> None:
        self.shapes: Sequence[tuple[int, ...]] = shapes
        self.ids: Words = ids
        self.ends: Words = np.cumsum([math.prod(shape) for shape in shapes], dtype=np.int64)
        words, seconds, self.inverse, bounds = divide(ids, checks, self.ends, tasks)
        super().__init__(names, words, seconds, bounds)

    def are_same(self, names: Sequence[str], shapes: Sequence[tuple[int, ...]], ids: Words, checks: Words) -> bool:
        """Returns whether these are the same ids; always False for strings."""
        return (
            not len(checks)
            and not len(self.checks)
            and self.names == list(names)
            and self.shapes == shapes
            and np.array_equal(self.ids, ids)
        )

    def divide(self, number: int, strings: bool) -> DividedIds:
        """Returns the ids of one table."""
        bounds = self.bounds[number]
        first, end = int(bounds[0]), int(bounds[-1])
        start = int(self.ends[number - 1]) if number else 0
        return DividedIds(
            words=self.words[first:end],
            checks=self.checks[first:end] if strings else self.checks[:0],
            inverse=self.inverse[start : int(self.ends[number])],
            bounds=bounds - first,
        )


def concatenate_keys(divided: Mapping[str, DividedIds]) -> Batch:
    """Concatenates the keys of several tables."""
    parts = list(divided.values())
    total = np.cumsum([0, *(len(part.words) for part in parts)])
    checks = _NO_WORDS
    if any(len(part.checks) for part in parts):
        checks = np.concatenate(
            [part.checks if len(part.checks) else np.zeros(len(part.words), np.int64) for part in parts]
        )
    bounds = np.array([part.bounds + before for part, before in zip(parts, total[:-1], strict=True)], np.int64)
    return Batch(list(divided), np.concatenate([part.words for part in parts]), checks, bounds)


def group_into_bags(divided: DividedIds, offsets: object, combiner: str, weights: object, where: str) -> DividedIds:
    """Returns ``divided`` with its ids grouped into bags.

    Args:
      divided: the ids.
      offsets: start of each bag, and the end of the last, [bags + 1].
      combiner: ``"sum"``, ``"mean"`` or ``"sqrtn"``, see `headwater.tables.Table.pool`.
      weights: the weights of the ids, [n], or None.
      where: the names of table and worker, for messages.

    Raises:
      InvalidArgumentError: the combiner is unknown, ``offsets`` or ``weights`` do not match the ids, or a weight is not
        finite.
    """
    count = len(divided.inverse)
    if combiner not in COMBINERS:
        raise InvalidArgumentError(f"{where}: combiner is {combiner!r}, not one of {', '.join(COMBINERS)}")
    ends = np.asarray(offsets)
    if ends.ndim != 1 or not len(ends) or ends.dtype.kind not in "iu" or ends[0] != 0 or ends[-1] != count:
        raise InvalidArgumentError(f"{where}: offsets must increase from 0 to the number of ids, {count}")
    ends = ends.astype(np.int64)
    if np.any(np.diff(ends) < 0):
        raise InvalidArgumentError(f"{where}: offsets must increase from 0 to the number of ids, {count}")
    factors = _NO_WEIGHTS if weights is None else np.ascontiguousarray(weights, np.float32)
    if weights is not None and factors.shape != (count,):
        raise InvalidArgumentError(f"{where}: weights have shape {factors.shape}; there are {count} ids")
    # A weight that is not finite would spoil the gradients of all rows in its bag.
    if not np.isfinite(factors).all():
        raise InvalidArgumentError(f"{where}: a weight is not finite")
    bags = Bags(offsets=ends, weights=factors, divisors=bag_divisors(ends, factors, COMBINERS.index(combiner)))
    return replace(divided, bags=bags, parts=_parts(divided, bags))


def _parts(divided: DividedIds, bags: Bags) -> list[BagsPart]:
    if len(divided.bounds) == 2:
        # A single task has all keys, so the ids need not be renumbered.
        return [BagsPart(counts=np.diff(bags.offsets), numbers=divided.inverse, weights=bags.weights)]
    owner, number = np.empty(len(divided.words), np.int64), np.empty(len(divided.words), np.int64)
    for task, place in enumerate(divided.places):
        owner[place], number[place] = task, np.arange(len(owner[place]))
    parts: list[BagsPart] = []
    by_id = owner[divided.inverse]
    for task in range(len(divided.bounds) - 1):
        mine = by_id == task
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(mine, dtype=np.int64)])
        parts.append(
            BagsPart(
                counts=np.diff(before[bags.offsets]),
                numbers=number[divided.inverse[mine]],
                weights=bags.weights[mine] if len(bags.weights) else bags.weights,
            )
        )
    return parts


def decode_bags(arrays: list[Array], how: int, keys: int, where: str) -> BagsPart:
    """Decodes a task's part of bags from the tensors of `BagsPart.tensors`.

    Args:
      arrays: begins with these tensors, which are removed.
      how: `POOLED` or `WEIGHTED`.
      keys: number of the task's keys.
      where: the names of table and worker, for messages.

    Raises:
      InvalidArgumentError: the tensors are malformed, or do not match each other or the keys.
    """
    needed = 3 if how == WEIGHTED else 2
    if how not in (POOLED, WEIGHTED) or len(arrays) < needed:
        raise InvalidArgumentError(f"{where}: bags arrived without their arrays")
    counts, numbers = _as_indices(arrays.pop(0), where), _as_indices(arrays.pop(0), where)
    total = int(counts.sum())
    if not len(numbers) and total == keys:
        numbers = np.arange(keys)
    weights = np.ascontiguousarray(arrays.pop(0), np.float32) if how == WEIGHTED else _NO_WEIGHTS
    fits = len(numbers) == total and (total == 0 or int(numbers.max()) < keys)
    if not fits or (how == WEIGHTED and (weights.shape != (total,) or not np.isfinite(weights).all())):
        raise InvalidArgumentError(f"{where}: bags of {total} ids arrived, which is inconsistent with {keys} keys")
    return BagsPart(counts=counts, numbers=numbers, weights=weights)


def _as_indices(array: Array, where: str) -> Words:
    if array.ndim != 1 or array.dtype.kind not in "iu" or (len(array) and int(array.min()) < 0):
        raise InvalidArgumentError(f"{where}: bags arrived as {array.dtype} of shape {array.shape}")
    return np.ascontiguousarray(cast(Words, array), np.int64)


def pool_part(part: BagsPart, rows: Reals) -> Reals:
    """Returns the sum of a task's rows, [keys, dim], in each bag that contains some of them."""
    return pool(rows, part.numbers, _ends(part), part.weights, 0)


def spread_part(part: BagsPart, gradients: Reals, keys: int) -> Reals:
    """Returns the gradients of a task's keys, [keys, dim], from the gradients of the bags that contain them."""
    return pool_gradients(gradients, part.numbers, _ends(part), part.weights, 0, keys)


def _ends(part: BagsPart) -> Words:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(part.counts[part.bag_numbers])])
