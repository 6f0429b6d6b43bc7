"""``tf.data.Dataset``: datasets with functions of tensors, which a graph may iterate over.

Such a dataset is still a tree of nodes of `headwater.data`. A function passed to `map` and similar methods is called
once, with symbolic tensors for an element; the operations that it builds become a body (`headwater.graph.bodies`) and
run compiled. Outside a graph's step a program iterates over the dataset with ``for``; within a step it uses iterators,
for which the tree is written into the graph, an operation for each node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from headwater.data import dataset as plain
from headwater.data import readers
from headwater.data import structure as nest
from headwater.data.dataset import Nested
from headwater.data.node import Function, Node
from headwater.data.sources import Whole
from headwater.data.spec import TensorSpec, is_array
from headwater.data.transforms import Zipped
from headwater.dtypes import DType, as_dtype, int64
from headwater.graph.constants import constant_value
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, to_array
from headwater.graph.graph import seeds
from headwater.graph.operation import Tensor
from headwater.graph.sparse_tensor import SparseTensor, SparseTensorValue, as_sparse
from headwater.tf1.functional import autograph
from headwater.tf1.functional.math import cast
from headwater.tf1.functional.ragged_tensor import as_ragged_or_tensor
from headwater.tf1.input import composites
from headwater.tf1.input.composites import StepValue, is_composite, value_tensor
from headwater.tf1.input.dataset_ops import (
    FromTensor,
    TracedFunction,
    dataset_tensor,
    element_attrs,
    listed,
    next_element,
    trace,
)
from headwater.tf1.input.iterators import Iterator, initializable_iterator, one_shot_iterator
from headwater.tf1.input.specs import DatasetSpec

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import SparseLike, Structure


class Dataset(plain.Dataset):
    """A sequence of elements, as ``tf.data.Dataset``.

    Arguments that are values may be tensors. A dataset that depends on a tensor whose value is known only in a step
    needs an iterator (`make_one_shot_iterator`, `make_initializable_iterator`); any other dataset also supports
    ``for``.
    """

    _preserves_cardinality: ClassVar[bool] = False
    _aligns: ClassVar[bool] = False
    _op_errors: ClassVar[bool] = True
    _checks_values: ClassVar[bool] = False

    @classmethod
    def _plain_class(cls) -> Any:
        return Dataset

    @classmethod
    def as_value(cls, value: Any, dtype: DType | None = None) -> Any:
        if is_composite(value):
            return composites.as_value(value)
        if _lists_tensors(value):
            return cls.as_value(convert_to_tensor(value), dtype)
        if not isinstance(value, Tensor):
            if dtype is None and is_array(value) and np.asarray(value).dtype.kind not in "USO":
                return value
            if hasattr(value, "_as_graph_element"):
                return cls.as_value(convert_to_tensor(value), dtype)
            return to_array(value, dtype)
        known = constant_value(value)
        if known is None:
            return value if dtype is None or value.dtype.base_dtype == dtype else cast(value, dtype)
        return known if dtype is None else np.asarray(known).astype(dtype.numpy_dtype)

    @classmethod
    def _to_program(cls, value: object) -> Any:
        return composites.program_value(value)

    @classmethod
    def _spec_to_program(cls, spec: TensorSpec) -> object:
        return composites.described(spec)

    @classmethod
    def _spec_from_program(cls, signature: object) -> TensorSpec:
        return composites.specified(signature)

    def _packed_specs(self, specs: Sequence[TensorSpec]) -> Structure:
        return nest.map_structure(
            lambda leaf: (
                DatasetSpec(nest.pack(leaf.element_structure, list(map(self._spec_to_program, leaf.specs))))
                if isinstance(leaf, Nested)
                else leaf
            ),
            super()._packed_specs(specs),
        )

    def _cast(self, dtype: DType) -> Self:
        def convert(value: object) -> Any:
            return cast(value, dtype)

        return self.map(convert)

    @classmethod
    def _seeds(cls, seed: Any) -> tuple[Any, Any]:
        if isinstance(seed, Tensor):
            return super()._seeds(seed)
        first, second = seeds(get_default_graph(), seed)
        return cls.as_value(first or 0, int64), cls.as_value(second or 0, int64)

    @classmethod
    def _trace(cls, function: Callable[..., object], inputs: plain.Dataset, kind: str) -> tuple[Function, Any]:
        return traced(function, inputs, kind)

    def _ready(self) -> None:
        """Raises RuntimeError if the pipeline contains a step's tensors, and checks its values."""
        for node in _all_nodes(self.node):
            for name in node.values:
                for value in listed(getattr(node, name)):
                    part = value.parts[0] if isinstance(value, StepValue) else value
                    if isinstance(part, Tensor):
                        raise RuntimeError(
                            f"this dataset depends on the tensor {part.name}, whose value is known only in a step: "
                            "iterate over it with dataset.make_initializable_iterator() in a session, not with `for`"
                        )
            node.check()

    def __iter__(self) -> Structure:
        self._ready()
        return super().__iter__()

    @classmethod
    def from_sparse_tensor_slices(cls, sparse_tensor: object) -> Any:
        """The slices of a sparse tensor along its first dimension: tuples of indices, values and dense shape.

        Raises:
          TypeError: ``sparse_tensor`` is not sparse.
        """

        def components(row: Any) -> tuple[Tensor, ...]:
            return tuple(row.components)

        return cls.from_tensor_slices(as_sparse(sparse_tensor)).map(components)

    def make_one_shot_iterator(self) -> Iterator:
        """Returns an iterator that yields the elements once, and needs no initializer.

        Raises:
          ValueError: the dataset depends on a tensor of the graph.
        """
        return one_shot_iterator(self)

    def make_initializable_iterator(self, shared_name: str | None = None) -> Iterator:
        """Returns an iterator over the elements; its ``initializer`` (re)starts it.

        Args:
          shared_name: share the iterator between sessions under this name.
        """
        return initializable_iterator(self, shared_name)

    @property
    def output_types(self) -> Any:
        """Element types, in the structure of an element."""
        return nest.map_structure(lambda spec: spec.dtype, self.element_spec)

    @property
    def output_shapes(self) -> Any:
        """Static shapes, in the structure of an element."""
        return nest.map_structure(lambda spec: spec.shape, self.element_spec)

    @property
    def output_classes(self) -> Any:
        """The class of each component: `Tensor`, `SparseTensor`, `RaggedTensor` or a dataset's."""
        return nest.map_structure(composites.class_of, self.element_spec)

    def reduce(
        self, initial_state: Structure, reduce_func: Callable[..., object], name: str | None = None
    ) -> Structure:
        """Returns the last state of ``reduce_func(state, element)`` over all elements, as tensors."""
        state = tuple(self.as_value(part) for part in nest.flatten(initial_state))
        both = Dataset.of_node(
            Zipped(inputs=(Whole(components=state), self.node)), (nest.emptied(initial_state), self._structure)
        )
        function, structure = traced(reduce_func, both, "reduce")
        specs = function.specs()
        inputs = [dataset_tensor(self.node), *map(value_tensor, state), *function.captured]
        attrs = element_attrs(specs) | {"f": function.attr, "count": len(state)}
        op = get_default_graph().create_op("ReduceDataset", inputs, attrs, name or "ReduceDataset")
        return next_element(nest.pack(structure, specs), op.outputs)


