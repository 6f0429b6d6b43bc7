"""Structures of elements: tuples, named tuples and dictionaries. A list is not a structure but an array-like value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.graph.types import Structure


def _is_tuple(structure: Structure) -> bool:
    """Returns whether ``structure`` is a tuple of parts. The value of a sparse tensor is a named tuple, but a leaf."""
    return isinstance(structure, tuple) and not hasattr(structure, "dense_shape")  # pyright: ignore[reportUnknownArgumentType]


def flatten(structure: Structure) -> list[Any]:
    """Returns the leaves in order; the leaves of a dictionary in the order of its sorted keys."""
    return list(_leaves(structure))


def _leaves(structure: Structure) -> Iterator[object]:
    if isinstance(structure, dict):
        for key in sorted(structure):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            yield from _leaves(structure[key])
    elif _is_tuple(structure):
        for item in structure:  # pyright: ignore[reportUnknownVariableType]
            yield from _leaves(item)
    else:
        yield structure


def pack(structure: Structure, leaves: Sequence[object]) -> Structure:
    """Returns a structure like ``structure`` with the given leaves, as many as it has places."""
    rest = iter(leaves)
    packed = _packed(structure, rest)
    assert next(rest, rest) is rest, "more leaves than places"
    return packed


def _packed(structure: Structure, rest: Iterator[object]) -> Structure:
    if isinstance(structure, dict):
        packed = {key: _packed(structure[key], rest) for key in sorted(structure)}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        return type(structure)((key, packed[key]) for key in structure)  # pyright: ignore
    if _is_tuple(structure):
        items = [_packed(item, rest) for item in structure]  # pyright: ignore[reportUnknownVariableType]
        return type(structure)(*items) if hasattr(structure, "_fields") else tuple(items)  # pyright: ignore
    return next(rest)


def map_structure(function: Callable[[Any], Any], structure: Structure) -> Structure:
    """Returns a structure of the results of ``function`` for each leaf."""
    return pack(structure, [function(leaf) for leaf in flatten(structure)])


def plain_lists(value: object) -> Structure:
    """Converts a list, which represents several results of a function, to a tuple."""
    return tuple(value) if isinstance(value, list) else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def same_structure(first: object, second: object) -> bool:
    """Returns whether two structures have leaves in the same places."""
    return covers(first, second) and covers(second, first)


def covers(structure: object, value: object) -> bool:
    """Returns whether ``value`` has a part, perhaps a structure itself, at the position of each leaf."""
    if isinstance(structure, dict):
        same = isinstance(value, dict) and set(structure) == set(value)  # pyright: ignore[reportUnknownArgumentType]
        return same and all(covers(structure[key], value[key]) for key in structure)  # pyright: ignore
    if _is_tuple(structure):
        same = _is_tuple(value) and len(structure) == len(value)  # pyright: ignore
        return same and all(covers(a, b) for a, b in zip(structure, value, strict=True))  # pyright: ignore
    return True


def emptied(structure: Structure) -> Structure:
    """Returns the structure with None for its leaves."""
    return map_structure(lambda leaf: None, structure)


def leaves_like(structure: Structure, values: Any) -> list[Any]:
    """Returns the parts of ``values`` at the positions of the leaves of ``structure``. A part may itself be a
    structure."""
    if isinstance(structure, dict):
        return [leaf for key in sorted(structure) for leaf in leaves_like(structure[key], values[key])]  # pyright: ignore
    if _is_tuple(structure):
        if len(structure) != len(values):  # pyright: ignore[reportUnknownArgumentType]
            raise ValueError(f"{values!r} does not have the structure of an element, {structure!r}")
        return [leaf for part, value in zip(structure, values, strict=True) for leaf in leaves_like(part, value)]  # pyright: ignore
    return [values]
