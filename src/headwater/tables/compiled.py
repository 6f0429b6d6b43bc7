"""Functions that run as machine code: loops over the elements of arrays, which Python would interpret slowly.

numba compiles them, in a process of its own (`headwater.tables.compilation`), so that tasks neither import numba, which
takes a second and 90 MB, nor wait for the compilation of functions that have an alternative. The machine code is kept
in the cache folder of `headwater.compilation_cache`; llvmlite alone loads it.

The annotations of a function's arguments and results are its C signature: int64, float64, booleans, NumPy's types of
numbers, and C-contiguous arrays with one dimension, or two if annotated as `Matrix`. A function may return a tuple of
these. Functions run without the GIL.
"""

from __future__ import annotations

import ctypes
import functools
import operator
import threading
import types
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Final, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from headwater.tables import machine_code

_Number = TypeVar("_Number", bound=np.generic)
#: An array with two dimensions.
Matrix = Annotated[NDArray[_Number], 2]
Words = NDArray[np.int64]
Reals = NDArray[np.float32]
#: The type of 64-bit numbers in compiled functions.
U64: Any = np.uint64

_CALL_NS: Final = 20_000
"""A call that saves less work than this is not worth the conversion of its arguments."""
_START_NS: Final = 100_000_000
"""The work, in nanoseconds, after which a process uses machine code. Loading llvmlite takes a third of it; compilation
takes 1 to 12 s, but in another process, and for all later launches, too."""
_INTERPRETED_ELEMENTS: Final = 20_000
"""The size of arrays for which the compilation is faster than Python, which takes about 5 microseconds per element."""
_PYTHON_TYPES: Final = {int: np.dtype(np.int64), float: np.dtype(np.float64), bool: np.dtype(np.bool_)}


class Kind:
    """Type of an argument or a result.

    Attributes:
      dtype: type of a number, or of the elements of an array.
      rank: the number of dimensions of an array, 0 for a number.
    """

    def __init__(self, hint: Any) -> None:
        self.rank = 0
        if get_origin(hint) is Annotated:
            self.rank = hint.__metadata__[0]
            hint = hint.__origin__
        if arguments := get_args(hint):  # of `NDArray`, or of the class for which it is an alias in older NumPy
            self.rank = self.rank or 1
            hint = (get_args(arguments[-1]) or arguments)[-1]
        self.dtype = _PYTHON_TYPES.get(hint) or np.dtype(hint)

    @property
    def c_type(self) -> Any:
        """The type of an argument, or of a result that is a number."""
        if self.rank:
            return ctypes.py_object
        return {"f": ctypes.c_double, "u": ctypes.c_uint64}.get(self.dtype.kind, ctypes.c_int64)


class Signature:
    """Types of a function's arguments and results.

    Machine code gets the address of the results, then the arguments: numbers of 8 bytes, and the addresses of NumPy's
    arrays as Python objects. Each result that is a number is a field of 8 bytes. A result that is an array is a field
    for the block of memory to release, one for the address, and one for each dimension.

    Attributes:
      arguments: names and types of the arguments.
      results: types of the results.
      is_tuple: whether the function returns a tuple; otherwise it has one result or none.
      fields: names and types of the fields of results.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        hints = get_type_hints(function, include_extras=True)
        result = hints.pop("return")
        self.arguments: Final = {name: Kind(hint) for name, hint in hints.items()}
        self.is_tuple: Final = get_origin(result) is tuple
        hints_of_results = get_args(result) if self.is_tuple else () if result is type(None) else (result,)
        self.results: Final = [Kind(hint) for hint in hints_of_results]
        self.fields: Final[list[tuple[str, Any]]] = []
        for number, kind in enumerate(self.results):
            if kind.rank:
                sizes = [f"size{number}_{axis}" for axis in range(kind.rank)]
                names = [f"block{number}", f"result{number}", *sizes]
                self.fields.extend((name, ctypes.c_int64) for name in names)
            else:
                self.fields.append((f"result{number}", kind.c_type))


class _Use:
    """Whether this process uses machine code, and the work for which it would have been useful before."""

    has_begun = False
    done_ns = 0  # shared by all threads without a lock: an addition may be lost


class Compiled:
    """A function whose calls from Python run as machine code.

    Args:
      function: the function in Python, which numba can compile.
    """

    #: Returns numba's type of a function; set by `headwater.tables.compilation`.
    type_of: ClassVar[Callable[[Compiled], object]]

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function: Final = function
        self.name: Final = f"{function.__module__}.{function.__qualname__}"
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self._lock: Final = threading.Lock()
        self._call: Callable[..., Any] = self._call_first
        self._is_loaded = False

    def __call__(self, *arguments: Any) -> Any:
        """Calls the function.

        The first calls load the machine code, or request its compilation if it is not in the cache. Until it is
        compiled, Python interprets calls with small arrays, if it can; other calls wait.

        Raises:
          TypeError: an argument does not have the type of its annotation.
        """
        return self._call(*arguments)

    def pays(self, work_ns: int) -> bool:
        """Returns whether a call is faster than another way to the same result.

        This is the ski rental problem: a process begins to use machine code when the estimated time of the work done
        without it equals the cost of the beginning. While another process compiles the function, the result is False.

        Args:
          work_ns: estimated time of the other way, in nanoseconds.
        """
        if work_ns < _CALL_NS:
            return False
        if self._is_loaded:
            return True
        if not _Use.has_begun:
            _Use.done_ns += work_ns
            if _Use.done_ns < _START_NS:
                return False
        if machine_code.prepare(self.name):
            self._load()
        return self._is_loaded

    def _call_first(self, *arguments: Any) -> object:
        size = sum(argument.size for argument in arguments if isinstance(argument, np.ndarray))
        if size > _INTERPRETED_ELEMENTS or self._interpreted is None or machine_code.prepare(self.name):
            self._load()
            return self._call(*arguments)
        with np.errstate(all="ignore"):
            return self._interpreted(*arguments)

    @functools.cached_property
    def _interpreted(self) -> Callable[..., Any] | None:
        """The function with all functions that it calls, for Python; None if it needs instructions."""
        names = self.function.__code__.co_names
        called = {name: value for name, value in self.function.__globals__.items() if name in names}
        for name, value in called.items():
            if isinstance(value, Compiled):
                called[name] = value._interpreted
            if isinstance(value, _Instruction) or called[name] is None:
                return None
        return types.FunctionType(self.function.__code__, {**self.function.__globals__, **called})

    def _load(self) -> None:
        _Use.has_begun = True
        with self._lock:
            if not self._is_loaded:
                name = self.function.__name__
                self._call = _caller(name, Signature(self.function), machine_code.address_of(self.name))
                self._is_loaded = True

    @property
    def _numba_type_(self) -> object:
        """The type of this function in a function that calls it, in the process that compiles."""
        return Compiled.type_of(self)


class Callback(Compiled):
    """A function of one word, the address of a structure, that other libraries call by its address."""

    @functools.cached_property
    def address(self) -> int:
        """The address of the machine code, which stays valid until the process ends."""
        return machine_code.address_of(self.name)


compiled = Compiled


class _Instruction:
    """A function of `headwater.tables.instructions`, which imports numba, for use in compiled functions.

    Args:
      name: its name.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *arguments: object) -> Any:
        raise TypeError(f"{self._name} can be called in compiled functions only")

    @property
    def _numba_type_(self) -> object:
        from headwater.tables import instructions  # noqa: PLC0415  imports numba: only in the process that compiles

        return getattr(instructions, self._name)._numba_type_