def _lists_tensors(value: SparseLike) -> bool:
    """Returns whether ``value`` is a list with tensors in it."""
    return isinstance(value, list) and any(isinstance(item, Tensor) or _lists_tensors(item) for item in value)  # pyright: ignore[reportUnknownVariableType]


def traced(
    function: Callable[..., object],
    inputs: plain.Dataset,
    kind: str,
    adapt: Callable[[Any, TensorSpec], Any] | None = None,
) -> tuple[TracedFunction, Any]:
    """Traces a program's function; returns it with its result: a structure without leaves, or a dataset.

    Args:
      adapt: converts a component, given its spec, before the function gets it.

    Raises:
      TypeError: it returns an object that is not a tensor.
    """
    shape = inputs._structure  # pyright: ignore[reportPrivateUsage]

    def build(params: list[Any]) -> tuple[list[Any], Any]:
        if adapt is not None:
            params = list(map(adapt, params, inputs.node.specs))
        leaves = [
            Dataset.of_node(FromTensor(param, leaf.specs), leaf.element_structure)
            if isinstance(leaf, Nested)
            else param
            for param, leaf in zip(params, nest.flatten(shape), strict=True)
        ]
        given = nest.pack(shape, leaves)
        args: tuple[Any, ...] = given if type(given) is tuple else (given,)  # pyright: ignore[reportUnknownVariableType]
        result = nest.plain_lists(autograph.call(function, *args))
        if isinstance(result, plain.Dataset):
            return [dataset_tensor(result.node)], result
        parts = [_as_result(leaf, kind) for leaf in nest.flatten(result)]
        return parts, nest.emptied(result)

    return trace(kind, tuple(inputs.node.specs), build)


