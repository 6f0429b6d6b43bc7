"""Nodes of a dataset's pipeline. Each node has the types of its elements and iterates over them.

An element is a flat tuple of its components: arrays, or values of `headwater.data.composites`. A *block* is many
elements at once: for each component, an array with a row for each element. A node that can yield blocks cheaply is
*columnar*; the nodes above it then process blocks instead of single elements, with the same results.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeVar

import numpy as np

from headwater.data.composites import Composite, is_dense
from headwater.data.spec import TensorSpec, is_array
from headwater.dtypes import DType
from headwater.errors import InternalError, InvalidArgumentError, OpError, OutOfRangeError

Array = np.ndarray[Any, Any]
Element = tuple[Any, ...]
Block = tuple[Array, ...]
Source = TypeVar("Source")
Result = TypeVar("Result")

# Values of `Node.cardinality`, as in TensorFlow.
INFINITE: Final = -1
UNKNOWN: Final = -2

# Limits of a block, see `block_rows`.
_BLOCK_BYTES: Final = 4 << 20
_BLOCK_ROWS: Final = 512


@dataclass(slots=True)
class Context:
    """Context of an iteration over a pipeline.

    Attributes:
      host: the runtime's context of the operation that requests elements; None outside a graph.
    """

    host: object = None


class Failure(tuple[Any, ...]):
    """An element, or a block of one element, that could not be produced. It is an empty tuple.

    Nodes yield it in place of the element, and pass on the failures of their inputs, so that an iterator can raise the
    error and continue with the next element.

    Attributes:
      error: the error to raise.
    """

    error: Exception

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """Returns the failure that raises ``error``."""
        failure = cls()
        failure.error = error
        return failure


class Function(ABC):
    """A function of elements.

    Attributes:
      name: for messages.
      columnar: whether `rows` is implemented.
      in_python: whether a call holds the GIL throughout, so that threads would not run concurrently.
    """

    name: str = "function"
    columnar: bool = False
    in_python: bool = False

    @abstractmethod
    def specs(self) -> tuple[TensorSpec, ...]:
        """Returns the specs of its results."""

    @abstractmethod
    def __call__(self, context: Context, element: Element) -> Element:
        """Returns its results for one element."""

    def rows(self, context: Context, block: Block) -> Block:
        """Returns its results for many elements at once."""
        raise NotImplementedError


class Node(ABC):
    """One step of a pipeline.

    Subclasses are dataclasses. Their value fields hold arrays, or tensors that are known only when a graph runs; a node
    with such tensors describes the pipeline, and cannot be iterated over.

    Attributes:
      children: names of the fields that are nodes, or tuples of nodes.
      values: the fields that hold values, with their element types; None for any type.
      functions: names of the fields that are functions of elements.
      positive: the fields whose values must be at least 1, with their names in error messages.
    """

    children: ClassVar[tuple[str, ...]] = ()
    values: ClassVar[dict[str, DType | None]] = {}
    functions: ClassVar[tuple[str, ...]] = ()
    positive: ClassVar[dict[str, str]] = {}

    @property
    @abstractmethod
    def specs(self) -> tuple[TensorSpec, ...]:
        """The specs of the components of an element."""

    @abstractmethod
    def elements(self, context: Context) -> Iterator[Element]:
        """Yields the elements one by one."""

    @property
    def columnar(self) -> bool:
        """Whether `blocks` is cheaper than `elements`."""
        return False

    def blocks(self, context: Context, rows: int) -> Iterator[Block]:
        """Yields the elements in non-empty blocks of at most ``rows`` elements. For columnar nodes only."""
        raise NotImplementedError(type(self).__name__)

    @property
    def cardinality(self) -> int:
        """Number of elements, `INFINITE` or `UNKNOWN`."""
        return UNKNOWN

    def nodes(self) -> Iterator[Node]:
        """Yields the nodes from which this one takes elements."""
        for name in self.children:
            child = getattr(self, name)
            yield from child if isinstance(child, tuple) else (child,)

    def check(self) -> None:
        """Checks the known values of this node; iterations rely on it.

        Raises:
          InvalidArgumentError: a value is out of its range.
        """
        for name, shown in self.positive.items():
            value = static_value(getattr(self, name))
            if value is not None:
                positive(value, shown)


def static_value(value: Any) -> Any:
    """Returns the number or truth value in ``value``; None if it is known only when a graph runs."""
    return value.item() if is_array(value) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]


def fully_defined(specs: Sequence[TensorSpec]) -> bool:
    """Returns whether all elements have the same shapes, so that they fit into blocks."""
    return is_dense(specs) and all(spec.shape.is_fully_defined() for spec in specs)


def block_rows(specs: Sequence[TensorSpec]) -> int:
    """Returns a suitable number of elements with these ``specs`` for a block."""
    size = sum(
        max(1, int(np.prod([dim or 1 for dim in spec.dims or ()]))) * spec.dtype.numpy_dtype.itemsize for spec in specs
    )
    return max(1, min(_BLOCK_ROWS, _BLOCK_BYTES // max(1, size)))


def row(column: Array | Composite, index: int) -> Any:
    """Returns one row of a column, as an array even if it is a scalar."""
    if isinstance(column, Composite):
        return column.row(index)
    value = column[index]
    if is_array(value) and column.dtype != object:
        return value  # pyright: ignore[reportUnknownVariableType]
    if column.ndim > 1:
        return value
    scalar = np.empty((), column.dtype)
    scalar[()] = value
    return scalar


def first_failure(elements: Iterable[Element]) -> Failure | None:
    """Returns the first failure among ``elements``, if there is one."""
    return next((element for element in elements if isinstance(element, Failure)), None)


def mapped(items: Iterator[Element], function: Callable[[Element], Element]) -> Generator[Element]:
    """Yields the result of ``function`` for each element or block. Passes failures on."""
    return flat_mapped(items, lambda item: (function(item),))


def flat_mapped(items: Iterator[Element], function: Callable[[Element], Iterable[Element]]) -> Generator[Element]:
    """Yields all results of ``function`` for each element or block. Passes failures on, and yields a `Failure` if the
    function raises an `OpError`."""
    with closing(items):
        for item in items:
            if isinstance(item, Failure):
                yield item
                continue
            try:
                yield from function(item)
            except OpError as error:
                yield Failure.of(error)


class RaisingIterator(Iterator[Result]):
    """An iterator that applies a function to elements or blocks, and raises the error of each `Failure`.

    After an error, the next call continues with the next item.
    """

    def __init__(self, items: Iterator[Source], function: Callable[[Source], Result]) -> None:
        self._items = items
        self._function = function

    def __next__(self) -> Result:
        item = next(self._items)
        if isinstance(item, Failure):
            raise item.error
        return self._function(item)

    def close(self) -> None:
        """Closes the input iterator."""
        with closing(self._items):
            pass


def raise_failures(items: Iterator[Source]) -> RaisingIterator[Source]:
    """Returns an iterator over the same elements or blocks that raises the error of each `Failure`."""
    return RaisingIterator(items, lambda item: item)


def rows_of(blocks: Iterator[Block]) -> Generator[Element]:
    """Yields the elements of blocks, one by one."""
    return flat_mapped(blocks, _rows)


def _rows(block: Block) -> Iterator[Element]:
    for index in range(len(block[0])):
        yield tuple(row(column, index) for column in block)


def one_by_one(elements: Iterator[Element]) -> Generator[Block]:
    """Yields each element as a block of its own."""
    return mapped(
        elements, lambda element: tuple(stack([value], "block", index) for index, value in enumerate(element))
    )


def stack(values: Sequence[Any], label: str, component: int = 0) -> Any:
    """Stacks values of equal shape as the rows of one array. Sparse and ragged values become one value of their class.

    Raises:
      InvalidArgumentError: their shapes differ.
    """
    if isinstance(values[0], Composite):
        return values[0].stacked(values, label, component)
    first = np.asarray(values[0])
    if first.dtype == object:
        out = np.empty((len(values), *first.shape), object)
        for index, value in enumerate(values):
            _check_shape(first, np.asarray(value), label, component)
            out[index] = value[()] if first.ndim == 0 else value
        return out
    try:
        return np.stack(values)
    except ValueError:
        for value in values:
            _check_shape(first, np.asarray(value), label, component)
        raise


def _check_shape(first: Array, other: Array, label: str, component: int) -> None:
    if first.shape != other.shape:
        raise InvalidArgumentError(
            f"{label}: Cannot batch tensors with different shapes in component {component}. First element had shape "
            f"{list(first.shape)} and a later one had shape {list(other.shape)}."
        )


@contextmanager
def closing(iterator: Source) -> Generator[Source]:
    """Closes an iterator at the end of the context, so that its files and threads are released.

    Unlike `contextlib.closing`, it accepts iterators without ``close``.
    """
    try:
        yield iterator
    finally:
        close = getattr(iterator, "close", None)
        if close is not None:
            close()


def annotated(error: BaseException, where: str) -> BaseException:
    """Adds a note to ``error`` that names the place in the pipeline."""
    if not isinstance(error, StopIteration | GeneratorExit):
        error.add_note(f"in {where}")
    return error


def call(
    function: Function, context: Context, element: Element, index: int, replacement: type[OpError] = InternalError
) -> Element:
    """Calls ``function`` for an element. Adds the number of the element to errors, as a note.

    Raises:
      OpError: the function raised `OutOfRangeError`, which would otherwise end the sequence silently. The error is of
        type ``replacement``.
    """
    try:
        return function(context, element)
    except OutOfRangeError as error:
        raised_error = replacement(f"Function invocation produced OutOfRangeError: {error.message}")
        raise annotated(raised_error, f"{function.name} of element {index}") from error
    except Exception as error:  # errors of the program's function pass through, with a note
        annotated(error, f"{function.name} of element {index}")
        raise


def attempt(
    function: Function, context: Context, element: Element, index: int, replacement: type[OpError] = InternalError
) -> Element:
    """Calls a function as `call` does, but returns errors as a `Failure`. If ``element`` is a failure, returns it."""
    if isinstance(element, Failure):
        return element
    try:
        return call(function, context, element, index, replacement)
    except Exception as error:  # noqa: BLE001 - the iterator raises it
        return Failure.of(error)


def check_values(node: Node) -> None:
    """Checks the known values of all nodes of a pipeline; see `Node.check`."""
    for inner in node.nodes():
        check_values(inner)
    node.check()


def positive(value: int, name: str) -> int:
    """Returns ``value``.

    Raises:
      InvalidArgumentError: ``value`` is less than 1; the message names it ``name``.
    """
    if value < 1:
        raise InvalidArgumentError(f"{name} must be greater than zero, not {value}.")
    return value
