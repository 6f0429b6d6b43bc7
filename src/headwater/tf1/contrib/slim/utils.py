"""Functions that layers share: results by the names of their layers, sizes of shapes, and pairs of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headwater.graph.context import get_default_graph
from headwater.shapes import as_shape
from headwater.tf1.functional.default_graph import get_collection

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.shapes import ShapeLike


def collect_named_outputs(collections: object, alias: str, outputs: Any) -> Any:
    """Adds a layer's result to collections, with the layer's scope ``alias`` as its name there, and returns it."""
    if collections:
        append_tensor_alias(outputs, alias)
        get_default_graph().add_to_collections(collections, outputs)
    return outputs


def append_tensor_alias(tensor: Tensor, alias: str) -> Tensor:
    """Adds ``alias``, without a trailing ``/``, to the tensor's ``aliases``."""
    tensor.aliases = [*getattr(tensor, "aliases", ()), alias.removesuffix("/")]
    return tensor


def get_tensor_aliases(tensor: Tensor) -> list[str]:
    """Returns a tensor's aliases, or its name if it has none."""
    return getattr(tensor, "aliases", None) or [tensor.name.removesuffix(":0")]


def gather_tensors_aliases(tensors: Sequence[Tensor]) -> list[str]:
    """Returns the aliases of all tensors."""
    return [alias for tensor in tensors for alias in get_tensor_aliases(tensor)]


def convert_collection_to_dict(collection: str, clear_collection: bool = False) -> dict[str, Tensor]:
    """Returns the tensors of a collection by their aliases, and empties it with ``clear_collection``."""
    found = {alias: tensor for tensor in get_collection(collection) for alias in get_tensor_aliases(tensor)}
    if clear_collection:
        get_default_graph().clear_collection(collection)
    return found


def get_variable_collections(variables_collections: object, name: str) -> Any:
    """Returns the collections of a layer's variable from one list for all, or from lists by names."""
    if isinstance(variables_collections, Mapping):
        return variables_collections.get(name)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return variables_collections


def _size(shape: ShapeLike, position: int, min_rank: int) -> int:
    dims = as_shape(shape).as_dims
    if dims is None:
        raise ValueError("dims of shape must be known but is None")
    if len(dims) < min_rank:
        raise ValueError(f"rank of shape must be at least {min_rank} not: {len(dims)}")
    size = dims[position]
    if size is None:
        raise ValueError(f"dimension {position} of shape must be known but is None: {shape}")
    return size


def channel_dimension(shape: ShapeLike, data_format: str, min_rank: int = 1) -> int:
    """Returns the number of channels; ``data_format`` is ``channels_first`` or ``channels_last``.

    Raises:
      ValueError: the number is unknown, or ``shape`` has fewer than ``min_rank`` dimensions.
    """
    return _size(shape, 1 if data_format == "channels_first" else -1, min_rank)


def last_dimension(shape: ShapeLike, min_rank: int = 1) -> int:
    """Returns the last size of a shape.

    Raises:
      ValueError: it is unknown, or ``shape`` has fewer than ``min_rank`` dimensions.
    """
    return _size(shape, -1, min_rank)


def two_element_tuple(int_or_tuple: int | Iterable[int]) -> tuple[int, int]:
    """Returns a height and a width from one number for both, two numbers, or a shape.

    Raises:
      ValueError: there are not two numbers.
    """
    if isinstance(int_or_tuple, int):
        return int_or_tuple, int_or_tuple
    height, width = (int(size) for size in int_or_tuple)
    return height, width
