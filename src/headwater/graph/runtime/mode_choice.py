"""The choice between kernels and an executable, compiled for the shapes of the inputs, for each part of a plan.

The choice depends only on the number of runs with inputs of these shapes, and on costs that are estimated from array
sizes. It does not depend on measured times: kernels and executables may round differently, so the results of a program
could then differ from run to run.

The first runs with inputs of a new shape use kernels. By estimate, each of these runs would have been faster in an
executable. When the saved times add up to the time of importing JAX and compiling the executable, the executable is
compiled in the background. As in the ski rental problem, the total time is then at most about twice the optimum. Most
programs train for hundreds of steps with one shape, so the first shape of a part is compiled from its second run on if
this repays within some hundred runs.

The number of the first run in the executable is fixed in advance, so that it does not depend on measured times either.
The runs on kernels until then wait for the compilation, which is several times faster without other work. The time of
each wait is limited. Only the first run in the executable waits for the rest of a compilation that takes longer than
estimated.

If an executable is not faster, as for a few operations on small arrays or for lookups and updates of rows, a part
always uses kernels. Measurements and rejected alternatives: docs/decisions/kernels.md.
"""

from __future__ import annotations

import enum
import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil
from operator import add
from typing import Any, Final, NamedTuple

#: Environment variable for all parts: ``off`` runs kernels, ``on`` runs executables, ``auto`` chooses.
VARIABLE: Final = "HEADWATER_JIT"
_log: Final = logging.getLogger("headwater.graph.runtime.compile")

# Nanoseconds, measured on a core of 2023. The choice depends mainly on their ratios.
_CALL_NS: Final = 2_500
_BYTES_PER_NS: Final = 8
# An operation on fewer bytes finds its arrays in the processor's cache, which is several times faster.
_CACHE_BYTES: Final = 1 << 20
_CACHE_FACTOR: Final = 4
_PRODUCTS_PER_NS: Final = 30
# Kernels copy the windows of a convolution before they multiply them; XLA does not. Both use several threads.
_WINDOW_PRODUCTS_PER_NS: Final = 32
_COMPILED_WINDOW_PRODUCTS_PER_NS: Final = 60
_VOLUME_PRODUCTS_PER_NS: Final = 10
_COMPILED_VOLUME_PRODUCTS_PER_NS: Final = 30
# Lookups, sums and updates of rows take as long in an executable as on kernels.
_ROWS_CALL_NS: Final = 10_000
_EXECUTABLE_CALL_NS: Final = 60_000
_UPDATED_NS: Final = 2_500  # for each array of a dense update: variables and slots are arguments and results
_FUSION: Final = 4  # factor by which fusion reduces the bytes that an executable reads and writes
# XLA's time grows faster than the number of operations.
_COMPILE_NS: Final = 200_000_000
_COMPILE_OPERATION_NS: Final = 2_000_000
# Chains of element-wise operations, which convolutions interrupt.
_COMPILE_PAIR_NS: Final = 4_000
_COMPILE_CONVOLUTION_NS: Final = 20_000_000
# A depthwise convolution becomes shifted products, which take as long to compile as this number of other convolutions.
_DEPTHWISE_CONVOLUTIONS: Final = 2
_COMPILE_ROWS_NS: Final = 50_000_000
_IMPORT_NS: Final = 1_000_000_000

#: The first shape of a part is compiled from its second run on if the executable pays off within this number of runs.
_EARLY_RUNS: Final = 600
#: Longest wait of a run for a compilation: in nanoseconds if the first shape is compiled early, and otherwise as a
#: multiple of the time of the run's kernels.
_LONGEST_EARLY_WAIT_NS: Final = 2_000_000_000
_LONGEST_WAIT: Final = 9

#: Number of shapes that are remembered: a limit on memory.
_MAX_SHAPES: Final = 64
#: Number of shapes whose costs are estimated from their operations: a limit on time. Further shapes are assumed to cost
#: as much as the most expensive of these.
_MAX_ESTIMATED_SHAPES: Final = 8


class Jit(enum.Enum):
    """The setting of a session or of the environment."""

    OFF = "off"
    ON = "on"
    AUTO = "auto"


