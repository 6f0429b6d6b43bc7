"""Iterators: operations that return the next element of a dataset in each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headwater.data import structure as nest
from headwater.data.dataset import Dataset
from headwater.dtypes import as_dtype, string
from headwater.graph import bodies
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Operation, Tensor
from headwater.graph.registry import FunctionAttr
from headwater.tf1.functional.saveable import SaveableObject, SaveSpec
from headwater.tf1.input.composites import class_of, spec_of_class
from headwater.tf1.input.dataset_ops import dataset_tensor, element_attrs, next_element

if TYPE_CHECKING:
    from headwater.graph.types import Structure


class Iterator:
    """Iterates over a dataset in a graph: each step that runs `get_next` takes an element.

    Attributes:
      initializer: the operation that starts the iteration; ValueError if none is needed, or there is no dataset yet.
    """

    def __init__(self, resource: Tensor, initializer: Operation | None, element_spec: Structure, kind: str) -> None:
        self._resource = resource
        self._initializer = initializer
        self._element_spec = element_spec
        self._kind = kind

    @staticmethod
    def from_structure(
        output_types: Structure,
        output_shapes: Structure = None,
        shared_name: str | None = None,
        output_classes: Structure = None,
    ) -> Iterator:
        """Returns an iterator without a dataset; `make_initializer` sets it.

        Args:
          output_types: element types, in the structure of an element.
          output_shapes: static shapes; None for unknown ones.
          shared_name: share the iterator between sessions under this name.
          output_classes: `Tensor`, `SparseTensor` or `RaggedTensor` for each component; `Tensor` for all if None.
        """
        spec = _spec(output_types, output_shapes, output_classes)
        return Iterator(_resource(spec, shared_name), None, spec, "reinitializable")

    @staticmethod
    def from_string_handle(
        string_handle: Any, output_types: Structure, output_shapes: Structure = None, output_classes: Structure = None
    ) -> Iterator:
        """Returns the iterator whose `string_handle` a step computes or feeds."""
        spec = _spec(output_types, output_shapes, output_classes)
        handle = convert_to_tensor(string_handle, string)
        attrs = element_attrs(nest.flatten(spec))
        op = get_default_graph().create_op("IteratorFromStringHandleV2", [handle], attrs, "IteratorFromStringHandle")
        return Iterator(op.outputs[0], None, spec, "feedable")

    @property
    def initializer(self) -> Operation:
        if self._initializer is None:
            raise ValueError(
                "Iterator does not have an initializer."
                if self._kind != "reinitializable"
                else "Iterator does not have an initializer: make one with iterator.make_initializer(dataset)."
            )
        return self._initializer

    def make_initializer(self, dataset: Dataset, name: str | None = None) -> Operation:
        """Returns the operation that initialises the iterator with a dataset.

        Raises:
          TypeError: its elements are of another structure or type.
        """
        theirs = dataset.element_spec
        if not nest.same_structure(theirs, self._element_spec):
            raise TypeError(f"Expected elements {self._element_spec!r} but got elements {theirs!r}")
        for want, got in zip(nest.flatten(self._element_spec), nest.flatten(theirs), strict=True):
            if type(want) is not type(got):
                raise TypeError(f"Expected output classes {self.output_classes!r} but got classes of {theirs!r}")
            if want.dtype != got.dtype:
                raise TypeError(f"Expected output types {self.output_types!r} but got types of {theirs!r}")
            if not want.shape.is_compatible_with(got.shape):
                raise TypeError(f"Expected output shapes compatible with {self.output_shapes!r} but got {theirs!r}")
        graph = get_default_graph()
        with graph.colocate_with(self._resource.op):
            return graph.create_op(
                "MakeIterator", [dataset_tensor(dataset.node), self._resource], {}, name or "make_initializer"
            )

    def get_next(self, name: str | None = None) -> Structure:
        """The next element: tensors, in the structure of an element. Steps end in OutOfRangeError after the last."""
        specs = nest.flatten(self._element_spec)
        graph = get_default_graph()
        with graph.colocate_with(self._resource.op):
            op = graph.create_op("IteratorGetNext", [self._resource], element_attrs(specs), name or "IteratorGetNext")
        return next_element(self._element_spec, op.outputs)

    def string_handle(self, name: str | None = None) -> Tensor:
        """A scalar string that names the iterator to `from_string_handle`, within one process."""
        graph = get_default_graph()
        with graph.colocate_with(self._resource.op):
            op = graph.create_op("IteratorToStringHandle", [self._resource], {}, name or "IteratorToStringHandle")
        return op.outputs[0]

    @property
    def element_spec(self) -> Any:
        """A `TensorSpec` for each component, in the structure of an element."""
        return self._element_spec

    @property
    def output_types(self) -> Any:
        """Element types, in the structure of an element."""
        return nest.map_structure(lambda spec: spec.dtype, self._element_spec)

    @property
    def output_shapes(self) -> Any:
        """Static shapes, in the structure of an element."""
        return nest.map_structure(lambda spec: spec.shape, self._element_spec)

    @property
    def output_classes(self) -> Any:
        """The class of each component: `Tensor`, `SparseTensor`, `RaggedTensor` or a dataset's."""
        return nest.map_structure(class_of, self._element_spec)


