"""``tf.autograph``."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from headwater.tf1.functional.autograph.conversion import converted, source_of
from headwater.tf1.functional.autograph.internals import Feature, ag_logging, autograph_artifact, set_loop_options

__all__ = ["Feature", "do_not_convert", "set_loop_options", "set_verbosity", "to_code", "to_graph", "trace"]

if TYPE_CHECKING:
    from headwater.graph.types import Structure

_log = logging.getLogger(__name__)


def to_graph(
    entity: Callable[..., Structure],
    recursive: bool = True,
    arg_values: None = None,
    arg_types: None = None,
    experimental_optional_features: None = None,
) -> Callable[..., Structure]:
    """Converts ``entity``: its conditions and loops over tensors become operations.

    Args:
      entity: a function, a method, or a callable object.
      recursive: whether functions that it calls are converted as well.
      arg_values, arg_types: deprecated, without effect, as in TensorFlow.
      experimental_optional_features: not supported.

    Raises:
      NotImplementedError: there are optional features.
      TypeError: ``entity`` cannot be converted.
    """
    del arg_values, arg_types
    _refuse(experimental_optional_features)
    return converted(entity, recursive=recursive)


def to_code(
    entity: Callable[..., Structure],
    recursive: bool = True,
    arg_values: None = None,
    arg_types: None = None,
    indentation: str = "  ",
    experimental_optional_features: None = None,
) -> str:
    """Returns the source of the function that `to_graph` returns.

    Args:
      entity: a function.
      recursive: whether functions that it calls are converted as well.
      arg_values, arg_types, indentation: deprecated, without effect, as in TensorFlow.
      experimental_optional_features: not supported.

    Raises:
      NotImplementedError: there are optional features.
      TypeError: ``entity`` cannot be converted.
    """
    del arg_values, arg_types, indentation
    _refuse(experimental_optional_features)
    return source_of(entity, recursive=recursive)


def _refuse(features: object) -> None:
    if features is not None:
        raise NotImplementedError("tf.autograph: experimental_optional_features are not supported")


def do_not_convert(func: Callable[..., Structure] | None = None) -> Structure:
    """Decorator: excludes the function from conversion, also if a converted function calls it."""
    if func is None:
        return do_not_convert

    @functools.wraps(func)
    def run(*args: object, **kwargs: object) -> Structure:
        return func(*args, **kwargs)

    return autograph_artifact(run)


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """Sets how much is logged about conversions.

    Args:
      level: 0: nothing; 1: names of converted functions; above: their source as well.
      alsologtostdout: also print to the standard output.
    """
    ag_logging.set_verbosity(level, alsologtostdout)


def trace(*args: object) -> None:
    """Prints ``args`` when a converted function builds its graph, not when the graph runs."""
    print(*args)