def jit_of(level: int, environment: str | None = None) -> Jit:
    """Returns the environment's setting, or else the meaning of a session's ``global_jit_level``.

    Raises:
      ValueError: the value of the environment variable is not ``off``, ``on`` or ``auto``.
    """
    setting = (os.environ.get(VARIABLE, "") if environment is None else environment).lower()
    if setting:
        try:
            return Jit(setting)
        except ValueError:
            raise ValueError(f"{VARIABLE} must be off, on or auto, not {setting!r}") from None
    return Jit.OFF if level < 0 else Jit.ON if level > 0 else Jit.AUTO


class Work(NamedTuple):
    """The cost of operations on kernels, from the sizes of their arrays.

    Attributes:
      operations: number of operations.
      nbytes: bytes read and written.
      products: multiplications within matrix products.
      window_products: multiplications within convolutions of images.
      volume_products: multiplications within convolutions of volumes.
      rows: number of operations on rows: lookups, sums and updates, such as ``Gather`` and ``SparseApplyAdam``.
      row_nbytes: bytes that these operations read and write.
      convolutions: number of convolutions; a depthwise convolution counts several times.
      repeated: number of operations that the second and later iterations of loops run. Each costs a call of a kernel,
        but no compilation time, because all iterations are compiled as one.
      updated: number of arrays that dense updates combine: variables, slots and gradients.
    """

    operations: int = 0
    nbytes: int = 0
    products: int = 0
    window_products: int = 0
    volume_products: int = 0
    rows: int = 0
    row_nbytes: int = 0
    convolutions: int = 0
    repeated: int = 0
    updated: int = 0

    def plus(self, other: Work) -> Work:
        """Returns the sum of both."""
        return Work(*map(add, self, other))

    def kernels_ns(self) -> int:
        """Estimates the time on kernels."""
        multiplied = self.products // _PRODUCTS_PER_NS
        multiplied += self.window_products // _WINDOW_PRODUCTS_PER_NS
        multiplied += self.volume_products // _VOLUME_PRODUCTS_PER_NS
        called = (self.operations + self.repeated) * _CALL_NS
        return called + self.nbytes // _BYTES_PER_NS + multiplied + self._rows_ns()

    def executable_ns(self) -> int:
        """Estimates the time in an executable."""
        multiplied = self.products // _PRODUCTS_PER_NS
        multiplied += self.window_products // _COMPILED_WINDOW_PRODUCTS_PER_NS
        multiplied += self.volume_products // _COMPILED_VOLUME_PRODUCTS_PER_NS
        called = _EXECUTABLE_CALL_NS + self.updated * _UPDATED_NS
        return called + self.nbytes // _BYTES_PER_NS // _FUSION + multiplied + self._rows_ns()

    def _rows_ns(self) -> int:
        return self.rows * _ROWS_CALL_NS + self.row_nbytes // _BYTES_PER_NS

    def compilation_ns(self) -> int:
        """Estimates the compilation time."""
        operations = self.operations + self.rows
        pairs = operations * operations // (1 + self.convolutions)
        special = self.rows * _COMPILE_ROWS_NS + self.convolutions * _COMPILE_CONVOLUTION_NS
        return _COMPILE_NS + operations * _COMPILE_OPERATION_NS + pairs * _COMPILE_PAIR_NS + special

    def price_ns(self) -> int:
        """Estimates the time of importing JAX and of the compilation."""
        return _IMPORT_NS + self.compilation_ns()


def runs_until_compiled(work: Work) -> int | None:
    """Returns the number of runs after which an executable has repaid its compilation and the import of JAX; None if it
    never does."""
    saved = work.kernels_ns() - work.executable_ns()
    return None if saved <= 0 else ceil(work.price_ns() / saved)


class Mode(enum.Enum):
    """The form of execution of one run."""

    KERNELS = "kernels"
    KERNELS_AND_COMPILATION = "kernels and compilation"
    """On kernels; the caller has to start compiling the executable in the background, and waits for it after the run,
    for `ModeChooser.longest_wait_s` at most."""
    KERNELS_AND_WAIT = "kernels and wait"
    """On kernels; the caller then waits for the compilation in the same way."""
    EXECUTABLE = "executable"


