"""How a part of a plan runs: on kernels, or in an executable that is compiled for the shapes of its inputs.

The choice is a function of counts: how often a part ran with inputs of these shapes, and what its operations cost by
the sizes of their arrays. Time has no say, so two runs of a program compute the same bits.

A shape begins on kernels. An executable pays when it has saved, by estimate, the time that compiling it takes; like the
renter of skis who buys them when the rent has reached their price, nobody pays more than twice the best. Where kernels
are as fast, as for a handful of operations on a few numbers, a part stays with them.
"""

from __future__ import annotations

import enum
import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

#: Environment variable that says how all parts run: ``off`` on kernels, ``on`` in executables, or ``auto``.
VARIABLE: Final = "HEADWATER_JIT"

# Nanoseconds, measured on a core of 2023. Only their ratios matter much.
_CALL_NS: Final = 2_500
_BYTES_PER_NS: Final = 4
_PRODUCTS_PER_NS: Final = 10
_EXECUTABLE_CALL_NS: Final = 30_000
_FUSION: Final = 4  # an executable reads and writes that many times fewer bytes
_COMPILE_NS: Final = 60_000_000
_COMPILE_OPERATION_NS: Final = 6_000_000

_MOST_SHAPES: Final = 64
_MOST_WEIGHED: Final = 8


class Jit(enum.Enum):
    """What a session, or the environment, asks for."""

    OFF = "off"
    ON = "on"
    AUTO = "auto"


def jit_of(level: int, environment: str | None = None) -> Jit:
    """What a session's ``global_jit_level`` asks for, unless the environment does.

    Raises:
      ValueError: the environment variable has another value than ``off``, ``on`` or ``auto``.
    """
    said = (os.environ.get(VARIABLE, "") if environment is None else environment).lower()
    if said:
        try:
            return Jit(said)
        except ValueError:
            raise ValueError(f"{VARIABLE} is off, on or auto, and not {said!r}") from None
    return Jit.OFF if level < 0 else Jit.ON if level > 0 else Jit.AUTO


@dataclass(frozen=True, slots=True)
class Work:
    """What operations cost on kernels, by the sizes of their arrays.

    Attributes:
      operations: how many there are.
      nbytes: what they read and write.
      products: multiplications within matrix products and convolutions.
    """

    operations: int = 0
    nbytes: int = 0
    products: int = 0

    def plus(self, other: Work) -> Work:
        """The work of both."""
        return Work(self.operations + other.operations, self.nbytes + other.nbytes, self.products + other.products)

    def kernels_ns(self) -> int:
        """The time that it takes on kernels."""
        return self.operations * _CALL_NS + self.nbytes // _BYTES_PER_NS + self.products // _PRODUCTS_PER_NS

    def executable_ns(self) -> int:
        """The time that it takes in an executable."""
        return _EXECUTABLE_CALL_NS + self.nbytes // _BYTES_PER_NS // _FUSION + self.products // _PRODUCTS_PER_NS

    def compilation_ns(self) -> int:
        """The time that compiling it takes."""
        return _COMPILE_NS + self.operations * _COMPILE_OPERATION_NS


def runs_until_compiled(work: Work) -> int | None:
    """After how many runs an executable has paid for itself; None where it never does."""
    saved = work.kernels_ns() - work.executable_ns()
    return None if saved <= 0 else -(-work.compilation_ns() // saved)


@dataclass(slots=True)
class _Shape:
    """Runs with inputs of one shape."""

    runs: int = 0
    until: int | None = None


@dataclass(slots=True)
class Ways:
    """Counts the runs of one part and says how each goes.

    Attributes:
      distinct: how many shapes its inputs have had.
      compiled: for how many of these executables took over.
    """

    distinct: int = 0
    compiled: int = 0
    _shapes: OrderedDict[Any, _Shape] = field(default_factory=OrderedDict[Any, Any])
    _heaviest: Work = field(default_factory=Work)
    _weighed: int = 0
    _hot: Any = None

    def uses_executable(self, key: object) -> bool:
        """Whether the next run with inputs of shape ``key`` is one in an executable; counts it."""
        if key == self._hot:
            return True
        shape = self._shapes.get(key)
        if shape is None:
            self.distinct += 1
            shape = self._shapes[key] = _Shape()
            if len(self._shapes) > _MOST_SHAPES:
                self._shapes.popitem(last=False)
        else:
            self._shapes.move_to_end(key)
        shape.runs += 1
        if shape.until is None or shape.runs <= shape.until:
            return False
        self.compiled += shape.runs == shape.until + 1
        self._hot = key
        return True

    def runs_of(self, key: object) -> int:
        """How many runs there were with inputs of this shape."""
        return self._shapes[key].runs

    def weigher(self, key: object) -> Callable[[Work], None] | None:
        """What is to be told what this run, the first of its shape, costs; None where that is known."""
        shape = self._shapes[key]
        if shape.runs > 1:
            return None
        if self._weighed >= _MOST_WEIGHED:
            shape.until = runs_until_compiled(self._heaviest)
            return None

        def weigh(work: Work) -> None:
            self._weighed += 1
            if work.kernels_ns() > self._heaviest.kernels_ns():
                self._heaviest = work
            shape.until = runs_until_compiled(work)

        return weigh


def work_of(op_type: str, arrays: Sequence[Any], results: Sequence[Any]) -> Work:
    """What one operation costs.

    Args:
      op_type: its type; that of the forward operation for a gradient.
      arrays: its inputs.
      results: its outputs.
    """
    touched = arrays
    if op_type.startswith(_OF_ROWS) and arrays:
        # Of a table, and of its slots, only the rows that the others are about.
        touched = [value for value in arrays if value.size != arrays[0].size]
    nbytes = sum(value.nbytes for value in (*touched, *results))
    products = 0
    if op_type in _PRODUCTS and len(arrays) > 1 and results:
        # [m, k] by [k, n] to [m, n]: of the three sizes, whichever they are, the root of the product is m·k·n.
        sizes = sorted((value.size for value in (*arrays[:2], results[0])), reverse=True)
        products = int((float(sizes[0]) * sizes[1] * max(sizes[2], 1)) ** 0.5)
    if op_type in _CONVOLUTIONS and len(arrays) > 1 and results:
        filters = min((value for value in (*arrays, *results) if value.ndim > 3), key=lambda value: value.size)
        others = [value for value in (*arrays, *results) if value.ndim > 3 and value is not filters]
        positions = max((value.size // max(value.shape[-1], 1) for value in others), default=0)
        products = positions * filters.size
    return Work(1, nbytes, products)


_OF_ROWS: Final = ("Gather", "Scatter", "SparseApply")
_PRODUCTS: Final = frozenset({"BatchMatMul", "BatchMatMulV2", "MatMul", "Einsum"})
_CONVOLUTIONS: Final = frozenset(
    {"Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput", "Conv3D", "DepthwiseConv2dNative"}
)
