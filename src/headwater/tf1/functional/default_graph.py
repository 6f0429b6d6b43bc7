"""The default graph's scopes and collections as functions."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from headwater.dtypes import DTypeLike
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.graph.convert import name_scope as enter_name_scope
from headwater.graph.indexed_slices import IndexedSlices
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike


def device(device_name_or_function: object) -> AbstractContextManager[None]:
    """Requests a device for operations made within the block: a full or partial name, a function, or None."""
    return get_default_graph().device(device_name_or_function)


def colocate_with(op: object, ignore_existing: bool = False) -> AbstractContextManager[None]:
    """Puts the operations created within the block on the device of ``op``: an operation, tensor or variable."""
    return get_default_graph().colocate_with(op, ignore_existing)


def container(container_name: str) -> AbstractContextManager[str]:
    """Keeps variables and queues made within the block in this container of their task; see ``Session.reset``."""
    return get_default_graph().container(container_name)


def control_dependencies(control_inputs: Sequence[object] | None) -> AbstractContextManager[None]:
    """Makes operations of the block run after ``control_inputs``; None ignores all outer dependencies."""
    return get_default_graph().control_dependencies(control_inputs)


class name_scope:
    """Prefixes the names of operations made within the block, in the graph that ``values`` belong to.

    Args:
      name: the scope's name, made unique; ``scope/`` reenters an existing scope.
      default_name: the name when ``name`` is None.
      values: inputs of the operations.

    Yields:
      The scope with a trailing ``/``.

    Raises:
      ValueError: neither name is given while ``values`` are.
    """

    def __init__(
        self, name: str | None, default_name: str | None = None, values: Sequence[TensorLike] | None = None
    ) -> None:
        if not (name is None or isinstance(name, str)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"name for name_scope must be a string, not {name!r}")
        self._name = default_name if name is None else name
        self._arguments = (name, default_name, values)
        self._entered: AbstractContextManager[str] | None = None

    @property
    def name(self) -> str | None:
        return self._name

    def __enter__(self) -> str:
        self._entered = enter_name_scope(*self._arguments)
        return self._entered.__enter__()

    def __exit__(self, *error: Any) -> bool | None:
        entered, self._entered = self._entered, None
        assert entered is not None, "left without having been entered"
        return entered.__exit__(*error)


@contextmanager
def op_scope(values: Sequence[TensorLike], name: str | None, default_name: str | None = None) -> Generator[str]:
    """`name_scope` with the older order of arguments."""
    with enter_name_scope(name, default_name, values) as scope:
        yield scope


def add_to_collection(name: str, value: object) -> None:
    """Adds ``value`` to a collection of the default graph."""
    get_default_graph().add_to_collection(name, value)


def add_to_collections(names: object, value: TensorLike) -> None:
    """Adds ``value`` to several collections of the default graph."""
    get_default_graph().add_to_collections(names, value)


def get_collection(key: object, scope: str | None = None) -> list[Any]:
    """Returns a copy of a collection; with ``scope`` only items with names that match this regular expression."""
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key: TensorLike) -> list[Any]:
    """Returns a collection itself, created if missing."""
    return get_default_graph().get_collection_ref(key)


def convert_to_tensor_or_indexed_slices(
    value: TensorLike, dtype: DTypeLike | None = None, name: str | None = None
) -> Tensor | IndexedSlices:
    """Converts ``value`` to a tensor, unless it is `IndexedSlices`.

    Raises:
      ValueError: the slices have a different type than ``dtype``.
    """
    if not isinstance(value, IndexedSlices):
        return convert_to_tensor(value, dtype, name)
    if dtype is not None and not value.dtype.is_compatible_with(dtype):
        raise ValueError(f"Tensor conversion requested dtype {dtype} for IndexedSlices with dtype {value.dtype.name}")
    return value


def is_tensor(x: TensorLike) -> bool:
    """Returns whether ``x`` is a tensor, indexed slices, or a variable."""
    return isinstance(x, Tensor | IndexedSlices) or hasattr(x, "_as_graph_element")
