"""Nested structures of tensors: lists, tuples, named tuples and dictionaries; all other objects are leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.graph.types import Structure


def is_nested(structure: Structure) -> bool:
    """Returns whether ``structure`` has parts."""
    return isinstance(structure, list | tuple | dict)


def flatten(structure: Structure) -> list[Any]:
    """Returns the leaves in order; leaves of a dictionary are sorted by key."""
    return list(_leaves(structure))


def _leaves(structure: Structure) -> Iterator[object]:
    if isinstance(structure, dict):
        for key in sorted(structure):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            yield from _leaves(structure[key])
    elif isinstance(structure, list | tuple):
        for item in structure:  # pyright: ignore[reportUnknownVariableType]
            yield from _leaves(item)
    else:
        yield structure


def flatten_up_to(shallow: Structure, structure: Structure) -> list[Any]:
    """The parts of ``structure`` in the places of the leaves of ``shallow``.

    Raises:
      ValueError: it has no such places.
    """
    if not is_nested(shallow):
        return [structure]
    if not is_nested(structure) or len(structure) != len(shallow):
        raise ValueError(f"{structure!r} does not have the parts of {shallow!r}")
    keys = sorted(shallow) if isinstance(shallow, dict) else range(len(shallow))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return [part for key in keys for part in flatten_up_to(shallow[key], structure[key])]  # pyright: ignore[reportUnknownVariableType]


def pack(structure: Structure, leaves: Sequence[object]) -> Structure:
    """Returns a structure like ``structure`` with other leaves.

    Raises:
      ValueError: there are more or fewer leaves than it has places.
    """
    rest = iter(leaves)
    count = len(flatten(structure))
    if count != len(leaves):
        raise ValueError(f"Structure had {count} elements, but flat_sequence had {len(leaves)} elements.")
    return _packed(structure, rest)


def _packed(structure: Structure, rest: Iterator[object]) -> Structure:
    if isinstance(structure, dict):
        found = {key: _packed(structure[key], rest) for key in sorted(structure)}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        return type(structure)((key, found[key]) for key in structure)  # pyright: ignore
    if isinstance(structure, list | tuple):
        items = [_packed(item, rest) for item in structure]  # pyright: ignore[reportUnknownVariableType]
        if hasattr(structure, "_fields"):  # pyright: ignore[reportUnknownArgumentType]
            return type(structure)(*items)  # pyright: ignore
        return type(structure)(items)  # pyright: ignore
    return next(rest)


def same_structure(first: Any, second: Any) -> bool:
    """Returns whether the two have parts in the same places; a list and a tuple differ."""
    if isinstance(first, dict) or isinstance(second, dict):
        both = isinstance(first, dict) and isinstance(second, dict)
        return both and set(first) == set(second) and all(same_structure(first[k], second[k]) for k in first)  # pyright: ignore
    if is_nested(first) or is_nested(second):
        if type(first) is not type(second) or len(first) != len(second):
            return False
        return all(same_structure(a, b) for a, b in zip(first, second, strict=True))
    return True


def map_structure(function: Callable[..., Any], *structures: object) -> Structure:
    """Applies ``function`` to corresponding leaves, and returns the results in the structure of the first argument."""
    leaves = [function(*parts) for parts in zip(*map(flatten, structures), strict=True)]
    return pack(structures[0], leaves)
