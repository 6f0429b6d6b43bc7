"""Nodes that select, repeat, combine or reorder elements, without changing them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from headwater.data.node import (
    INFINITE,
    UNKNOWN,
    Block,
    Context,
    Element,
    Failure,
    Node,
    closing,
    first_failure,
    mapped,
    positive,
    rows_of,
    static_value,
)
from headwater.data.spec import TensorSpec, relaxed
from headwater.dtypes import DType, int64
from headwater.errors import FailedPreconditionError, InvalidArgumentError

if TYPE_CHECKING:
    import numpy.typing as npt

    from headwater.graph.registry import HostArray
    from headwater.graph.types import TensorLike


SHARD_HINT: Final = -1
"""``dataset.shard(SHARD_HINT, SHARD_HINT)`` marks the place for `AutoShardPolicy.HINT`, and does nothing by itself."""


@dataclass(eq=False, kw_only=True)
class Wrapper(Node):
    """A node with one input node. By default, its elements have the same types and shapes as the input's elements.

    Attributes:
      input: the input node.
      keeps_count: whether this node has as many elements as its input.
    """

    children: ClassVar[tuple[str, ...]] = ("input",)
    keeps_count: ClassVar[bool] = False
    input: Node

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        return self.input.specs

    @property
    def columnar(self) -> bool:
        return self.input.columnar

    @property
    def cardinality(self) -> int:
        return self.input.cardinality if self.keeps_count else UNKNOWN

    def with_input(self, input: Node) -> Wrapper:
        """Returns a copy of this node with another input."""
        return replace(self, input=input)


class ByElement(Wrapper):
    """A node with one input node that processes single elements, even if its input is columnar."""

    @property
    def columnar(self) -> bool:
        return False


@dataclass(eq=False, kw_only=True)
class Counted(ByElement):
    """Yields the input's elements; the end is an error if there are not ``count`` of them.

    Attributes:
      count: the number of elements; `INFINITE` if there is no end.
    """

    values: ClassVar[dict[str, DType | None]] = {"count": int64}
    count: Any

    @property
    def cardinality(self) -> int:
        count = static_value(self.count)
        return UNKNOWN if count is None else int(count)

    def elements(self, context: Context) -> Iterator[Element]:
        expected, found = int(self.count), 0
        with closing(self.input.elements(context)) as source:
            for element in source:
                found += not isinstance(element, Failure)
                if found > expected >= 0:
                    break
                yield element
        if found != expected:
            wanted = "an infinite number of" if expected == INFINITE else str(expected)
            amount = f"at least {found}" if found > expected >= 0 else f"only {found}"
            raise FailedPreconditionError(
                f"Input dataset was expected to contain {wanted} elements but contained {amount} elements."
            )


@dataclass(eq=False, kw_only=True)
class Take(Wrapper):
    """Yields the first ``count`` elements; all if it is -1."""

    values: ClassVar[dict[str, DType | None]] = {"count": int64}
    count: Any

    @property
    def cardinality(self) -> int:
        count, inner = static_value(self.count), self.input.cardinality
        if count is None or inner == UNKNOWN:
            return UNKNOWN
        return inner if count < 0 else count if inner == INFINITE else min(count, inner)

    def elements(self, context: Context) -> Iterator[Element]:
        left = int(self.count)
        if left == 0:
            return
        with closing(self.input.elements(context)) as source:
            for element in source:
                yield element
                left -= not isinstance(element, Failure)
                if not left:
                    return

    def blocks(self, context: Context, rows: int) -> Iterator[Block]:
        left = int(self.count)
        if left == 0:
            return
        with closing(self.input.blocks(context, rows if left < 0 else min(rows, left))) as source:
            for block in source:
                if left < 0 or isinstance(block, Failure):
                    yield block
                    continue
                size = min(left, len(block[0]))
                yield tuple(column[:size] for column in block)
                left -= size
                if not left:
                    return


@dataclass(eq=False, kw_only=True)
class Skip(Wrapper):
    """Skips the first ``count`` elements; all if it is -1."""

    values: ClassVar[dict[str, DType | None]] = {"count": int64}
    count: Any

    @property
    def cardinality(self) -> int:
        count, inner = static_value(self.count), self.input.cardinality
        if count is None or inner == UNKNOWN:
            return UNKNOWN
        return 0 if count < 0 else inner if inner == INFINITE else max(0, inner - count)

    def elements(self, context: Context) -> Iterator[Element]:
        left = int(self.count)
        if left < 0:
            return
        with closing(self.input.elements(context)) as source:
            for element in source:
                if left and not isinstance(element, Failure):
                    left -= 1
                else:
                    yield element

    def blocks(self, context: Context, rows: int) -> Iterator[Block]:
        left = int(self.count)
        if left < 0:
            return
        with closing(self.input.blocks(context, rows)) as source:
            for block in source:
                if isinstance(block, Failure):
                    yield block
                    continue
                size = len(block[0])
                if left < size:
                    yield tuple(column[left:] for column in block) if left else block
                left = max(0, left - size)


@dataclass(eq=False, kw_only=True)
class Repeat(Wrapper):
    """Repeats the elements ``count`` times; infinitely if it is -1."""

    values: ClassVar[dict[str, DType | None]] = {"count": int64}
    count: Any

    @property
    def cardinality(self) -> int:
        count, inner = static_value(self.count), self.input.cardinality
        if count == 0 or inner == 0:
            return 0
        if count is None or inner == UNKNOWN:
            return UNKNOWN
        return INFINITE if count < 0 or inner == INFINITE else count * inner

    def elements(self, context: Context) -> Iterator[Element]:
        return self._repeated(lambda: self.input.elements(context))

    def blocks(self, context: Context, rows: int) -> Iterator[Block]:
        return self._repeated(lambda: self.input.blocks(context, rows))

    def _repeated(self, start: Any) -> Iterator[Any]:
        count = int(self.count)
        for _ in itertools.count() if count < 0 else range(count):
            empty = True
            with closing(start()) as source:
                for item in source:
                    empty = empty and count < 0 and isinstance(item, Failure)
                    yield item
            if empty:  # repeating an empty input infinitely would never yield an element
                return


@dataclass(eq=False, kw_only=True)
class Shard(Wrapper):
    """Yields every ``count``-th element, beginning with number ``index``; all elements if ``count`` is `SHARD_HINT`."""

    values: ClassVar[dict[str, DType | None]] = {"count": int64, "index": int64}
    count: Any
    index: Any

    @property
    def cardinality(self) -> int:
        count, index, inner = static_value(self.count), static_value(self.index), self.input.cardinality
        if count is None or index is None or inner < 0 or count == SHARD_HINT:
            return inner
        return len(range(index, inner, count))

    def check(self) -> None:
        count, index = static_value(self.count), static_value(self.index)
        if count in (None, SHARD_HINT):
            return
        if not 0 <= (index or 0) < positive(count, "num_shards"):
            raise InvalidArgumentError(f"index must be between 0 and {count - 1} for num_shards {count}, not {index}.")

    def _part(self) -> tuple[int, int]:
        count = int(self.count)
        return (1, 0) if count == SHARD_HINT else (count, int(self.index))

    def elements(self, context: Context) -> Iterator[Element]:
        count, index = self._part()
        numbers = itertools.count()
        with closing(self.input.elements(context)) as source:
            for element in source:
                if isinstance(element, Failure) or next(numbers) % count == index:
                    yield element

    def blocks(self, context: Context, rows: int) -> Iterator[Block]:
        count, first = self._part()
        with closing(self.input.blocks(context, rows)) as source:
            for block in source:
                if isinstance(block, Failure):
                    yield block
                    continue
                size = len(block[0])
                if first < size:
                    yield tuple(column[first::count] for column in block)
                first = (first - size) % count if first < size else first - size


@dataclass(eq=False, kw_only=True)
class Shuffle(Wrapper):
    """Yields the elements in random order: draws each element from the first ``buffer_size`` remaining elements.

    Attributes:
      seed, seed2: determine the order; if both are 0, each process has a different, random order.
      reshuffle: whether each iteration has a different order.
    """

    values: ClassVar[dict[str, DType | None]] = {"buffer_size": int64, "seed": int64, "seed2": int64}
    positive: ClassVar[dict[str, str]] = {"buffer_size": "buffer_size"}
    buffer_size: Any
    seed: int
    seed2: int
    reshuffle: bool = True
    _iteration: int = field(default=0, init=False)
    _random_seed: int | None = field(default=None, init=False)

    keeps_count: ClassVar[bool] = True

    def start_at(self, iteration: int, random_seed: int | None = None) -> None:
        """Makes the next iteration use the order of iteration number ``iteration``, from 0.

        ``random_seed`` replaces the random seed that is used if ``seed`` and ``seed2`` are 0; None keeps it.
        """
        self._iteration = iteration
        self._random_seed = self._random_seed if random_seed is None else random_seed

    def next_order(self) -> tuple[int, int]:
        """Returns the arguments with which `start_at` restores the order of the next iteration."""
        return self._iteration, self._fixed_random_seed()

    def _fixed_random_seed(self) -> int:
        if self._random_seed is None:
            self._random_seed = int(np.random.SeedSequence().generate_state(1)[0])
        return self._random_seed

    def _generator(self) -> np.random.Generator:
        seeds = [int(self.seed) & 0xFFFFFFFF, int(self.seed2) & 0xFFFFFFFF]
        if not any(seeds):
            seeds = [self._fixed_random_seed()]
        iteration = self._iteration if self.reshuffle else 0
        self._iteration += 1
        return np.random.default_rng([*seeds, iteration])

    def elements(self, context: Context) -> Iterator[Element]:
        size = int(self.buffer_size)
        draw = self._generator()
        held: list[Element] = []
        with closing(self.input.elements(context)) as source:
            for element in source:
                if isinstance(element, Failure):
                    yield element
                elif len(held) < size:
                    held.append(element)
                else:
                    place = int(draw.integers(size))
                    yield held[place]
                    held[place] = element
            for place in draw.permutation(len(held)):
                yield held[place]

    def blocks(self, context: Context, rows: int) -> Iterator[Block]:
        size = int(self.buffer_size)
        draw = self._generator()
        held: list[HostArray] = []
        filled = 0
        with closing(self.input.blocks(context, rows)) as source:
            for block in source:
                if isinstance(block, Failure):
                    yield block
                    continue
                count = len(block[0])
                room = min(size - filled, count)
                if not held:
                    held = [np.empty((0, *column.shape[1:]), column.dtype) for column in block]
                if filled + room > len(held[0]):
                    # The buffer grows with its contents: its size may exceed the memory, and the number of elements.
                    length = min(size, max(filled + room, 2 * len(held[0])))
                    held = [np.concatenate([buffer, _unset(buffer, length - len(buffer))]) for buffer in held]
                for buffer, column in zip(held, block, strict=True):
                    buffer[filled : filled + room] = column[:room]
                filled += room
                if room < count:
                    places = draw.integers(size, size=count - room)
                    # An element with the same place as an earlier element of the block replaces that element.
                    previous = _last_equal(places)
                    repeated = np.flatnonzero(previous >= 0)
                    result: list[HostArray] = []
                    for buffer, column in zip(held, block, strict=True):
                        incoming, taken = column[room:], buffer[places]
                        taken[repeated] = incoming[previous[repeated]]
                        buffer[places] = incoming
                        result.append(taken)
                    yield tuple(result)
            order = draw.permutation(filled)
            for start in range(0, filled, rows):
                places = order[start : start + rows]
                yield tuple(buffer[places] for buffer in held)


def _unset(like: HostArray, count: int) -> HostArray:
    return np.empty((count, *like.shape[1:]), like.dtype)


def _last_equal(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Returns the index of the last equal value before each value; -1 if there is none."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    same = np.flatnonzero(ordered[1:] == ordered[:-1])
    result = np.full(len(values), -1)
    result[order[same + 1]] = order[same]
    return result


@dataclass(eq=False, kw_only=True)
class Cache(Wrapper):
    """Caches the elements in memory during the first complete iteration."""

    _kept: list[object] | None = field(default=None, init=False)
    _lock: Any = field(default_factory=threading.Lock, init=False)

    keeps_count: ClassVar[bool] = True

    def elements(self, context: Context) -> Iterator[Element]:
        if self.columnar:
            return rows_of(self.blocks(context, 256))
        return self._caching(self.input.elements(context))

    def blocks(self, context: Context, rows: int) -> Iterator[Block]:
        return self._caching(self.input.blocks(context, rows))

    def _caching(self, source: Iterator[object]) -> Iterator[Any]:
        with self._lock:
            cached = self._kept
        if cached is not None:
            yield from cached
            return
        elements: list[Any] = []
        with closing(source):
            for item in source:
                if not isinstance(item, Failure):
                    elements.append(item)
                yield item
        with self._lock:
            self._kept = elements


@dataclass(eq=False, kw_only=True)
class Concatenated(Node):
    """Yields the elements of one node, then the elements of another."""

    children: ClassVar[tuple[str, ...]] = ("first", "second")
    first: Node
    second: Node

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        return tuple(relaxed(a, b) for a, b in zip(self.first.specs, self.second.specs, strict=True))

    @property
    def columnar(self) -> bool:
        return self.first.columnar and self.second.columnar and self.first.specs == self.second.specs

    @property
    def cardinality(self) -> int:
        counts = self.first.cardinality, self.second.cardinality
        return min(counts) if INFINITE in counts or UNKNOWN in counts else sum(counts)

    def elements(self, context: Context) -> Iterator[Element]:
        for node in (self.first, self.second):
            with closing(node.elements(context)) as source:
                yield from source

    def blocks(self, context: Context, rows: int) -> Iterator[Block]:
        for node in (self.first, self.second):
            with closing(node.blocks(context, rows)) as source:
                yield from source


@dataclass(eq=False, kw_only=True)
class Zipped(Node):
    """Yields tuples of elements of several nodes, until one of them ends.

    Attributes:
      aligned: whether, if a node fails, the nodes after it are advanced, too, so that all nodes stay at the same
        position. TensorFlow 1.15 does not advance them.
    """

    children: ClassVar[tuple[str, ...]] = ("inputs",)
    inputs: tuple[Node, ...]
    aligned: bool = True

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        return tuple(spec for node in self.inputs for spec in node.specs)

    @property
    def cardinality(self) -> int:
        counts = [node.cardinality for node in self.inputs]
        if 0 in counts:
            return 0
        finite = [count for count in counts if count != INFINITE]
        return INFINITE if not finite else UNKNOWN if UNKNOWN in finite else min(finite)

    def elements(self, context: Context) -> Iterator[Element]:
        sources = [node.elements(context) for node in self.inputs]
        try:
            # If a source has ended, the sources after it are not advanced.
            while True:
                parts: list[Element] = []
                for source in sources:
                    part = next(source, None)
                    if part is None:
                        return
                    parts.append(part)
                    if isinstance(part, Failure) and not self.aligned:
                        break
                failure = first_failure(parts)
                yield tuple(component for part in parts for component in part) if failure is None else failure
        finally:
            for source in sources:
                with closing(source):
                    pass


@dataclass(eq=False, kw_only=True)
class Picked(Node):
    """Yields elements of several inputs. ``selector`` yields the index of the input for each element.

    Attributes:
      skip_empty: whether to skip indices of inputs that have ended. Otherwise, the sequence ends at such an index.
    """

    children: ClassVar[tuple[str, ...]] = ("selector", "inputs")
    selector: Node
    inputs: tuple[Node, ...]
    skip_empty: bool = True

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        specs = self.inputs[0].specs
        for node in self.inputs[1:]:
            specs = tuple(relaxed(a, b) for a, b in zip(specs, node.specs, strict=True))
        return specs

    def elements(self, context: Context) -> Iterator[Element]:
        sources: list[Iterator[Element] | None] = [node.elements(context) for node in self.inputs]
        try:
            with closing(self.selector.elements(context)) as choices:
                for choice in choices:
                    if isinstance(choice, Failure):
                        yield choice
                        continue
                    index = int(choice[0])
                    if not 0 <= index < len(sources):
                        raise InvalidArgumentError(f"Selector index out of range: {index} >= {len(sources)}")
                    source = sources[index]
                    element = None if source is None else next(source, None)
                    if element is not None:
                        yield element
                        continue
                    if not self.skip_empty:
                        return
                    sources[index] = None
                    if not any(sources):
                        return
        finally:
            for source in sources:
                with closing(source):
                    pass


def generator_of(seed: int, seed2: int) -> np.random.Generator:
    """Returns a generator of random numbers, which is reproducible if one of the seeds is not 0."""
    seeds = [int(seed) & 0xFFFFFFFF, int(seed2) & 0xFFFFFFFF]
    return np.random.default_rng(seeds if any(seeds) else None)


@dataclass(eq=False, kw_only=True)
class InfiniteNumbers(Node):
    """Yields random int64 numbers infinitely."""

    values: ClassVar[dict[str, DType | None]] = {"seed": int64, "seed2": int64}
    seed: int
    seed2: int

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        return (TensorSpec((), int64),)

    @property
    def cardinality(self) -> int:
        return INFINITE


@dataclass(eq=False, kw_only=True)
class RandomIndices(InfiniteNumbers):
    """Yields indices of inputs infinitely, drawn at random with the given weights."""

    values: ClassVar[dict[str, DType | None]] = {"weights": None, "seed": int64, "seed2": int64}
    weights: TensorLike

    def elements(self, context: Context) -> Iterator[Element]:
        draw = generator_of(self.seed, self.seed2)
        weights = np.asarray(self.weights, np.float64)
        weights = weights / weights.sum()
        while True:
            for choice in draw.choice(len(weights), 256, p=weights):
                yield (np.asarray(choice, np.int64),)


@dataclass(eq=False, kw_only=True)
class WeightedRandomIndices(ByElement):
    """Yields an index for each element of ``input``, drawn at random. The element is the vector of the weights."""

    values: ClassVar[dict[str, DType | None]] = {"seed": int64, "seed2": int64}
    seed: int
    seed2: int

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        return (TensorSpec((), int64),)

    keeps_count: ClassVar[bool] = True

    def elements(self, context: Context) -> Iterator[Element]:
        draw = generator_of(self.seed, self.seed2)

        def draw_index(element: Element) -> Element:
            weights = np.asarray(element[0], np.float64)
            return (np.asarray(draw.choice(len(weights), p=weights / weights.sum()), np.int64),)

        return mapped(self.input.elements(context), draw_index)