class Switch(NamedTuple):
    """The switch of inputs of one shape to an executable.

    Attributes:
      compiled: number of runs on kernels after which the compilation begins.
      used: number of runs on kernels after which the executable is used.
      wait_ns: longest wait of each run between them for the compilation.
    """

    compiled: int
    used: int
    wait_ns: int


def switch_after(work: Work, *, first: bool = False) -> Switch | None:
    """Returns the switch to an executable; None if kernels are as fast.

    Args:
      work: the cost of a run.
      first: whether the inputs have the first shape of the part.
    """
    repaid = runs_until_compiled(work)
    if repaid is None:
        return None
    early = first and repaid <= _EARLY_RUNS
    compiled = 1 if early else repaid
    run_ns = work.kernels_ns()
    wait_ns = _LONGEST_EARLY_WAIT_NS if early else _LONGEST_WAIT * run_ns
    return Switch(compiled, compiled + ceil(work.price_ns() / (run_ns + wait_ns)), wait_ns)


def explanation_of(work: Work, switch: Switch | None) -> str:
    """Describes, for the log, the estimated times of a run and the number of runs before the executable is used."""
    times = f"{work.kernels_ns() / 1e6:.2f} ms on kernels, {work.executable_ns() / 1e6:.2f} ms in an executable"
    if switch is None:
        return f"stays on kernels: {times}"
    compilation = f"{work.compilation_ns() / 1e9:.1f} s of compilation after {switch.compiled} runs"
    return f"uses an executable after {switch.used} runs: {times}, {compilation}"


@dataclass(slots=True)
class _Shape:
    """Runs with inputs of one shape."""

    runs: int = 0
    switch: Switch | None = None


@dataclass(slots=True)
class ModeChooser:
    """Counts the runs of one part and chooses the mode of each run.

    Args:
      name: name of the part in the log.

    Attributes:
      distinct: number of shapes of its inputs so far.
      compiled: number of these shapes that have switched to an executable.
    """

    name: str = ""
    distinct: int = 0
    compiled: int = 0
    _shapes: OrderedDict[Any, _Shape] = field(default_factory=OrderedDict[Any, Any])
    _most_expensive: Work = field(default_factory=Work)
    _estimated: int = 0
    _last_executable: Any = None

    def next_mode(self, key: object) -> Mode:
        """Counts a run with inputs of shape ``key``; returns its mode."""
        # Most parts run with the same shapes in each step: compare with the last executable's key before any lookup.
        if key == self._last_executable:
            return Mode.EXECUTABLE
        shape = self._shapes.get(key)
        if shape is None:
            self.distinct += 1
            if self.distinct == 2:
                self._postpone_first()
            shape = self._shapes[key] = _Shape()
            if len(self._shapes) > _MAX_SHAPES:
                self._shapes.popitem(last=False)
        else:
            self._shapes.move_to_end(key)
        shape.runs += 1
        switch = shape.switch
        if switch is None or shape.runs <= switch.compiled:
            return Mode.KERNELS
        if shape.runs <= switch.used:
            return Mode.KERNELS_AND_COMPILATION if shape.runs == switch.compiled + 1 else Mode.KERNELS_AND_WAIT
        self.compiled += shape.runs == switch.used + 1
        self._last_executable = key
        return Mode.EXECUTABLE

    def _postpone_first(self) -> None:
        """Withdraws the early switch of the first shape, unless its compilation has begun: the early switch is only for
        parts with a single shape."""
        (first,) = self._shapes.values()
        if first.switch is not None and first.runs <= first.switch.compiled:
            first.switch = switch_after(self._most_expensive)

    def longest_wait_s(self, key: object) -> float:
        """Returns the longest wait for the compilation after a run with inputs of this shape, in seconds."""
        switch = self._shapes[key].switch
        return 0.0 if switch is None else switch.wait_ns / 1e9

    def runs_of(self, key: object) -> int:
        """Returns the number of runs with inputs of this shape."""
        return self._shapes[key].runs

    def cost_recorder(self, key: object) -> Callable[[Work], None] | None:
        """Returns a function to call with the cost of this run, if it is the first of its shape; None if the cost is
        known."""
        shape = self._shapes[key]
        if shape.runs > 1:
            return None
        if self._estimated >= _MAX_ESTIMATED_SHAPES:
            shape.switch = switch_after(self._most_expensive)
            return None

        first = self.distinct == 1

        def record_cost(work: Work) -> None:
            self._estimated += 1
            if work.kernels_ns() > self._most_expensive.kernels_ns():
                self._most_expensive = work
            shape.switch = switch_after(work, first=first)
            _log.debug("%s by estimate %s", self.name, explanation_of(work, shape.switch))

        return record_cost


