"""Conversion of a dataset's nodes to operations of a graph, and of functions of tensors to bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from headwater.data import structure as nest
from headwater.data.composites import flat_specs, is_dense
from headwater.data.node import Block, Context, Element, Function, Node
from headwater.data.spec import TensorSpec
from headwater.graph import bodies
from headwater.graph.constants import constant_value
from headwater.graph.context import get_default_graph
from headwater.graph.operation import Tensor
from headwater.graph.registry import FunctionAttr, HostFunction
from headwater.shapes import TensorShape
from headwater.tf1.functional import program_order
from headwater.tf1.input.composites import packed_tensors, spec_of_tensors, specified, tensors_of, value_tensor

if TYPE_CHECKING:
    from headwater.graph.types import Structure


_HELD = ("headwater", "python functions of datasets")
"""Key of the collection by which a graph keeps generators alive."""


class TracedFunction(Function):
    """A function of tensors as a body.

    Attributes:
      attr: the body.
      captured: tensors from outside that it uses.
    """

    def __init__(
        self,
        name: str,
        attr: FunctionAttr,
        inputs: tuple[TensorSpec, ...],
        captured: Sequence[Tensor],
        specs: tuple[TensorSpec, ...],
    ) -> None:
        self.name = name
        self.attr = attr
        self.captured: list[Tensor] = list(captured)
        self._inputs = inputs
        self._specs = specs
        self._runs: Function | None = None

    def specs(self) -> tuple[TensorSpec, ...]:
        return self._specs

    @property
    def runner(self) -> Function:
        """Returns the function that runs it outside a step.

        Raises:
          RuntimeError: it uses a tensor whose value is known only in a step.
        """
        if self._runs is None:
            # Imported here, because it loads JAX, which iterating over arrays and files does not need.
            from headwater.graph.ops.dataset_functions import BodyFunction  # noqa: PLC0415

            values: list[Any] = []
            for tensor in self.captured:
                value = constant_value(tensor)
                if value is None:
                    raise RuntimeError(
                        f"{self.name} uses the tensor {tensor.name}, whose value is known only in a step: iterate over "
                        "the dataset with dataset.make_initializable_iterator() in a session, not with `for`"
                    )
                values.append(value)
            self._runs = BodyFunction(self.name, self.attr, self._inputs, values, self._specs)
        return self._runs

    @property
    def columnar(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.runner.columnar

    @property
    def quiet(self) -> bool:
        """Whether the call has no effect that a program could see."""
        return getattr(self.runner, "quiet", False)

    def __call__(self, context: Context, element: Element) -> Element:
        return self.runner(context, element)

    def rows(self, context: Context, block: Block) -> Block:
        return self.runner.rows(context, block)


class FromTensor(Node):
    """The dataset in a tensor of a graph."""

    def __init__(self, tensor: Tensor, specs: tuple[TensorSpec, ...]) -> None:
        self.tensor = tensor
        self._specs = specs

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        return self._specs

    def elements(self, context: Context) -> Iterator[Element]:
        raise RuntimeError(f"the dataset in tensor {self.tensor.name} is known in a step only")


def listed(value: object) -> tuple[Any, ...]:
    """A field of a node that may be one value or several."""
    return value if isinstance(value, tuple) else (value,)  # pyright: ignore[reportUnknownVariableType]


def placeholders(specs: Sequence[TensorSpec]) -> list[Tensor]:
    """Returns symbolic tensors for the arrays of an element, to trace a function."""
    graph = get_default_graph()
    found: list[Tensor] = []
    for spec in flat_specs(specs):
        op = graph.create_op("Placeholder", [], {"dtype": spec.dtype, "shape": TensorShape(spec.dims)}, "args")
        graph.prevent_fetching(op)
        graph.prevent_feeding(op.outputs[0])
        found.append(op.outputs[0])
    return found


def trace(
    name: str, inputs: tuple[TensorSpec, ...], build: Callable[[list[Any]], tuple[list[Any], object]]
) -> tuple[TracedFunction, Any]:
    """Traces a function of an element's components.

    Args:
      build: maps these (tensors, sparse and ragged tensors) to the components of the result and another object, which
        is returned unchanged.

    Raises:
      ValueError: the function changes a variable.
    """
    graph = get_default_graph()
    with graph.name_scope(name):
        params = placeholders(inputs)
        first = graph.version
        with program_order.within_dataset_function():
            results, more = build(packed_tensors(inputs, params))
            effects = program_order.visible_effects(graph, first)
        outputs = [tensor for result in results for tensor in tensors_of(result)]
        graph.check_outside_loops(outputs, name)
        body = bodies.record(graph, first, outputs, params, awaited=effects)
    captured = bodies.captures([body])
    key = bodies.random_key([body])
    attr = bodies.function_of(name, body, [*params, *captured, *([] if key is None else [key])], key)
    specs = tuple(map(spec_of_tensors, results))
    shown = element_attrs(specs)
    described = [(short, shown[long]) for short, long in _RESULTS if long in shown]
    attr = FunctionAttr(attr.name, (*attr.attrs, *described))
    return TracedFunction(name, attr, inputs, captured, specs), more


_RESULTS = (("shapes", "output_shapes"), ("types", "output_types"), ("classes", "output_classes"))
"""Attributes of a function with the types of its results, and the corresponding attributes of operations."""


def dataset_tensor(node: Node) -> Tensor:
    """Returns a tensor with the dataset, and adds the operations that make it."""
    if isinstance(node, FromTensor):
        return node.tensor
    # Imported here, because it loads JAX, which datasets outside of graphs do not need.
    from headwater.graph.ops.datasets import NODES, settings_of  # noqa: PLC0415

    op_type = next(name for name, kind in NODES.items() if type(node) is kind)
    inputs: list[Tensor] = []
    sizes: list[int] = []
    for name in (*node.children, *node.values):
        value = getattr(node, name)
        parts = listed(value)
        inputs += [dataset_tensor(part) if name in node.children else value_tensor(part) for part in parts]
        sizes.append(-len(parts) if isinstance(value, tuple) else 1)  # pyright: ignore[reportUnknownArgumentType]
    specs = node.specs
    attrs: dict[str, object] = {
        **element_attrs(specs),
        "sizes": tuple(sizes),
        "settings": tuple(int(getattr(node, name)) for name in settings_of(type(node))),
    }
    function = getattr(node, "function", None)
    if function is not None:
        attrs["f"] = function.attr
        inputs += function.captured
    graph = get_default_graph()
    make = getattr(node, "make", None)
    if make is not None:
        held = HostFunction(make)
        graph.get_collection_ref(_HELD).append(held)
        attrs["token"] = held.token
    return graph.create_op(op_type, inputs, attrs, op_type).outputs[0]


def element_attrs(specs: Sequence[object]) -> dict[str, tuple[Any, ...]]:
    """Returns the attributes that describe an element: the type and the dense shape of each component.

    If a component is sparse or ragged, ``output_classes`` has the `TensorSpec.code` of each.
    """
    found = [specified(spec) for spec in specs]
    attrs: dict[str, tuple[Any, ...]] = {
        "output_types": tuple(spec.dtype for spec in found),
        "output_shapes": tuple(spec.shape for spec in found),
    }
    return attrs if is_dense(found) else attrs | {"output_classes": tuple(spec.code for spec in found)}


def next_element(element_spec: Structure, outputs: Sequence[Tensor]) -> Structure:
    """Returns the outputs of an operation with `element_attrs` in the structure of an element."""
    specs = [specified(spec) for spec in nest.flatten(element_spec)]
    return nest.pack(element_spec, packed_tensors(specs, outputs))
