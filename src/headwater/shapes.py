"""Static shapes: the dimensions of tensors as far as they are known before a step runs.

Inside Headwater a static shape is `Dims`: a tuple with None for each unknown dimension, or None when not even the
rank is known. `TensorShape` and `Dimension` are the public view of it, as TensorFlow 1.15 has them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, SupportsIndex, TypeAlias, cast, overload

from headwater.tensorboard_protos import tensor_shape_pb2

Dims = tuple[int | None, ...] | None
"""Static shape: None is an unknown rank, a None inside it an unknown dimension."""
DimensionLike: TypeAlias = "Dimension | SupportsIndex | None"
"""One dimension, as an argument: a number, a `Dimension`, or None for an unknown one."""
ShapeLike: TypeAlias = "TensorShape | ShapeMessage | Iterable[DimensionLike] | DimensionLike"
"""Arguments of `TensorShape`: a shape, its message, dimensions, a number for a vector, or None for an unknown rank."""


class ShapeMessage(Protocol):
    """A ``TensorShapeProto``, of any package."""

    @property
    def unknown_rank(self) -> bool: ...
    @property
    def dim(self) -> Iterable[DimensionMessage]: ...


class DimensionMessage(Protocol):
    """A dimension of a ``TensorShapeProto``; -1 if unknown."""

    @property
    def size(self) -> int: ...


def merge_dims(a: Dims, b: Dims) -> Dims:
    """Merges two descriptions of one tensor; raises ValueError if they contradict each other."""
    if a is None:
        return b
    if b is None:
        return a
    if len(a) != len(b):
        raise ValueError(f"Shapes {TensorShape(a)} and {TensorShape(b)} are not compatible: their ranks differ")
    merged: list[int | None] = []
    for left, right in zip(a, b, strict=True):
        if left is not None and right is not None and left != right:
            raise ValueError(f"Shapes {TensorShape(a)} and {TensorShape(b)} are not compatible")
        merged.append(right if left is None else left)
    return tuple(merged)


def broadcast_dims(a: Dims, b: Dims) -> Dims:
    """Returns the static shape of an element-wise operation (NumPy's broadcasting); ValueError if there is none."""
    if a is None or b is None:
        return None
    rank = max(len(a), len(b))
    left = (1,) * (rank - len(a)) + a
    right = (1,) * (rank - len(b)) + b
    result: list[int | None] = []
    for x, y in zip(left, right, strict=True):
        if x == 1:
            result.append(y)
        elif y == 1 or x == y:
            result.append(x)
        elif x is None or y is None:
            result.append(y if x is None else x)
        else:
            raise ValueError(
                f"Dimensions must be equal, but are {x} and {y}: shapes {TensorShape(a)} and {TensorShape(b)}"
            )
    return tuple(result)


class Dimension:
    """One dimension of a static shape; ``value`` is None when unknown, and so are results of arithmetic with it."""

    __slots__ = ("_value",)

    def __init__(self, value: DimensionLike) -> None:
        if isinstance(value, Dimension):
            value = value.value
        if value is not None:
            as_int = int(value)
            if as_int != value and not isinstance(value, str | bytes):
                raise ValueError(f"Ambiguous dimension: {value!r}")
            if as_int < 0:
                raise ValueError(f"Dimension {as_int} must be >= 0")
            value = as_int
        self._value: int | None = value

    @property
    def value(self) -> int | None:
        return self._value

    def is_compatible_with(self, other: DimensionLike) -> bool:
        other = Dimension(other)
        return self.value is None or other.value is None or self.value == other.value

    def assert_is_compatible_with(self, other: DimensionLike) -> None:
        if not self.is_compatible_with(other):
            raise ValueError(f"Dimensions {self} and {Dimension(other)} are not compatible")

    def merge_with(self, other: DimensionLike) -> Dimension:
        self.assert_is_compatible_with(other)
        return Dimension(other) if self.value is None else self

    def __eq__(self, other: object) -> Any:
        theirs = _dimension_value(other)
        if theirs is NotImplemented:
            return NotImplemented
        if self._value is None or theirs is None:
            return None
        return self._value == theirs

    def __ne__(self, other: object) -> Any:
        equal = self.__eq__(other)
        return equal if equal is None or equal is NotImplemented else not equal

    def __hash__(self) -> int:
        return hash(self._value)

    def __int__(self) -> int:
        if self._value is None:
            raise TypeError("an unknown Dimension has no integer value")
        return self._value

    def __index__(self) -> int:
        return self.__int__()

    def _combine(self, other: object, operation: Callable[[int, int], int]) -> Any:
        theirs = _dimension_value(other)
        if theirs is NotImplemented:
            return NotImplemented
        if self._value is None or theirs is None:
            return Dimension(None)
        return Dimension(operation(self._value, theirs))

    def _combine_reversed(self, other: object, operation: Callable[[int, int], int]) -> Any:
        return self._combine(other, lambda a, b: operation(b, a))

    def __add__(self, other: DimensionLike) -> Dimension:
        return self._combine(other, operator.add)

    __radd__ = __add__

    def __sub__(self, other: DimensionLike) -> Dimension:
        return self._combine(other, operator.sub)

    def __rsub__(self, other: DimensionLike) -> Dimension:
        return self._combine_reversed(other, operator.sub)

    def __mul__(self, other: DimensionLike) -> Dimension:
        return self._combine(other, operator.mul)

    __rmul__ = __mul__

    def __floordiv__(self, other: DimensionLike) -> Dimension:
        return self._combine(other, _floordiv)

    __div__ = __floordiv__

    def __rfloordiv__(self, other: DimensionLike) -> Dimension:
        return self._combine_reversed(other, _floordiv)

    def __mod__(self, other: DimensionLike) -> Dimension:
        return self._combine(other, operator.mod)

    def __rmod__(self, other: object) -> Any:
        return self._combine_reversed(other, operator.mod)

    def _compare(self, other: object, operation: Callable[[int, int], bool]) -> Any:
        theirs = _dimension_value(other)
        if theirs is NotImplemented:
            return NotImplemented
        return None if self._value is None or theirs is None else operation(self._value, theirs)

    def __lt__(self, other: DimensionLike) -> bool | None:
        return self._compare(other, operator.lt)

    def __le__(self, other: DimensionLike) -> bool | None:
        return self._compare(other, operator.le)

    def __gt__(self, other: DimensionLike) -> bool | None:
        return self._compare(other, operator.gt)

    def __ge__(self, other: DimensionLike) -> bool | None:
        return self._compare(other, operator.ge)

    def __str__(self) -> str:
        return "?" if self._value is None else str(self._value)

    def __repr__(self) -> str:
        return f"Dimension({self._value})"


def _floordiv(a: int, b: int) -> int:
    return a // b


def _dimension_value(other: Any) -> Any:
    if isinstance(other, Dimension):
        return other.value
    if other is None or isinstance(other, int):
        return other
    try:
        return Dimension(other).value
    except (TypeError, ValueError):
        return NotImplemented


class TensorShape:
    """A static shape, in the form of TensorFlow's API.

    Args:
      dims: None for an unknown rank, an integer for a vector, or an iterable of integers, `Dimension` and None; also
        another `TensorShape` or a ``TensorShapeProto``.
    """

    __slots__ = ("_dims",)

    def __init__(self, dims: ShapeLike) -> None:
        self._dims: Dims = _as_dims(dims)

    @property
    def as_dims(self) -> Dims:
        """The plain form that the rest of Headwater uses."""
        return self._dims

    @property
    def dims(self) -> list[Dimension] | None:
        return None if self._dims is None else [Dimension(d) for d in self._dims]

    @property
    def ndims(self) -> int | None:
        return None if self._dims is None else len(self._dims)

    rank = ndims

    def as_list(self) -> list[int | None]:
        """Returns the dimensions as integers and None; raises ValueError for an unknown rank."""
        if self._dims is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self._dims)

    def is_fully_defined(self) -> bool:
        return self._dims is not None and None not in self._dims

    def assert_is_fully_defined(self) -> None:
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def num_elements(self) -> int | None:
        """Returns the number of elements of such a tensor; None if the shape is not fully defined."""
        if self._dims is None:
            return None
        count = 1
        for dim in self._dims:
            if dim is None:
                return None
            count *= dim
        return count

    def is_compatible_with(self, other: ShapeLike) -> bool:
        try:
            self.merge_with(other)
        except ValueError:
            return False
        return True

    def assert_is_compatible_with(self, other: ShapeLike) -> None:
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {as_shape(other)} are incompatible")

    def merge_with(self, other: ShapeLike) -> TensorShape:
        return TensorShape(merge_dims(self._dims, as_shape(other).as_dims))

    def most_specific_compatible_shape(self, other: ShapeLike) -> TensorShape:
        """Returns the most specific shape that covers both: unknown where this shape and ``other`` differ."""
        theirs = as_shape(other).as_dims
        if self._dims is None or theirs is None or len(self._dims) != len(theirs):
            return TensorShape(None)
        return TensorShape([a if a == b else None for a, b in zip(self._dims, theirs, strict=True)])

    def concatenate(self, other: ShapeLike) -> TensorShape:
        theirs = as_shape(other).as_dims
        return TensorShape(None if self._dims is None or theirs is None else self._dims + theirs)

    def with_rank(self, rank: int) -> TensorShape:
        try:
            return self.merge_with(unknown_shape(rank))
        except ValueError:
            raise ValueError(f"Shape {self} must have rank {rank}") from None

    def with_rank_at_least(self, rank: int) -> TensorShape:
        if self._dims is not None and len(self._dims) < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        if self._dims is not None and len(self._dims) > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self

    def assert_has_rank(self, rank: int) -> None:
        self.with_rank(rank)

    def assert_same_rank(self, other: ShapeLike) -> None:
        other = as_shape(other)
        if self.ndims is not None and other.ndims is not None and self.ndims != other.ndims:
            raise ValueError(f"Shapes {self} and {other} must have the same rank")

    def as_proto(self) -> Any:
        """Returns this shape as a ``TensorShapeProto`` (-1 for an unknown dimension)."""
        proto = tensor_shape_pb2.TensorShapeProto()
        if self._dims is None:
            proto.unknown_rank = True
        else:
            for dim in self._dims:
                proto.dim.add(size=-1 if dim is None else dim)
        return proto

    def __len__(self) -> int:
        if self._dims is None:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return len(self._dims)

    def __bool__(self) -> bool:
        return self._dims is not None

    def __iter__(self) -> Iterator[Dimension]:
        if self._dims is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return iter([_shown(d) for d in self._dims])

    @overload
    def __getitem__(self, key: int) -> Dimension: ...
    @overload
    def __getitem__(self, key: slice) -> TensorShape: ...
    def __getitem__(self, key: int | slice) -> Dimension | TensorShape:
        """Returns a dimension, or the shape of a slice; unknown dimensions where the rank is unknown."""
        if not isinstance(key, slice):
            return _shown(None if self._dims is None else self._dims[key])
        if self._dims is not None:
            return TensorShape(self._dims[key])
        start, stop, step = key.start or 0, key.stop, key.step or 1  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if stop is None or start < 0 or stop < 0 or step != 1:
            return TensorShape(None)
        return unknown_shape(max(0, stop - start))  # pyright: ignore[reportUnknownArgumentType]

    def __add__(self, other: ShapeLike) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: ShapeLike) -> TensorShape:
        return as_shape(other).concatenate(self)

    def __eq__(self, other: object) -> bool:
        try:
            return self._dims == as_shape(cast("ShapeLike", other)).as_dims
        except (TypeError, ValueError):
            return False

    def __hash__(self) -> int:
        return hash(self._dims)

    def __str__(self) -> str:
        if self._dims is None:
            return "<unknown>"
        inner = ", ".join(("None" if _Public.numbers else "?") if d is None else str(d) for d in self._dims)
        return f"({inner},)" if len(self._dims) == 1 else f"({inner})"

    def __repr__(self) -> str:
        return f"TensorShape({None if self._dims is None else [_shown(d) for d in self._dims]})"


