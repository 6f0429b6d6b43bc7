"""`arg_scope`: default arguments of functions within a block."""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

Scope = Mapping[str, Mapping[str, Any]]

_current: contextvars.ContextVar[Scope | None] = contextvars.ContextVar("arg_scope", default=None)
_registered: dict[str, Callable[..., object]] = {}


def _key(function: object) -> str:
    return getattr(function, "_key_op", str(function))


def add_arg_scope(func: Callable[..., object]) -> Callable[..., Any]:
    """Makes ``func`` take arguments from `arg_scope`; a decorator."""
    key = f"{func.__module__}.{func.__qualname__}.{id(func)}"

    @functools.wraps(func)
    def scoped(*args: object, **kwargs: object) -> Any:
        defaults = current_arg_scope().get(key)
        return func(*args, **({**defaults, **kwargs} if defaults else kwargs))

    scoped.__dict__["_key_op"] = key
    _registered[key] = func
    return scoped


def has_arg_scope(func: object) -> bool:
    """Returns whether ``func`` takes arguments from `arg_scope`."""
    return _key(func) in _registered


def current_arg_scope() -> Scope:
    """Returns the current default arguments of every function."""
    return _current.get() or {}


def arg_scoped_arguments(func: object) -> tuple[str, ...]:
    """Names of the arguments with defaults of a function that takes them from `arg_scope`."""
    function = _registered[_key(func)]
    count = len(function.__defaults__ or ())
    code = function.__code__
    return code.co_varnames[code.co_argcount - count : code.co_argcount]


@contextmanager
def arg_scope(list_ops_or_scope: Sequence[Callable[..., object]] | Scope, **kwargs: object) -> Generator[Scope]:
    """Sets default arguments ``kwargs`` of the listed functions within the block.

    Args:
      list_ops_or_scope: functions decorated with `add_arg_scope`; or the scope of an earlier block, to reenter it.

    Yields:
      The scope, which can be passed to another `arg_scope`.

    Raises:
      TypeError: ``list_ops_or_scope`` is neither a list nor a scope.
      ValueError: a scope is given together with arguments, or a function is not decorated.
    """
    if isinstance(list_ops_or_scope, Mapping):
        if kwargs:
            raise ValueError("When attempting to re-use a scope by suppling a dictionary, kwargs must be empty.")
        wanted: Scope = dict(list_ops_or_scope)
    else:
        if not isinstance(list_ops_or_scope, list | tuple):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("list_ops_or_scope must either be a list/tuple or reused scope (i.e. dict)")
        found = dict(current_arg_scope())
        for function in list_ops_or_scope:
            if not has_arg_scope(function):
                raise ValueError(f"{function} is not decorated with @add_arg_scope")
            found[_key(function)] = {**found.get(_key(function), {}), **kwargs}
        wanted = found
    token = _current.set(wanted)
    try:
        yield wanted
    finally:
        _current.reset(token)
