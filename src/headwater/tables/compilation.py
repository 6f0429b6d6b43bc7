"""Compiles functions with numba to object files, in a process of its own: ``python -m headwater.tables.compilation``.

numba's functions return errors, count references to the memory of arrays, and get each array as seven arguments. So an
entry is compiled for each function: it reads and checks the arguments that Python passes, calls the function, and
writes the results; see `headwater.tables.compiled.Signature`. The object file also has functions that
allocate memory, in place of numba's own, so that it needs only the C library.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import importlib
import queue
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import llvmlite.binding
import llvmlite.ir
import numba
import numpy as np

from headwater.compilation_cache import Entries
from headwater.tables import instructions, machine_code
from headwater.tables.compiled import Callback, Compiled, Kind, Signature

_numba: Any = numba
_ir: Any = llvmlite.ir
_llvm: Any = llvmlite.binding
_WORD: Final = _ir.IntType(64)
_INT: Final = _ir.IntType(32)
_BYTES: Final = _ir.IntType(8).as_pointer()
_ALIGNMENT: Final = 64
#: Bytes before the memory of an array: numba's ``MemInfo``, which begins with the number of references, and whose word
#: 3 is the address of the memory.
_HEADER_BYTES: Final = 64
_ADDRESS_WORD: Final = 3
#: Words of NumPy's ``PyArrayObject_fields`` and ``PyArray_Descr`` after the header of a Python object.
_DATA: Final = 0
_RANK: Final = 1
_SHAPE: Final = 2
_DTYPE: Final = 5
_FLAGS: Final = 6
_KIND: Final = 1
_ITEM_SIZE: Final = 3
_C_CONTIGUOUS: Final = 1
_LOW: Final = 0xFFFFFFFF
_MEMORY: Final = frozenset({"malloc", "free", "memcpy", "memmove", "memset", "bcmp", "memcmp"})
_REAL: Final = frozenset({"exp", "log", "pow", "cos", "sin", "sqrt"})
_LIBRARY: Final = _MEMORY | _REAL | {f"{name}f" for name in _REAL}
"""Functions of the C library."""

_IDLE_S: Final = 10.0
"""Time without a request after which this process ends."""

_dispatchers: Final[dict[str, Any]] = {}


def _type_of_function(function: Compiled) -> object:
    return _dispatcher_of(function)._numba_type_


Compiled.type_of = _type_of_function


def _dispatcher_of(function: Compiled) -> Any:
    if function.name not in _dispatchers:
        _dispatchers[function.name] = instructions.inlined(function.function)
    return _dispatchers[function.name]


def object_code(function: Compiled) -> bytes:
    """Returns an object file with a function.

    Raises:
      TypeError: a result does not have the type of its annotation.
    """
    word = (_numba.types.int64,)
    symbol = machine_code.symbol_of(machine_code.key_of(function.name))
    signature = None if isinstance(function, Callback) else Signature(function.function)
    entry = _dispatcher_of(function) if signature is None else _entry(function, signature)
    entry.compile(word)
    if signature is not None:
        _require_results(function, signature)
    module = _llvm.parse_assembly(entry.inspect_llvm(word))
    native = entry.overloads[word].fndesc.llvm_func_name
    runtime = _ir.Module()
    runtime.triple = module.triple
    runtime.data_layout = module.data_layout
    if signature is None:
        _add_call(runtime, native, symbol)
    else:
        _add_call_with_frame(runtime, native, symbol, [kind.c_type for kind in signature.arguments.values()])
    _add_allocation(runtime)
    module.link_in(_llvm.parse_assembly(str(runtime)))
    module.verify()
    missing = [
        each.name
        for each in module.functions
        if each.is_declaration and not each.name.startswith("llvm.") and each.name not in _LIBRARY
    ]
    if missing:
        raise TypeError(f"the machine code of {function.name} needs functions of numba: {', '.join(missing)}")
    return machine_code.target_machine().emit_object(module)


def _entry(function: Compiled, signature: Signature) -> Any:
    """Returns the entry of a function: a function of the address of a frame, generated as text, for numba.

    A frame is an array of words: the address of the results, and the arguments; see `Signature`. The entry returns 0,
    or minus the position of an argument with a wrong type.
    """
    scope: dict[str, Any] = {"np": np, "function": _dispatcher_of(function), "carray": _numba.carray}
    scope |= {name: getattr(instructions, name) for name in ("hold", "words_at", "doubles_at")}
    count = len(signature.arguments) + 1
    lines = ["def entry(frame):", f" words, reals = words_at(frame, {count}), doubles_at(frame, {count})"]
    arguments: list[str] = []
    for place, kind in enumerate(signature.arguments.values(), start=1):
        if kind.rank:
            scope[f"pointer_{kind.dtype}"] = instructions.pointer_to(_numba.from_dtype(kind.dtype))
            lines += [
                f" array = words_at(words[{place}] + {object.__basicsize__}, {_FLAGS + 1})",
                f" dtype = words_at(array[{_DTYPE}] + {object.__basicsize__}, {_ITEM_SIZE + 1})",
                f" if (array[{_FLAGS}] & {_C_CONTIGUOUS}) == 0 or (array[{_RANK}] & {_LOW}) != {kind.rank}"
                f" or (dtype[{_KIND}] & 255) != {ord(kind.dtype.kind)} or dtype[{_ITEM_SIZE}] != {kind.dtype.itemsize}"
                f" or ((dtype[{_KIND}] >> 16) & 255) == {ord('>' if sys.byteorder == 'little' else '<')}:",
                f"  return {-place}",
                f" shape{place} = words_at(array[{_SHAPE}], {kind.rank})",
                f" data{place} = array[{_DATA}]",
            ]
            sizes = "".join(f"shape{place}[{axis}], " for axis in range(kind.rank))
            arguments.append(f"carray(pointer_{kind.dtype}(data{place}), ({sizes}))")
        elif kind.dtype == np.bool_:
            arguments.append(f"words[{place}] != 0")
        else:
            arguments.append(f"np.{kind.dtype}({'reals' if kind.dtype.kind == 'f' else 'words'}[{place}])")
    fields = len(signature.fields)
    lines += [
        f" out, real_out = words_at(words[0], {fields}), doubles_at(words[0], {fields})",
        f" results = function({', '.join(arguments)})",
    ]
    places = {name: place for place, (name, _) in enumerate(signature.fields)}
    for number, kind in enumerate(signature.results):
        value, place = f"results[{number}]" if signature.is_tuple else "results", places[f"result{number}"]
        if kind.rank:
            lines.append(f" out[{place - 1}], out[{place}] = hold({value}), {value}.ctypes.data")
            lines += [f" out[{place + 1 + axis}] = {value}.shape[{axis}]" for axis in range(kind.rank)]
        elif kind.dtype.kind == "f":
            lines.append(f" real_out[{place}] = {value}")
        else:
            lines.append(f" out[{place}] = np.int64({value})")
    exec("\n".join([*lines, " return 0"]), scope)
    return instructions.inlined(scope["entry"])


def _require_results(function: Compiled, signature: Signature) -> None:
    """Raises TypeError if a function, which is compiled, does not return the types of its annotations."""
    arguments = tuple(_type_of(kind) for kind in signature.arguments.values())
    returned = _dispatcher_of(function).overloads[arguments].signature.return_type
    types = list(returned) if signature.is_tuple else [returned] if signature.results else []
    expected = [_type_of_result(kind, each) for kind, each in zip(signature.results, types, strict=True)]
    if expected != types:
        raise TypeError(f"{function.name} returns {returned}, not {expected}")


def _type_of_result(kind: Kind, returned: Any) -> Any:
    """Returns numba's type of a result; ``returned`` for an integer, since each integer fits into a word."""
    is_integer = not kind.rank and kind.dtype.kind in "iu" and isinstance(returned, _numba.types.Integer)
    return returned if is_integer else _type_of(kind)