def brackets(dims: Dims) -> str:
    """Returns the form that messages of TensorFlow's kernels have, such as ``[2,?]``; ``?`` for an unknown rank."""
    return "?" if dims is None else f"[{','.join('?' if size is None else str(size) for size in dims)}]"


def require_shape(found: Sequence[int], wanted: TensorShape) -> None:
    """Raises ValueError unless a shape is compatible with ``wanted``."""
    if not wanted.is_compatible_with(found):
        sizes = brackets(tuple(found))
        raise ValueError(f"Shape of tensor {sizes} is not compatible with expected shape {brackets(wanted.as_dims)}.")


class _Public:
    """Whether dimensions are returned as numbers, as in TensorFlow 2."""

    numbers = False


def use_numbers(wanted: bool) -> None:
    """Sets whether the dimensions of a `TensorShape` are numbers, or `Dimension`."""
    _Public.numbers = wanted


def _shown(size: int | None) -> Any:
    return size if _Public.numbers else Dimension(size)


def _as_dims(dims: Any) -> Dims:
    if dims is None:
        return None
    if isinstance(dims, TensorShape):
        return dims.as_dims
    if hasattr(dims, "unknown_rank"):  # a TensorShapeProto, of any package
        return None if dims.unknown_rank else tuple(None if d.size == -1 else int(d.size) for d in dims.dim)
    if isinstance(dims, str | bytes):
        raise TypeError(f"A string is no TensorShape: {dims!r}; wrap it in a list, or make an integer of it")
    if isinstance(dims, Iterable):
        items: Iterable[Any] = dims  # pyright: ignore[reportUnknownVariableType]
        return tuple(Dimension(d).value for d in items)
    return (Dimension(dims).value,)


