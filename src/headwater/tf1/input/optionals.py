"""Values that may be missing, and datasets as tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.data import structure as nest
from headwater.graph.context import get_default_graph
from headwater.graph.operation import Tensor
from headwater.graph.sparse_tensor import SparseTensor, SparseTensorValue
from headwater.tf1.functional.ragged_tensor import as_ragged_or_tensor
from headwater.tf1.input.composites import described, spec_of_tensors, specified, tensors_of
from headwater.tf1.input.dataset import Dataset
from headwater.tf1.input.dataset_ops import FromTensor, dataset_tensor, element_attrs, next_element
from headwater.tf1.input.iterators import Iterator
from headwater.tf1.input.specs import TypeSpec

if TYPE_CHECKING:
    from headwater.graph.types import SparseLike, Structure


class Optional:
    """A value that may be missing; `from_value`, `none_from_structure` and `get_next_as_optional` make one."""

    def __init__(self, tensor: Tensor, structure: Structure) -> None:
        self._tensor = tensor
        self._structure = structure

    def has_value(self, name: str | None = None) -> Tensor:
        """Returns whether there is a value: a bool scalar."""
        return _op("OptionalHasValue", [self._tensor], {}, name)

    def get_value(self, name: str | None = None) -> Structure:
        """The value, as tensors; a run raises InvalidArgumentError if it is missing."""
        graph = get_default_graph()
        attrs = element_attrs(nest.flatten(self._structure))
        op = graph.create_op("OptionalGetValue", [self._tensor], attrs, name or "OptionalGetValue")
        return next_element(self._structure, op.outputs)

    @property
    def value_structure(self) -> Any:
        """Specification of the value."""
        return self._structure

    @staticmethod
    def from_value(value: Any) -> Optional:
        """Returns an `Optional` with a value: a tensor or a structure of tensors."""
        value = nest.map_structure(_as_component, nest.plain_lists(value))
        spec = nest.map_structure(lambda part: described(spec_of_tensors(part)), value)
        parts = nest.flatten(value)
        tensors = [tensor for part in parts for tensor in tensors_of(part)]
        attrs = element_attrs(nest.flatten(spec))
        return Optional(_op("OptionalFromValue", tensors, attrs), spec)

    @staticmethod
    def none_from_structure(value_structure: Structure) -> Optional:
        """Returns an `Optional` without a value; ``value_structure`` is the specification of values."""
        return Optional(_op("OptionalNone", [], {}), value_structure)


def _as_component(value: SparseLike) -> object:
    if isinstance(value, SparseTensor | SparseTensorValue):
        return SparseTensor.from_value(value)
    return as_ragged_or_tensor(value)


def _op(op_type: str, inputs: list[Tensor], attrs: dict[str, Any], name: str | None = None) -> Tensor:
    return get_default_graph().create_op(op_type, inputs, attrs, name or op_type).outputs[0]


class OptionalSpec(TypeSpec):
    """Specification of an `Optional`.

    Args:
      value_structure: specification of its value.
    """

    def __init__(self, value_structure: Structure) -> None:
        self._value_structure = value_structure

    @property
    def value_type(self) -> type:
        return Optional

    def _serialize(self) -> tuple[Any, ...]:
        return (self._value_structure,)

    @classmethod
    def from_value(cls, value: Optional) -> OptionalSpec:
        return cls(value.value_structure)


def get_next_as_optional(iterator: Iterator) -> Optional:
    """The next element of an iterator, which is missing after the last."""
    spec = iterator.element_spec
    attrs = element_attrs(nest.flatten(spec))
    return Optional(_op("IteratorGetNextAsOptional", [iterator._resource], attrs), spec)  # pyright: ignore[reportPrivateUsage]


def to_variant(dataset: Dataset) -> Tensor:
    """Returns a tensor with a dataset."""
    return dataset_tensor(dataset.node)


def from_variant(variant: Tensor, structure: Structure) -> Dataset:
    """Returns the dataset that a tensor holds; ``structure`` is the specification of its elements."""
    specs = tuple(map(specified, nest.flatten(structure)))
    return Dataset.of_node(FromTensor(variant, specs), nest.emptied(structure))