def _as_result(value: SparseLike, kind: str) -> object:
    try:
        if isinstance(value, SparseTensorValue):
            return SparseTensor.from_value(value)
        return as_ragged_or_tensor(value) if not isinstance(value, SparseTensor) else value
    except (TypeError, ValueError) as error:
        raise TypeError(f"Unsupported return value from function passed to Dataset.{kind}(): {value!r}.") from error


def _all_nodes(node: Node) -> Iterable[Node]:
    yield node
    for child in node.nodes():
        yield from _all_nodes(child)


class TFRecordDataset(readers.TFRecordDataset, Dataset):
    __doc__ = readers.TFRecordDataset.__doc__


class TextLineDataset(readers.TextLineDataset, Dataset):
    __doc__ = readers.TextLineDataset.__doc__


class FixedLengthRecordDataset(readers.FixedLengthRecordDataset, Dataset):
    __doc__ = readers.FixedLengthRecordDataset.__doc__


def counter(start: int = 0, step: int = 1, dtype: DTypeLike = int64) -> Dataset:
    """Returns an infinite dataset of numbers from ``start``, each ``step`` more than the previous one.

    Args:
      start: the first number.
      step: the difference between two numbers.
      dtype: type of the numbers.
    """
    kind = as_dtype(dtype).as_numpy_dtype
    first, further = kind(start), kind(step)

    def following(state: Structure, element: Structure) -> tuple[Any, Any]:
        del element
        return state + further, state

    return Dataset.from_tensors(first).repeat().scan(first, following)


def get_single_element(dataset: Dataset) -> Structure:
    """The only element of a dataset, as tensors; steps end in InvalidArgumentError if it has none or several."""
    spec = dataset.element_spec
    op = get_default_graph().create_op(
        "DatasetToSingleElement",
        [dataset_tensor(dataset.node)],
        element_attrs(nest.flatten(spec)),
        "DatasetToSingleElement",
    )
    return next_element(spec, op.outputs)


def cardinality(dataset: Dataset) -> Tensor:
    """Returns the number of elements, `INFINITE_CARDINALITY` or `UNKNOWN_CARDINALITY`, as an int64 tensor."""
    tensor = dataset_tensor(dataset.node)
    return (
        get_default_graph().create_op("DatasetCardinality", [tensor], {}, "ExperimentalDatasetCardinality").outputs[0]
    )


def make_one_shot_iterator(dataset: Dataset) -> Iterator:
    """Same as `Dataset.make_one_shot_iterator`."""
    return dataset.make_one_shot_iterator()


def make_initializable_iterator(dataset: Dataset, shared_name: str | None = None) -> Iterator:
    """Same as `Dataset.make_initializable_iterator`."""
    return dataset.make_initializable_iterator(shared_name)


def get_output_types(dataset_or_iterator: Structure) -> Any:
    """Element types, in the structure of an element."""
    return dataset_or_iterator.output_types


def get_output_shapes(dataset_or_iterator: Structure) -> Any:
    """Static shapes, in the structure of an element."""
    return dataset_or_iterator.output_shapes


def get_output_classes(dataset_or_iterator: Structure) -> Any:
    """The class of each component, in the structure of an element."""
    return dataset_or_iterator.output_classes
