"""Conversion of functions with control flow that depends on tensors: rewrites the source of a function.

The source is rewritten by TensorFlow's AutoGraph, as maintained in the package diastatic-malt (imported as ``malt``);
`headwater.tf1.functional.autograph.operators` implements the rewritten statements. Functions called by a converted
function are converted as well, unless they belong to a library.
"""

from __future__ import annotations

import functools
import inspect
import logging
import sys
import threading
import types
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from headwater.tf1.functional.autograph import graphs, operators
from headwater.tf1.functional.autograph.internals import (
    api,
    converter,
    errors,
    function_wrappers,
    inspect_utils,
    origin_info,
    py_builtins,
    variables,
)
from headwater.tf1.functional.autograph.staging import add_staging

if TYPE_CHECKING:
    from headwater.graph.types import Structure

    _Function = Callable[..., Structure]

_log = logging.getLogger(__name__)

_CALL = "__call__"

#: Packages whose functions are not converted.
_LIBRARIES = frozenset(
    {"headwater", "tensorflow", "keras", "jax", "jaxlib", "numpy", "malt", "ml_dtypes", "absl", "six", "scipy"}
    | set(sys.stdlib_module_names)
) - {"__main__"}


class ConversionError(TypeError):
    """A function's source is not available or cannot be converted; the message has the reason."""


class _Converter(api.PyToPy):
    """Rewrites functions to call the operators of this package."""

    def get_extra_locals(self) -> dict[str, types.ModuleType]:
        if self._extra_locals is None:
            found = types.ModuleType("headwater.autograph")
            found.__dict__.update(
                ConversionOptions=converter.ConversionOptions,
                Feature=converter.Feature,
                FunctionScope=function_wrappers.FunctionScope,
                STD=converter.STANDARD_OPTIONS,
                Undefined=variables.Undefined,
                UndefinedReturnValue=variables.UndefinedReturnValue,
                and_=operators.and_,
                autograph_artifact=api.autograph_artifact,
                converted_call=_call,
                for_stmt=operators.for_stmt,
                if_exp=operators.if_exp,
                if_stmt=operators.if_stmt,
                ld=variables.ld,
                ldu=variables.ldu,
                not_=operators.not_,
                or_=operators.or_,
                while_stmt=operators.while_stmt,
                with_function_scope=function_wrappers.with_function_scope,
            )
            self._extra_locals = {"ag__": found}
        return self._extra_locals


_converter = _Converter()
add_staging(graphs.GraphStaging())
_lock = threading.RLock()
_said: set[object] = set()


def _options(*, recursive: bool) -> converter.ConversionOptions:
    return converter.ConversionOptions(recursive=recursive, user_requested=True, optional_features=None)


def converted(function: _Function, *, recursive: bool = True) -> _Function:
    """Returns ``function`` converted, so that its conditions and loops may depend on tensors.

    Args:
      function: a function, a method, a `functools.partial`, or an object that can be called.
      recursive: whether functions that it calls are converted as well.

    Raises:
      ConversionError: ``function`` cannot be converted, for example because its source is not available.
    """
    if isinstance(function, functools.partial):
        return functools.partial(converted(function.func, recursive=recursive), *function.args, **function.keywords)
    if inspect.ismethod(function):
        return types.MethodType(converted(function.__func__, recursive=recursive), function.__self__)
    if not inspect.isfunction(function):
        called: Structure = getattr(type(function), _CALL, None)
        if not inspect.isfunction(called):
            raise ConversionError(f"{function!r} has no source in Python")
        return types.MethodType(converted(called, recursive=recursive), function)
    try:
        made, _, lines = _transformed(function, recursive=recursive)
    except (
        errors.PyCTError,
        AssertionError,
        AttributeError,
        NotImplementedError,
        OSError,
        SyntaxError,
        ValueError,
    ) as error:
        raise ConversionError(f"AutoGraph could not transform {function!r}: {error}") from error
    return _telling(function, made, lines)


def _transformed(
    function: _Function, *, recursive: bool
) -> tuple[_Function, types.ModuleType, Mapping[object, Structure]]:
    context = converter.ProgramContext(options=_options(recursive=recursive))
    with _lock:
        before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        try:
            return _converter.transform(function, context)
        finally:
            sys.dont_write_bytecode = before


def source_of(function: _Function, *, recursive: bool = True) -> str:
    """Returns the source of a function that `converted` has converted.

    Raises:
      ConversionError: the function cannot be converted.
    """
    converted(function, recursive=recursive)
    return inspect.getsource(_transformed(inspect.unwrap(function), recursive=recursive)[1])


def _telling(function: _Function, made: _Function, lines: Mapping[object, Structure]) -> _Function:
    """Wraps ``made``: adds the program's original lines to its errors."""

    @functools.wraps(function)
    def run(*args: object, **kwargs: object) -> Structure:
        try:
            return made(*args, **kwargs)
        except Exception as error:
            _add_lines(error, lines)
            raise

    return api.autograph_artifact(run)


def _add_lines(error: Exception, lines: Mapping[object, Structure]) -> None:
    trace = error.__traceback__
    found: Structure = None
    while trace is not None:
        at = origin_info.LineLocation(filename=trace.tb_frame.f_code.co_filename, lineno=trace.tb_lineno)
        found = lines.get(at, found)
        trace = trace.tb_next
    if found is not None:
        note = f'in converted code: File "{found.loc.filename}", line {found.loc.lineno}, in {found.function_name}'
        if note not in getattr(error, "__notes__", ()):
            error.add_note(f"{note}: {found.source_code_line.strip()}")


def is_left_alone(function: object) -> bool:
    """Returns whether a function is never converted: it is converted already, belongs to a library, or is marked."""
    if isinstance(function, functools.partial):
        return is_left_alone(function.func)
    if api.is_autograph_artifact(function) or inspect.isclass(function):
        return True
    code = function if inspect.isfunction(function) or inspect.ismethod(function) else getattr(function, _CALL, None)
    if not hasattr(code, "__code__") or inspect.isgeneratorfunction(code) or inspect.iscoroutinefunction(code):
        return True
    # Not __module__, which a decorator copies from the function that it wraps.
    module: str = getattr(getattr(code, "__func__", code), "__globals__", {}).get("__name__", "")
    return api.is_autograph_artifact(code) or module.partition(".")[0] in _LIBRARIES


def as_converted(function: _Function) -> _Function:
    """Returns ``function`` converted, or itself if it is left alone or, with a warning, if it cannot be converted."""
    if is_left_alone(function):
        return function
    try:
        return converted(function)
    except ConversionError as error:
        key = getattr(function, "__code__", function)
        if key not in _said:
            _said.add(key)
            _log.warning(
                "%s; the function runs unconverted. tf.autograph.experimental.do_not_convert avoids this warning", error
            )
        return function


def _call(
    function: Structure,
    args: tuple[Structure, ...],
    kwargs: Mapping[str, Structure] | None,
    scope: function_wrappers.FunctionScope,
) -> Structure:
    """A call in a converted function."""
    more = kwargs or {}
    if inspect_utils.isbuiltin(function):
        if function is eval:
            return py_builtins.eval_in_original_context(function, args, scope)
        if function is super:
            return py_builtins.super_in_original_context(function, args, scope)
        if function is globals:
            return py_builtins.globals_in_original_context(scope)
        if function is locals:
            return py_builtins.locals_in_original_context(scope)
        return operators.built_in(function)(*args, **more)
    if not scope.callopts.internal_convert_user_code or is_left_alone(function):
        return operators.built_in(function)(*args, **more)
    return as_converted(function)(*args, **more)
