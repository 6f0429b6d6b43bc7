"""Operations for compiled functions that Python cannot express, such as locks and vector instructions.

Compiled functions get the addresses of a table's memory as numbers, so that one call can use any number of arrays that
grow independently. The functions of this module turn an address into an array, and acquire and release locks that are
words in memory. These functions do not check bounds: only this package calls them, with addresses of mappings that the
package holds.

Only the process that compiles imports this module (see `headwater.tables.compilation`). Functions use its operations by
their names in `headwater.tables.compiled`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import llvmlite.ir
import numba
import numpy as np
from numba import extending

_numba: Any = numba
_types: Any = _numba.types
_ir: Any = llvmlite.ir
_extending: Any = extending
_intrinsic: Any = _extending.intrinsic
#: With NumPy's rules for errors, a division by zero is an infinity or NaN, as in NumPy and XLA.
OPTIONS: Final[Any] = {"nogil": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def inlined(function: Callable[..., Any]) -> Any:
    """Returns ``function`` for use in compiled functions."""
    return _numba.njit(**OPTIONS)(function)


def pointer_to(element: object) -> Any:
    """Returns a function that converts an address to a pointer to elements of a type."""

    @_intrinsic
    def pointer(typing: object, address: object) -> Any:
        signature = _types.CPointer(element)(address)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return signature, generate

    return pointer


_to_words = pointer_to(_types.int64)
_to_numbers = pointer_to(_types.uint32)
_to_reals = pointer_to(_types.float32)
_to_doubles = pointer_to(_types.float64)


@_intrinsic
def _hold(typing: object, array: object) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = _ir.IntType(64)
        block = builder.ptrtoint(context.make_helper(builder, signature.args[0], arguments[0]).meminfo, word)
        with builder.if_then(builder.icmp_unsigned("!=", block, word(0))):
            # Count the reference here: numba removes some of its own calls that count.
            count = builder.inttoptr(block, word.as_pointer())
            builder.store(builder.add(builder.load(count), word(1)), count)
        return block

    return _types.int64(array), generate


@inlined
def hold(array: object) -> int:
    """Keeps the memory of an array after its last use; returns the address of the block to release, 0 if there is none
    because the memory belongs to the caller."""
    return _hold(array)


@inlined
def words_at(address: int, count: int) -> Any:
    """Returns ``count`` int64 at an address as an array."""
    return _numba.carray(_to_words(address), count)


@inlined
def numbers_at(address: int, count: int) -> Any:
    """Returns ``count`` uint32 at an address as an array."""
    return _numba.carray(_to_numbers(address), count)


@inlined
def reals_at(address: int, count: int) -> Any:
    """Returns ``count`` float32 at an address as an array."""
    return _numba.carray(_to_reals(address), count)


@inlined
def doubles_at(address: int, count: int) -> Any:
    """Returns ``count`` float64 at an address as an array."""
    return _numba.carray(_to_doubles(address), count)


@inlined
def grid_at(address: int, rows: int, columns: int) -> Any:
    """Returns ``rows`` by ``columns`` float32 at an address as an array."""
    return _numba.carray(_to_reals(address), (rows, columns))


def _load(element: Any, bits: int) -> Any:
    @_intrinsic
    def load(typing: object, address: object) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = builder.inttoptr(arguments[0], _ir.IntType(bits).as_pointer())
            return builder.zext(builder.load(pointer, align=1), _ir.IntType(64))

        return element(address), generate

    return load


_byte = _load(_types.int64, 8)
_word = _load(_types.uint64, 64)


@inlined
def byte_at(address: int) -> int:
    """Returns the byte at an address, as int64."""
    return _byte(address)


@inlined
def word_at(address: int) -> Any:
    """Returns eight bytes at an address, which need not be aligned, as uint64."""
    return _word(address)


def _count(name: str, *flags: int) -> Any:
    @_intrinsic
    def count(typing: object, word: object) -> Any:
        def generate(context: object, builder: Any, signature: object, arguments: Any) -> Any:
            return getattr(builder, name)(arguments[0], *(_ir.IntType(1)(flag) for flag in flags))

        return _types.uint64(_types.uint64), generate

    return count


_ones = _count("ctpop")
_zeros = _count("cttz", 1)


@inlined
def ones_of(word: object) -> Any:
    """Returns the number of bits of a uint64 that are 1, as uint64."""
    return _ones(word)


@inlined
def trailing_zeros_of(word: object) -> Any:
    """Returns the number of zeros below the lowest 1 of a uint64 other than 0, as uint64."""
    return _zeros(word)


@_intrinsic
def _exchange(typing: object, pointer: object, old: object, new: object) -> Any:
    """Replaces ``old`` by ``new`` atomically; returns whether ``old`` was there (compare and exchange)."""

    def generate(context: object, builder: Any, signature: object, arguments: Any) -> Any:
        result = builder.cmpxchg(*arguments, ordering="acq_rel", failordering="acquire")
        return builder.extract_value(result, 1)

    return _types.boolean(pointer, _types.int64, _types.int64), generate


@_intrinsic
def _store(typing: object, pointer: object, value: object) -> Any:
    def generate(context: Any, builder: Any, signature: object, arguments: Any) -> Any:
        builder.store_atomic(arguments[1], arguments[0], ordering="release", align=8)
        return context.get_dummy_value()

    return _types.void(pointer, _types.int64), generate


@inlined
def try_lock(address: int) -> bool:
    """Acquires the lock that is the word at ``address``; returns False if it is held."""
    return _exchange(_to_words(address), 0, 1)


@inlined
def unlock(address: int) -> None:
    """Releases the lock that is the word at ``address``."""
    _store(_to_words(address), 0)


@_intrinsic
def _add(typing: object, pointer: object, value: object) -> Any:
    def generate(context: object, builder: Any, signature: object, arguments: Any) -> Any:
        return builder.atomic_rmw("add", arguments[0], arguments[1], ordering="acq_rel")

    return _types.int64(pointer, _types.int64), generate


@inlined
def add(address: int, value: int) -> int:
    """Adds to the word at ``address`` atomically; returns the value before."""
    return _add(_to_words(address), value)


@_intrinsic
def _prefetch(typing: object, pointer: object) -> Any:
    def generate(context: Any, builder: Any, signature: object, arguments: Any) -> Any:
        number, address = _ir.IntType(32), _ir.IntType(8).as_pointer()
        form = _ir.FunctionType(_ir.VoidType(), [address, number, number, number])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", (address,), form)
        # For reading, into all levels of cache, as data.
        builder.call(fetch, [builder.bitcast(arguments[0], address), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return _types.void(pointer), generate


@inlined
def prefetch(address: int) -> None:
    """Prefetches the memory at an address into the cache, without waiting."""
    _prefetch(_to_words(address))


# Vector instructions for eight real numbers at a time. LLVM does not generate them by itself, because the loops over a
# row are short, and the arrays might overlap.

_eight: Any = _ir.VectorType(_ir.FloatType(), 8)
_REAL_BYTES = 4


def _load_eight(builder: Any, address: Any) -> Any:
    return builder.load(builder.inttoptr(address, _eight.as_pointer()), align=_REAL_BYTES)


def _store_eight(builder: Any, value: Any, address: Any) -> None:
    builder.store(value, builder.inttoptr(address, _eight.as_pointer()), align=_REAL_BYTES)


@_intrinsic
def _copy_eight(typing: object, to: object, source: object) -> Any:
    def generate(context: Any, builder: Any, signature: object, arguments: Any) -> Any:
        _store_eight(builder, _load_eight(builder, arguments[1]), arguments[0])
        return context.get_dummy_value()

    return _types.void(_types.int64, _types.int64), generate


@_intrinsic
def _add_eight(typing: object, to: object, source: Any) -> Any:
    def generate(context: Any, builder: Any, signature: object, arguments: Any) -> Any:
        into, source = arguments
        _store_eight(builder, builder.fadd(_load_eight(builder, into), _load_eight(builder, source)), into)
        return context.get_dummy_value()

    return _types.void(_types.int64, _types.int64), generate


def _eight_of(builder: Any, number: Any) -> object:
    """Returns a vector whose eight elements are ``number``."""
    numbers = _ir.Constant(_eight, _ir.Undefined)
    for place in range(8):
        numbers = builder.insert_element(numbers, number, _ir.IntType(32)(place))
    return numbers


def _roots(builder: Any, numbers: Any) -> Any:
    module, name = builder.module, "llvm.sqrt.v8f32"
    form = _ir.FunctionType(_eight, [_eight])
    return builder.call(module.globals.get(name) or _ir.Function(module, form, name), [numbers])


def _add_squares(builder: Any, squares: Any, gradient: Any) -> object:
    """Adds the gradient's squares to the numbers at an address; returns the sums."""
    sums = builder.fadd(_load_eight(builder, squares), builder.fmul(gradient, gradient))
    _store_eight(builder, sums, squares)
    return sums