def work_of(op_type: str, arrays: Sequence[Any], results: Sequence[Any]) -> Work:
    """Estimates the cost of one operation.

    Args:
      op_type: its type; for a gradient, the forward operation's type.
      arrays: its inputs.
      results: its outputs.
    """
    if op_type in _VIEWS:
        return Work(1)
    if op_type.startswith(_ROW_OPERATIONS) and arrays:
        # Exclude a table and its slots, which have equal sizes: only their indexed rows are read or written.
        touched = [value for value in arrays if value.size != arrays[0].size]
        return Work(rows=1, row_nbytes=sum(value.nbytes for value in (*touched, *results)))
    nbytes = sum(value.nbytes for value in (*arrays, *results))
    if op_type in _REDUCTIONS and results and arrays[0].size <= _SHORT_AXIS * results[0].size:
        nbytes *= _CACHE_FACTOR
    elif nbytes < _CACHE_BYTES:
        nbytes //= _CACHE_FACTOR
    products = window_products = convolutions = 0
    if op_type in _PRODUCTS and len(arrays) > 1 and results:
        # A product of [m, k] and [k, n] to [m, n]: the number of multiplications, m·k·n, is the square root of the
        # product of the three arrays' sizes, whichever of them are transposed.
        sizes = sorted((value.size for value in (*arrays[:2], results[0])), reverse=True)
        products = int((float(sizes[0]) * sizes[1] * max(sizes[2], 1)) ** 0.5)
    if op_type in _CONVOLUTIONS and len(arrays) > 1 and results:
        filters = min((value for value in (*arrays, *results) if value.ndim > 3), key=lambda value: value.size)
        others = [value for value in (*arrays, *results) if value.ndim > 3 and value is not filters]
        positions = max((value.size // max(value.shape[-1], 1) for value in others), default=0)
        convolutions = sum(value.ndim > 3 for value in results)  # a gradient may be computed for images and filters
        window_products = convolutions * positions * filters.size
    work = Work(1, nbytes, products, window_products, convolutions=convolutions)
    if op_type.startswith("Conv3D"):
        return work._replace(window_products=0, volume_products=window_products)
    if op_type == "DepthwiseConv2dNative" and window_products:
        # Each place of the window is a separate product with the whole image.
        height, width = arrays[1].shape[:2]
        return work._replace(nbytes=nbytes * height * width, convolutions=convolutions * _DEPTHWISE_CONVOLUTIONS)
    if op_type.startswith("Apply"):
        return work._replace(updated=sum(value.ndim > 0 for value in arrays))
    return work


#: Operations whose kernels return views or sizes and read no elements.
_VIEWS: Final = frozenset({"ExpandDims", "Rank", "Reshape", "Shape", "Size", "Squeeze"})
#: Reductions that NumPy computes several times slower along axes of at most `_SHORT_AXIS` elements. Sums and extremes
#: are not listed, because they have special kernels.
_REDUCTIONS: Final = frozenset({"ArgMax", "ArgMin", "Prod"})
_SHORT_AXIS: Final = 16
_ROW_OPERATIONS: Final = ("Gather", "Scatter", "SparseApply", "SparseSegment", "SumEqualRows", "UnsortedSegment")
_PRODUCTS: Final = frozenset({"BatchMatMul", "BatchMatMulV2", "MatMul", "Einsum"})
_CONVOLUTIONS: Final = frozenset(
    {
        *("Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput", "DepthwiseConv2dNative"),
        *("Conv3D", "Conv3DBackpropFilterV2", "Conv3DBackpropInputV2"),
    }
)
