"""``tf.nest``: structures of lists, tuples and dictionaries. Composite tensors, such as sparse ones, are
leaves here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headwater.tf1.functional import nest

if TYPE_CHECKING:
    from headwater.graph.types import Structure, TensorLike


def is_nested(seq: object) -> bool:
    """Returns whether ``seq`` is a list, a tuple or a dictionary."""
    return nest.is_nested(seq)


is_sequence = is_nested


def flatten(structure: Structure, expand_composites: bool = False) -> list[Any]:
    """Returns the leaves in order; leaves of a dictionary are sorted by key."""
    del expand_composites
    return nest.flatten(structure)


def pack_sequence_as(
    structure: Structure, flat_sequence: Sequence[TensorLike], expand_composites: bool = False
) -> Structure:
    """Returns a structure like ``structure`` with the leaves ``flat_sequence``; ValueError if their number differs."""
    del expand_composites
    return nest.pack(structure, flat_sequence)


def assert_same_structure(
    nest1: Structure, nest2: Structure, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Raises ValueError if the nesting differs, TypeError if only the types of containers differ.

    Args:
      check_types: whether a list and a tuple differ.
    """
    del expand_composites
    message = f"The two structures don't have the same nested structure: {nest1!r} and {nest2!r}."
    if not nest.same_structure(_as_lists(nest1), _as_lists(nest2)):
        raise ValueError(message)
    if check_types and not nest.same_structure(nest1, nest2):
        raise TypeError(f"{message} Their parts are of different types.")


def map_structure(func: Callable[..., Structure], *structure: Any, **kwargs: Any) -> Structure:
    """Applies ``func`` to corresponding leaves, and returns the results in the structure of the first argument.

    Args:
      kwargs: ``check_types``, see `assert_same_structure`; ``expand_composites`` is accepted.

    Raises:
      ValueError, TypeError: the structures differ, or there is none.
    """
    if not structure:
        raise ValueError("Must provide at least one structure")
    check_types = kwargs.pop("check_types", True)
    kwargs.pop("expand_composites", None)
    if kwargs:
        raise ValueError(f"Only valid keyword arguments are `check_types` and `expand_composites`, not {list(kwargs)}")
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types)
    return nest.map_structure(func, *structure)


def _as_lists(structure: Structure) -> Structure:
    """Returns ``structure`` with lists in place of tuples."""
    if isinstance(structure, dict):
        return {key: _as_lists(value) for key, value in structure.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if nest.is_nested(structure):
        return [_as_lists(item) for item in structure]
    return structure