words_at: Final = _Instruction("words_at")
numbers_at: Final = _Instruction("numbers_at")
reals_at: Final = _Instruction("reals_at")
doubles_at: Final = _Instruction("doubles_at")
grid_at: Final = _Instruction("grid_at")
byte_at: Final = _Instruction("byte_at")
word_at: Final = _Instruction("word_at")
ones_of: Final = _Instruction("ones_of")
trailing_zeros_of: Final = _Instruction("trailing_zeros_of")
try_lock: Final = _Instruction("try_lock")
unlock: Final = _Instruction("unlock")
add: Final = _Instruction("add")
prefetch: Final = _Instruction("prefetch")
copy_numbers: Final = _Instruction("copy_numbers")
add_reals: Final = _Instruction("add_reals")
adagrad_reals: Final = _Instruction("adagrad_reals")
damped_adagrad_reals: Final = _Instruction("damped_adagrad_reals")


class _Memory:
    """Memory of a result, with the shape and type of an array.

    Args:
      block: the block to release, or 0 if the memory belongs to an argument.
    """

    def __init__(self, block: int, address: int, shape: tuple[int, ...], dtype: str) -> None:
        self._block = block
        self.__array_interface__ = {"data": (address, False), "shape": shape, "typestr": dtype, "version": 3}

    def __del__(self) -> None:
        if self._block:
            machine_code.release(self._block)


def _array(block: int, address: int, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    result = np.asarray(_Memory(block, address, shape, dtype))
    return result if block else result.copy()


def _caller(name: str, signature: Signature, address: int) -> Callable[..., Any]:
    """Returns a function that calls machine code at an address.

    The function is generated as text, since a loop over the types would take longer than most calls.
    """
    results = type("Results", (ctypes.Structure,), {"_fields_": signature.fields})
    types = [kind.c_type for kind in signature.arguments.values()]
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.POINTER(results), *types)(address)
    values: dict[str, Any] = {"Results": results, "run": run, "array": _array, "check": _check}
    values |= {"np": np, "index": operator.index, "arguments": signature.arguments}
    lines: list[str] = []
    for argument, kind in signature.arguments.items():
        if kind.rank:
            lines.append(f" if type({argument}) is not np.ndarray: {argument} = np.asarray({argument})")
        elif kind.dtype.kind != "f":
            lines.append(f" {argument} = {'bool' if kind.dtype == np.bool_ else 'index'}({argument})")
    parameters = ", ".join(signature.arguments)
    lines += [" results = Results()"] if signature.results else []
    lines += [
        f" status = run({'results' if signature.results else 'None'}, {parameters})",
        f" if status: check({name!r}, arguments, status, ({parameters},))",
    ]
    returned: list[str] = []
    for number, kind in enumerate(signature.results):
        result = f"results.result{number}"
        if kind.rank:
            shape = ", ".join(f"results.size{number}_{axis}" for axis in range(kind.rank))
            returned.append(f"array(results.block{number}, {result}, ({shape},), {kind.dtype.str!r})")
        else:
            returned.append(f"bool({result})" if kind.dtype == np.bool_ else result)
    lines.append(f" return {', '.join(returned) + ',' * (signature.is_tuple and len(returned) == 1)}")
    exec(f"def {name}({parameters}):\n" + "\n".join(lines), values)
    return values[name]


def _check(name: str, arguments: dict[str, Kind], status: int, values: tuple[Any, ...]) -> None:
    """Raises the error for a status other than 0: minus the position, from 1, of an argument of a wrong type."""
    if status > 0:
        raise MemoryError(f"{name} cannot allocate memory for its results")
    argument, kind = list(arguments.items())[-status - 1]
    value = values[-status - 1]
    raise TypeError(
        f"argument {argument} of {name} has type {value.dtype} and shape {value.shape}"
        f"{'' if value.flags.c_contiguous else ', not contiguous'}: it must be contiguous, of type {kind.dtype}, and "
        f"have {kind.rank} dimensions"
    )