def _type_of(kind: Kind) -> Any:
    number = _numba.from_dtype(kind.dtype)
    return _numba.types.Array(number, kind.rank, "C") if kind.rank else number


def _call(module: Any, native: str, builder: Any, word: Any) -> Any:
    """Generates a call of numba's function of a word; returns its result or, if it raises an error, its status."""
    kind = _ir.FunctionType(_INT, [_WORD.as_pointer(), _BYTES.as_pointer(), _WORD])
    result = builder.alloca(_WORD)
    status = builder.call(_ir.Function(module, kind, native), [result, builder.alloca(_BYTES), word])
    succeeded = builder.icmp_signed("==", status, _INT(0))
    return builder.select(succeeded, builder.load(result), builder.zext(status, _WORD))


def _add_call(module: Any, native: str, symbol: str) -> None:
    """Adds a function of a word with the C calling convention that calls numba's function of a word."""
    function = _ir.Function(module, _ir.FunctionType(_WORD, [_WORD]), symbol)
    builder = _ir.IRBuilder(function.append_basic_block())
    builder.ret(_call(module, native, builder, function.args[0]))


def _add_call_with_frame(module: Any, native: str, symbol: str, types: Sequence[object]) -> None:
    """Adds a function with the C calling convention that writes its arguments to a frame, and calls an entry.

    Args:
      native: the symbol of the entry.
      symbol: the symbol of the function.
      types: types of the arguments after the first one, the address of the results.
    """
    arguments = [_WORD, *[_ir.DoubleType() if each is ctypes.c_double else _WORD for each in types]]
    function = _ir.Function(module, _ir.FunctionType(_WORD, arguments), symbol)
    builder = _ir.IRBuilder(function.append_basic_block())
    frame = builder.alloca(_WORD, len(arguments))
    for place, argument in enumerate(function.args):
        at = builder.gep(frame, [_INT(place)])
        builder.store(argument, builder.bitcast(at, argument.type.as_pointer()))
    builder.ret(_call(module, native, builder, builder.ptrtoint(frame, _WORD)))


