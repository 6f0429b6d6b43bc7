"""Nodes that apply functions to elements."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from headwater.data.node import (
    INFINITE,
    UNKNOWN,
    Block,
    Context,
    Element,
    Failure,
    Function,
    Node,
    attempt,
    closing,
    first_failure,
    fully_defined,
    one_by_one,
    positive,
    rows_of,
    static_value,
)
from headwater.data.parallel import PrefetchedIterator, Prefetchers
from headwater.data.prefetch import AUTOTUNE
from headwater.data.spec import TensorSpec, is_array
from headwater.data.transforms import ByElement, Wrapper
from headwater.dtypes import DType, int64, variant
from headwater.errors import InvalidArgumentError, OutOfRangeError

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike

#: Number of elements of each dataset that `Interleave` prefetches, at least.
_MIN_PREFETCHED: Final = 16
#: Number of concurrent calls for `AUTOTUNE`.
_AUTOTUNE_CALLS: Final = 2


@dataclass(eq=False, kw_only=True)
class Map(Wrapper):
    """Applies a function to each element.

    Attributes:
      function: takes an element and returns one.
      parallel: maximum number of concurrent calls.
      preserve_cardinality: whether an `OutOfRangeError` of the function is an error; otherwise, it ends the sequence.
    """

    values: ClassVar[dict[str, DType | None]] = {"parallel": int64}
    functions: ClassVar[tuple[str, ...]] = ("function",)
    positive: ClassVar[dict[str, str]] = {"parallel": "num_parallel_calls"}
    function: Function
    parallel: Any
    preserve_cardinality: bool = True

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        return self.function.specs()

    @property
    def columnar(self) -> bool:
        return self.function.columnar and self.input.columnar and fully_defined(self.specs)

    keeps_count: ClassVar[bool] = True

    def elements(self, context: Context) -> Iterator[Element]:
        if self.columnar:
            return rows_of(self.blocks(context, 16))
        calls = int(self.parallel)
        concurrent = calls > 1 and not self.function.in_python
        results = self._concurrently(context, calls) if concurrent else self._sequentially(context)
        return results if self.preserve_cardinality else _until_out_of_range(results)

    def _attempt(self, context: Context, element: Element, index: int) -> Element:
        return attempt(self.function, context, element, index, InvalidArgumentError)

    def _sequentially(self, context: Context) -> Iterator[Element]:
        with closing(self.input.elements(context)) as source:
            for index, element in enumerate(source):
                yield self._attempt(context, element, index)

    def _concurrently(self, context: Context, calls: int) -> Iterator[Element]:
        pool = ThreadPoolExecutor(calls, "headwater-data-map")
        running: deque[Future[Element]] = deque()
        try:
            with closing(self.input.elements(context)) as source:
                for index, element in enumerate(source):
                    running.append(pool.submit(self._attempt, context, element, index))
                    if len(running) > calls:
                        yield running.popleft().result()
                while running:
                    yield running.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def blocks(self, context: Context, rows: int) -> Iterator[Block]:
        for _, results in _blocks_with_results(self, context, rows):
            yield results


def _until_out_of_range(elements: Iterator[Element]) -> Iterator[Element]:
    """Yields elements until the function of a `Map` raises `OutOfRangeError`."""
    with closing(elements):
        for element in elements:
            if isinstance(element, Failure) and isinstance(element.error.__cause__, OutOfRangeError):
                return
            yield element


def _blocks_with_results(node: Map | Filter, context: Context, rows: int) -> Iterator[tuple[Block, Block]]:
    """Yields the blocks of a node's input, with the results of the node's function. If the function fails for a block,
    divides the block into blocks of one element."""
    index = 0
    with closing(node.input.blocks(context, rows)) as source:
        for block in source:
            if isinstance(block, Failure):
                yield block, block
                continue
            count = len(block[0])
            results = _attempt_rows(node.function, context, block, index)
            if not isinstance(results, Failure) or count == 1:
                yield block, results
            else:
                for place in range(count):
                    one = tuple(column[place : place + 1] for column in block)
                    yield one, _attempt_rows(node.function, context, one, index + place)
            index += count


def _attempt_rows(function: Function, context: Context, block: Block, index: int) -> Block:
    try:
        return function.rows(context, block)
    except Exception as error:  # noqa: BLE001 - the iterator raises it
        error.add_note(f"in {function.name} of element {index}")
        return Failure.of(error)


@dataclass(eq=False, kw_only=True)
class Filter(Wrapper):
    """Yields the elements for which a function returns true."""

    functions: ClassVar[tuple[str, ...]] = ("function",)
    function: Function

    @property
    def columnar(self) -> bool:
        return self.function.columnar and self.input.columnar

    def elements(self, context: Context) -> Iterator[Element]:
        if self.columnar:
            yield from rows_of(self.blocks(context, 16))
            return
        with closing(self.input.elements(context)) as source:
            for index, element in enumerate(source):
                outcome = attempt(self.function, context, element, index)
                if isinstance(outcome, Failure):
                    yield outcome
                elif np.asarray(outcome[0]).item():
                    yield element

    def blocks(self, context: Context, rows: int) -> Iterator[Block]:
        for block, results in _blocks_with_results(self, context, rows):
            if isinstance(results, Failure):
                yield results
            elif (keep := results[0]).any():
                yield tuple(column[keep] for column in block)


@dataclass(eq=False, kw_only=True)
class TakeWhile(ByElement):
    """Yields elements until a function returns false."""

    functions: ClassVar[tuple[str, ...]] = ("function",)
    function: Function

    def elements(self, context: Context) -> Iterator[Element]:
        with closing(self.input.elements(context)) as source:
            for index, element in enumerate(source):
                outcome = attempt(self.function, context, element, index)
                if isinstance(outcome, Failure):
                    yield outcome
                    continue
                if not np.asarray(outcome[0]).item():
                    return
                yield element


@dataclass(eq=False, kw_only=True)
class Interleave(Wrapper):
    """Interleaves the datasets that a function returns. Yields ``block_length`` elements of each of ``cycle_length``
    datasets in turn.

    Attributes:
      function: takes an element and returns a node.
      of: specs of the elements of these nodes.
      cycle_length: number of open datasets; with 1, the datasets are concatenated.
      parallel: maximum number of datasets whose elements are computed concurrently; -1 for a suitable number.
      ahead: if ``parallel`` is more than 1, number of elements of each dataset to prefetch; 0 for a suitable number.
      sloppy: if ``parallel`` is more than 1, whether to skip a dataset whose next element is not ready.
      reads_files: whether the nodes read files. The elements of ``input`` are then the names of these files.
      changes: whether the order of the nodes' elements may change between iterations.
    """

    values: ClassVar[dict[str, DType | None]] = {"cycle_length": int64, "block_length": int64, "parallel": int64}
    functions: ClassVar[tuple[str, ...]] = ("function",)
    positive: ClassVar[dict[str, str]] = {"cycle_length": "cycle_length", "block_length": "block_length"}
    function: Function
    of: tuple[TensorSpec, ...]
    cycle_length: Any
    block_length: Any
    parallel: Any
    ahead: int = 0
    sloppy: bool = False
    reads_files: bool = False
    changes: bool = False

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        return self.of

    @property
    def columnar(self) -> bool:
        # The elements of datasets that do not read files are computed on demand: they may be slow, infinite or fail.
        in_turn = static_value(self.cycle_length) == 1 and static_value(self.parallel) == 1
        return self.reads_files and in_turn and fully_defined(self.of)

    def check(self) -> None:
        super().check()
        cycle, calls = static_value(self.cycle_length), static_value(self.parallel)
        if calls not in (None, AUTOTUNE) and positive(calls, "num_parallel_calls") > (cycle or calls):
            raise InvalidArgumentError("num_parallel_calls must less than or equal to cycle_length.")

    def blocks(self, context: Context, rows: int) -> Iterator[Block]:
        with closing(self.input.elements(context)) as source:
            for index, element in enumerate(source):
                outcome = attempt(self.function, context, element, index)
                if isinstance(outcome, Failure):
                    yield outcome
                    continue
                node = node_of(outcome[0])
                yield from node.blocks(context, rows) if node.columnar else one_by_one(node.elements(context))

    def elements(self, context: Context) -> Iterator[Element]:
        if self.columnar:
            return rows_of(self.blocks(context, 256))
        cycle, length, calls = int(self.cycle_length), int(self.block_length), int(self.parallel)
        calls = min(_AUTOTUNE_CALLS, cycle) if calls == AUTOTUNE else calls
        return (
            self._concurrently(context, cycle, length, calls)
            if calls > 1
            else self._sequentially(context, cycle, length)
        )

    def _sequentially(self, context: Context, cycle: int, length: int) -> Iterator[Element]:
        with closing(self.input.elements(context)) as source:
            datasets = self._datasets(context, source)
            open_datasets: list[Iterator[Element] | None] = [None] * cycle
            try:
                exhausted = False
                while True:
                    for index in range(cycle):
                        while open_datasets[index] is None and not exhausted:
                            node = next(datasets, None)
                            if isinstance(node, Failure):
                                yield node
                            elif node is None:
                                exhausted = True
                            else:
                                open_datasets[index] = node.elements(context)
                        left = length
                        for element in open_datasets[index] or ():
                            yield element
                            left -= not isinstance(element, Failure)
                            if not left:
                                break
                        else:
                            open_datasets[index] = None
                    if exhausted and not any(open_datasets):
                        return
            finally:
                for dataset in open_datasets:
                    with closing(dataset):
                        pass

    def _concurrently(self, context: Context, cycle: int, length: int, calls: int) -> Iterator[Element]:
        """Interleaves as `_sequentially` does, with threads that iterate over the datasets. If sloppy, skips datasets
        that are not ready."""
        threads = Prefetchers(calls, self.ahead or max(length, _MIN_PREFETCHED))
        with closing(self.input.elements(context)) as source, closing(threads):
            datasets = (threads.open(partial(_elements, node, context)) for node in self._datasets(context, source))
            open_datasets: list[PrefetchedIterator | None] = list(itertools.islice(datasets, cycle))
            while any(open_datasets):
                if self.sloppy:
                    threads.wait([dataset for dataset in open_datasets if dataset is not None])
                for index, dataset in enumerate(open_datasets):
                    if dataset is None or (self.sloppy and not dataset.ready):
                        continue
                    for _ in range(length):
                        element = threads.next_element(dataset)
                        if element is None:
                            open_datasets[index] = next(datasets, None)
                            break
                        yield element

    def _datasets(self, context: Context, source: Iterator[Element]) -> Iterator[Node | Failure]:
        for index, element in enumerate(source):
            outcome = attempt(self.function, context, element, index)
            yield outcome if isinstance(outcome, Failure) else node_of(outcome[0])


def _elements(node: Node | Failure, context: Context) -> Iterator[Element]:
    return iter([node]) if isinstance(node, Failure) else node.elements(context)


def node_of(value: Any) -> Node:
    """Returns the node that is a component of an element."""
    return value.item() if is_array(value) else value  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]


@dataclass(eq=False, kw_only=True)
class Scan(ByElement):
    """Yields the results of a function of a state and an element, which also returns the state for the next element.

    Attributes:
      state: components of the initial state.
      function: takes the components of state and element; returns the components of the next state and of the result.
    """

    values: ClassVar[dict[str, DType | None]] = {"state": None}
    functions: ClassVar[tuple[str, ...]] = ("function",)
    state: tuple[Any, ...]
    function: Function

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        return self.function.specs()[len(self.state) :]

    def elements(self, context: Context) -> Iterator[Element]:
        state = self.state
        with closing(self.input.elements(context)) as source:
            for index, element in enumerate(source):
                argument = element if isinstance(element, Failure) else (*state, *element)
                outcome = attempt(self.function, context, argument, index, InvalidArgumentError)
                if isinstance(outcome, Failure):
                    yield outcome
                    continue
                state = outcome[: len(state)]
                yield outcome[len(state) :]


@dataclass(eq=False, kw_only=True)
class Windows(ByElement):
    """Yields windows, which are datasets of ``size`` elements.

    Attributes:
      shift: distance between the first elements of consecutive windows, in elements of the input.
      stride: distance between consecutive elements of a window, in elements of the input.
    """

    values: ClassVar[dict[str, DType | None]] = {"size": int64, "shift": int64, "stride": int64, "drop_remainder": None}
    positive: ClassVar[dict[str, str]] = {"size": "size", "shift": "shift", "stride": "stride"}
    size: Any
    shift: Any
    stride: Any
    drop_remainder: TensorLike

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        return (TensorSpec((), variant),) * len(self.input.specs)

    @property
    def cardinality(self) -> int:
        inner, shift = self.input.cardinality, static_value(self.shift)
        if inner < 0 or not shift:
            return inner if inner == INFINITE else UNKNOWN
        span = (int(self.size) - 1) * int(self.stride) + 1
        return max(0, (inner - span) // shift + 1) if bool(self.drop_remainder) else -(-inner // shift)

    def elements(self, context: Context) -> Iterator[Element]:
        size, shift, stride = int(self.size), int(self.shift), int(self.stride)
        span = (size - 1) * stride + 1
        buffer: list[Element] = []
        with closing(self.input.elements(context)) as source:
            while True:
                buffer += itertools.islice(source, max(0, span - len(buffer)))
                window = buffer[:span:stride]
                if not buffer or (bool(self.drop_remainder) and len(window) < size):
                    return
                failure = first_failure(window)
                yield (
                    failure
                    if failure is not None
                    else tuple(
                        ListNode(items=[(item[index],) for item in window], of=(spec,))
                        for index, spec in enumerate(self.input.specs)
                    )
                )
                if shift > len(buffer):
                    for _ in itertools.islice(source, shift - len(buffer)):
                        pass
                buffer = buffer[shift:]


@dataclass(eq=False, kw_only=True)
class ListNode(Node):
    """Yields elements from a list."""

    items: list[Element]
    of: tuple[TensorSpec, ...]

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        return self.of

    @property
    def cardinality(self) -> int:
        return len(self.items)

    def elements(self, context: Context) -> Iterator[Element]:
        return iter(self.items)


@dataclass(eq=False, kw_only=True)
class IgnoreErrors(ByElement):
    """Skips each `Failure`: an element or batch that could not be computed, or the unreadable rest of a file."""

    def elements(self, context: Context) -> Iterator[Element]:
        with closing(self.input.elements(context)) as source:
            for element in source:
                if not isinstance(element, Failure):
                    yield element