@_intrinsic
def _adagrad_eight(typing: object, row: Any, squares: Any, gradients: Any, rate: Any) -> Any:
    def generate(context: Any, builder: Any, signature: object, arguments: Any) -> Any:
        row, squares, gradients, rate = arguments
        gradient = _load_eight(builder, gradients)
        roots = _roots(builder, _add_squares(builder, squares, gradient))
        inverse = builder.fdiv(_ir.Constant(_eight, [1.0] * 8), roots)
        step = builder.fmul(builder.fmul(gradient, _eight_of(builder, rate)), inverse)
        _store_eight(builder, builder.fsub(_load_eight(builder, row), step), row)
        return context.get_dummy_value()

    return _types.void(_types.int64, _types.int64, _types.int64, _types.float32), generate


@_intrinsic
def _damped_adagrad_eight(typing: object, row: Any, squares: Any, gradients: Any, rate: Any, epsilon: Any) -> Any:
    def generate(context: Any, builder: Any, signature: object, arguments: Any) -> Any:
        row, squares, gradients, rate, epsilon = arguments
        gradient = _load_eight(builder, gradients)
        sums = _add_squares(builder, squares, gradient)
        roots = _roots(builder, builder.fadd(sums, _eight_of(builder, epsilon)))
        step = builder.fdiv(builder.fmul(_eight_of(builder, rate), gradient), roots)
        _store_eight(builder, builder.fsub(_load_eight(builder, row), step), row)
        return context.get_dummy_value()

    real = _types.float32
    return _types.void(_types.int64, _types.int64, _types.int64, real, real), generate