def _spec(types: Structure, shapes: Structure, classes: Structure) -> Structure:
    types = nest.map_structure(as_dtype, types)
    leaves = nest.flatten(types)
    given, kinds = (
        [None] * len(leaves) if part is None else nest.leaves_like(types, part) for part in (shapes, classes)
    )
    return nest.pack(types, [spec_of_class(*parts) for parts in zip(kinds, leaves, given, strict=True)])


def _resource(spec: Structure, shared_name: str | None) -> Tensor:
    attrs = element_attrs(nest.flatten(spec)) | {"shared_name": shared_name or "", "container": ""}
    return get_default_graph().create_op("IteratorV2", [], attrs, "Iterator").outputs[0]


def initializable_iterator(dataset: Dataset, shared_name: str | None = None) -> Iterator:
    """See `headwater.tf1.input.dataset.Dataset.make_initializable_iterator`."""
    spec = dataset.element_spec
    made = Iterator(_resource(spec, shared_name), None, spec, "initializable")
    made._initializer = made.make_initializer(dataset)  # pyright: ignore[reportPrivateUsage]
    return made


def dataset_factory(dataset: Dataset) -> FunctionAttr:
    """The dataset as an attribute of an operation.

    Raises:
      ValueError: it depends on a tensor of the graph.
    """
    graph = get_default_graph()
    first = graph.version
    tensor = dataset_tensor(dataset.node)
    recorded = bodies.record(graph, first, [tensor])
    if recorded.captured:
        used = next(iter(recorded.captured))
        raise ValueError(
            f"Cannot capture a {used.op.type.lower()} (name:{used.op.name}, type:{used.op.type}) by value: the dataset "
            "depends on it; use dataset.make_initializable_iterator()"
        )
    return bodies.function_of("dataset_factory", recorded, [], None)


def one_shot_iterator(dataset: Dataset) -> Iterator:
    """See `headwater.tf1.input.dataset.Dataset.make_one_shot_iterator`."""
    spec = dataset.element_spec
    attrs = {"dataset_factory": dataset_factory(dataset), **element_attrs(nest.flatten(spec))}
    made = get_default_graph().create_op("OneShotIterator", [], attrs, "OneShotIterator").outputs[0]
    return Iterator(made, None, spec, "one-shot")


class IteratorSaveable(SaveableObject):
    """The position of an iterator in its dataset, for a `Saver`.

    Args:
      iterator: must have a dataset whenever it is saved or restored.
    """

    def __init__(self, iterator: Iterator) -> None:
        resource = iterator._resource  # pyright: ignore[reportPrivateUsage]
        graph = get_default_graph()
        with graph.colocate_with(resource.op):
            state = graph.create_op("SerializeIterator", [resource], {}, "SerializeIterator").outputs[0]
        super().__init__(resource, [SaveSpec(state, "", f"{resource.name}_STATE")], resource.name)

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Sequence[object] | None) -> Operation:
        graph = get_default_graph()
        with graph.colocate_with(self.op.op):
            return graph.create_op("DeserializeIterator", [self.op, restored_tensors[0]], {}, "DeserializeIterator")


def make_saveable_from_iterator(iterator: Iterator) -> IteratorSaveable:
    """Returns an object with which a `tf.train.Saver` saves the position of an iterator together with variables.

    Run the iterator's initializer before restoring. The restore produces the elements before the position again, and
    drops them.
    """
    return IteratorSaveable(iterator)