def as_shape(shape: ShapeLike) -> TensorShape:
    """Returns ``shape`` as a `TensorShape`."""
    return shape if isinstance(shape, TensorShape) else TensorShape(shape)


def unknown_shape(ndims: int | None = None) -> TensorShape:
    """Returns a shape of the given rank with unknown dimensions; an unknown shape for None."""
    return TensorShape(None if ndims is None else [None] * ndims)


def scalar() -> TensorShape:
    return TensorShape([])


def vector(length: DimensionLike) -> TensorShape:
    return TensorShape([length])


def matrix(rows: DimensionLike, cols: DimensionLike) -> TensorShape:
    return TensorShape([rows, cols])


def dimension_value(dimension: Any) -> Any:
    """Returns the value of a `Dimension`, or a number itself."""
    return dimension.value if isinstance(dimension, Dimension) else dimension


def dimension_at_index(shape: ShapeLike, index: int) -> Dimension:
    """Returns the dimension ``index`` of a shape; unknown where the rank is unknown."""
    dims = as_shape(shape).dims
    return Dimension(None) if dims is None else dims[index]


def less_specific(general: Dims, special: Dims) -> bool:
    """Returns whether every shape compatible with ``special`` is compatible with ``general``."""
    if general is None:
        return True
    try:
        return special is not None and merge_dims(general, special) == special
    except ValueError:
        return False