@inlined
def copy_numbers(to: int, source: int, count: int) -> None:
    """Copies ``count`` numbers of 4 bytes from one address to another."""
    whole = count - count % 8
    for j in range(0, whole, 8):
        _copy_eight(to + _REAL_BYTES * j, source + _REAL_BYTES * j)
    into, values = numbers_at(to, count), numbers_at(source, count)
    for j in range(whole, count):
        into[j] = values[j]


@inlined
def add_reals(to: int, source: int, count: int) -> None:
    """Adds ``count`` float32 at the address ``source`` to ``count`` float32 at the address ``to``."""
    whole = count - count % 8
    for j in range(0, whole, 8):
        _add_eight(to + _REAL_BYTES * j, source + _REAL_BYTES * j)
    into, values = reals_at(to, count), reals_at(source, count)
    for j in range(whole, count):
        into[j] += values[j]


@inlined
def adagrad_reals(row: int, squares: int, gradients: int, rate: object, count: int) -> None:
    """a ← a + g², θ ← θ − g·η / √a for ``count`` float32 at each of three addresses, of θ, a and g."""
    whole = count - count % 8
    for j in range(0, whole, 8):
        at = _REAL_BYTES * j
        _adagrad_eight(row + at, squares + at, gradients + at, rate)
    values, sums, slopes = reals_at(row, count), reals_at(squares, count), reals_at(gradients, count)
    for j in range(whole, count):
        sums[j] += slopes[j] * slopes[j]
        values[j] -= slopes[j] * rate * (np.float32(1) / np.sqrt(sums[j]))


@inlined
def damped_adagrad_reals(row: int, squares: int, gradients: int, rate: object, epsilon: object, count: int) -> None:
    """a ← a + g², θ ← θ − η·g / √(a + ε) for ``count`` float32 at each of three addresses: of θ, a and g."""
    whole = count - count % 8
    for j in range(0, whole, 8):
        at = _REAL_BYTES * j
        _damped_adagrad_eight(row + at, squares + at, gradients + at, rate, epsilon)
    values, sums, slopes = reals_at(row, count), reals_at(squares, count), reals_at(gradients, count)
    for j in range(whole, count):
        sums[j] += slopes[j] * slopes[j]
        values[j] -= rate * slopes[j] / np.sqrt(sums[j] + epsilon)