def _add_allocation(module: Any) -> None:
    """Adds the functions that allocate and free blocks of memory, by the names that numba's code calls."""
    malloc = _ir.Function(module, _ir.FunctionType(_BYTES, [_WORD]), "malloc")
    free = _ir.Function(module, _ir.FunctionType(_ir.VoidType(), [_BYTES]), "free")

    allocate = _ir.Function(module, _ir.FunctionType(_BYTES, [_WORD, _INT]), "NRT_MemInfo_alloc_aligned")
    allocate.linkage = "linkonce_odr"
    builder = _ir.IRBuilder(allocate.append_basic_block())
    size, alignment = allocate.args[0], builder.zext(allocate.args[1], _WORD)
    block = builder.call(malloc, [builder.add(builder.add(size, alignment), _WORD(_HEADER_BYTES))])
    with builder.if_then(builder.icmp_unsigned("!=", block, _BYTES(None))):
        words = builder.bitcast(block, _WORD.as_pointer())
        end = builder.add(builder.ptrtoint(block, _WORD), builder.add(_WORD(_HEADER_BYTES - 1), alignment))
        for word in range(_HEADER_BYTES // 8):
            value = _WORD(1 if word == 0 else 0)
            if word == _ADDRESS_WORD:
                value = builder.and_(end, builder.neg(alignment))
            builder.store(value, builder.gep(words, [_WORD(word)]))
    builder.ret(block)

    destroy = _ir.Function(module, _ir.FunctionType(_ir.VoidType(), [_BYTES]), "NRT_MemInfo_call_dtor")
    destroy.linkage = "linkonce_odr"
    builder = _ir.IRBuilder(destroy.append_basic_block())
    builder.call(free, destroy.args)
    builder.ret_void()


def compile_into(entries: Entries, requests: queue.Queue[tuple[str, str]]) -> None:
    """Compiles functions and adds them to a cache, until an empty name arrives, or no request for a while.

    A function that another process is compiling for the same cache is put off, until there is nothing else to do.

    Args:
      requests: names and keys of functions.

    Raises:
      RuntimeError: the package has changed since the process that requests a function was started.
    """
    put_off: list[tuple[str, str]] = []
    with (entries.folder / "compiling").open("wb") as locks:
        while True:
            try:
                request = requests.get(timeout=0 if put_off else _IDLE_S)
            except queue.Empty:
                if not put_off:
                    return
                request = put_off[0]
            name, key = request
            if not name:
                return
            if key != machine_code.key_of(name):
                raise RuntimeError("another version of the package has been installed meanwhile")
            place = int(key[:8], 16)  # the lock of a function is a byte of the file
            try:
                fcntl.lockf(locks, fcntl.LOCK_EX | (0 if request in put_off else fcntl.LOCK_NB), 1, place)
            except BlockingIOError:
                put_off.append(request)
                continue
            if request in put_off:
                put_off.remove(request)
            if not entries.has(key):
                module, function = name.rsplit(".", 1)
                machine_code.store(entries, key, object_code(getattr(importlib.import_module(module), function)))
            fcntl.lockf(locks, fcntl.LOCK_UN, 1, place)


def _read_requests(requests: queue.Queue[tuple[str, str]]) -> None:
    for line in sys.stdin:
        name, key = line.split()
        requests.put((name, key))
    # The process that started this one has ended.
    with contextlib.suppress(queue.Empty):
        while True:
            requests.get_nowait()
    requests.put(("", ""))


if __name__ == "__main__":
    # Signals to all processes of a task are for its program, which may need a function to save its state.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    requested: queue.Queue[tuple[str, str]] = queue.Queue()
    threading.Thread(target=_read_requests, args=(requested,), daemon=True).start()
    compile_into(Entries(Path(sys.argv[1])), requested)
