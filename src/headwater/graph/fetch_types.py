"""Types that sessions fetch and feed as several tensors, such as sparse and ragged tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Rebuild = Callable[[Sequence[Any]], Any]
Expansion = tuple[Callable[[Any], tuple[list[Any], Rebuild]], Callable[[Any, Any], list[tuple[Any, Any]]] | None]
_expansions: list[tuple[type, Expansion]] = []


def register_session_run_conversion_functions(
    tensor_type: type,
    fetch_function: Callable[[Any], tuple[list[Any], Rebuild]],
    feed_function: Callable[[Any, Any], list[tuple[Any, Any]]] | None = None,
    feed_function_for_partial_run: object = None,
) -> None:
    """Registers how sessions fetch and feed objects of ``tensor_type``; a later registration precedes earlier ones.

    Args:
      tensor_type: the class.
      fetch_function: returns the elements to fetch, and a function that builds the result from their values.
      feed_function: returns pairs of tensors and values, given an object and a value for it.
      feed_function_for_partial_run: accepted for compatibility.
    """
    del feed_function_for_partial_run
    _expansions.insert(0, (tensor_type, (fetch_function, feed_function)))


def expansion_of(item: object) -> Expansion | None:
    """Returns the functions registered for the type of ``item``; None for a single tensor or a structure."""
    return next((expansion for kind, expansion in _expansions if isinstance(item, kind)), None)
