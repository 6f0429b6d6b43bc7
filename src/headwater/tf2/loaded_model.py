"""``tf.saved_model.load``: the objects of a saved model, with their variables, tables and functions."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from headwater.data.io import files
from headwater.data.io.saved_model import ASSETS, VARIABLES, read
from headwater.data.io.tensor_proto import make_ndarray
from headwater.data.spec import TensorSpec
from headwater.dtypes import as_dtype, resource, string
from headwater.graph.ancestry import needed_operations
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.graph.foreign.functions import expanded, function_nodes
from headwater.graph.graph import Graph
from headwater.graph.importer import extend_graph
from headwater.graph.operation import Operation, Tensor
from headwater.graph.resources.lookup_tables import Table
from headwater.graph.tensor_names import full_name, source_of
from headwater.keras.graphs.lookups import table_in_graph
from headwater.shapes import TensorShape
from headwater.tensorboard_protos import graph_pb2, trackable_object_graph_pb2
from headwater.tf1.functional import nest
from headwater.tf1.training.checkpoint_reader import CheckpointReader
from headwater.tf1.training.object_graph import OBJECT_GRAPH_KEY
from headwater.tf1.training.saved_model import SERVING
from headwater.tf2 import structures
from headwater.tf2.at_once import adds_operations, as_value, outputs_of
from headwater.tf2.function import Function
from headwater.tf2.lookup_tables import LoadedTable
from headwater.tf2.tape import value_of
from headwater.tf2.tensors import HostTensor, Variable, host_tensor

if TYPE_CHECKING:
    from headwater.data.io.files import Path
    from headwater.keras.types import Tree
    from headwater.tf2.options import LoadOptions

_WRAPPERS: Mapping[str, type[Tree]] = {
    "trackable_dict_wrapper": dict,
    "trackable_list_wrapper": list,
    "trackable_tuple_wrapper": tuple,
    "signature_map": dict,
}
_ASSIGNMENTS = frozenset({"AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"})


def load(export_dir: Path, tags: Iterable[str] | str | None = None, options: LoadOptions | None = None) -> Tree:
    """Loads a saved model.

    Args:
      tags: the names of the graph in it; None: the only one.
      options: accepted; they have no effect.

    Returns:
      An object with the attributes of the object that was saved, and ``signatures``, a dict of functions.

    Raises:
      OSError: there is no saved model in the folder.
      ValueError: it has no graph with these tags, or it contains no objects.
    """
    del options
    folder = os.fsdecode(export_dir)
    graphs = read(folder)
    wanted = None if tags is None else {tags} if isinstance(tags, str) else set(tags)
    found = [graph for graph in graphs if wanted is None or set(graph.meta_info_def.tags) == wanted]
    if len(found) != 1:
        known = "; ".join(", ".join(graph.meta_info_def.tags) for graph in graphs)
        raise ValueError(f"{folder} has the graphs {known}: no single one for tags {sorted(wanted or [SERVING])}")
    if not found[0].object_graph_def.nodes:
        raise ValueError(
            f"{folder} contains a graph without objects, as TensorFlow 1 writes it: load it into a session by "
            "tf.compat.v1.saved_model.load"
        )
    return _Loader(found[0], folder).load()


class LoadedObject:
    """An object of a saved model."""

    signatures: dict[str, Tree]


class _CallableObject(LoadedObject):
    def __call__(self, *args: object, **kwargs: object) -> Tree:
        return vars(self)["__call__"](*args, **kwargs)


class _Loader:
    def __init__(self, meta: Tree, folder: str) -> None:
        self._meta, self._folder = meta, folder
        self._protos: Sequence[Tree] = meta.object_graph_def.nodes
        self._keys, self._reader = self._checkpoint()
        self._made: dict[int, Tree] = {}
        self._tables: dict[int, Table] = {}
        """Tables that exist, by number."""

    def load(self) -> Tree:
        for number in range(len(self._protos)):
            self.object(number)
        for number, proto in enumerate(self._protos):
            self._connect(self._made[number], proto)
        root = self._made[0]
        if not hasattr(root, "signatures"):
            root.signatures = {}
        root.tensorflow_version = self._meta.meta_info_def.tensorflow_version
        return root

    def _checkpoint(self) -> tuple[dict[int, str], CheckpointReader | None]:
        """Returns the names of the variables' values in the checkpoint, by the numbers of their objects."""
        path = os.path.join(self._folder, *VARIABLES)
        if not files.exists(f"{path}.index"):
            return {}, None
        reader = CheckpointReader(path)
        graph = trackable_object_graph_pb2.TrackableObjectGraph.FromString(reader.get_tensor(OBJECT_GRAPH_KEY))
        found: dict[int, str] = {}
        waiting, seen = deque([(0, 0)]), {0}
        while waiting:
            number, saved = waiting.popleft()
            for attribute in graph.nodes[saved].attributes:
                if attribute.name == "VARIABLE_VALUE":
                    found[number] = attribute.checkpoint_key
            names = {child.local_name: child.node_id for child in graph.nodes[saved].children}
            for child in self._protos[number].children:
                if child.local_name in names and child.node_id not in seen:
                    seen.add(child.node_id)
                    waiting.append((child.node_id, names[child.local_name]))
        return found, reader

    def object(self, number: int) -> Tree:
        """Returns an object, without its parts."""
        if number not in self._made:
            proto = self._protos[number]
            make = getattr(self, f"_make_{proto.WhichOneof('kind')}", self._make_user_object)
            self._made[number] = make(number, proto)
        return self._made[number]

    def _make_user_object(self, number: int, proto: Tree) -> Tree:
        del number
        wrapper = _WRAPPERS.get(proto.user_object.identifier)
        if wrapper is not None:
            return [] if wrapper is tuple else wrapper()
        calls = any(child.local_name == "__call__" for child in proto.children)
        return _CallableObject() if calls else LoadedObject()

    def _make_variable(self, number: int, proto: Tree) -> Variable:
        described = proto.variable
        key = self._keys.get(number)
        if key is None or self._reader is None:
            raise ValueError(f"{self._folder} has no value for the variable {described.name!r}")
        value = self._reader.get_tensor(key)
        name = described.name.replace("/", "_") or None
        return Variable(value, trainable=described.trainable, name=name, dtype=as_dtype(described.dtype))

    def _make_resource(self, number: int, proto: Tree) -> LoadedTable:
        parts = {child.local_name: child.node_id for child in proto.children}

        def make() -> Table:
            handle = self._plain_function(parts["_create_resource"]).run([])[0]
            table = np.asarray(handle).item()
            if not isinstance(table, Table):
                raise NotImplementedError(f"{self._folder}: object {number} is a {type(table).__name__}, not a table")
            self._tables[number] = table
            if "_initialize" in parts:
                self._plain_function(parts["_initialize"]).run([])
            return table

        return LoadedTable(make)

    def _plain_function(self, number: int) -> Body:
        return self.body(self._protos[number].function.concrete_functions[0])

    def _make_constant(self, number: int, proto: Tree) -> Tree:
        del number
        node = next(node for node in self._meta.graph_def.node if node.name == proto.constant.operation)
        return as_value(make_ndarray(node.attr["value"].tensor))

    def _make_asset(self, number: int, proto: Tree) -> HostTensor:
        del number
        name = self._meta.asset_file_def[proto.asset.asset_file_def_index].filename
        return host_tensor(os.path.join(self._folder, ASSETS, os.path.basename(name)))

    def _make_function(self, number: int, proto: Tree) -> LoadedFunction:
        del number
        names = list(proto.function.concrete_functions)
        return LoadedFunction([self.body(name) for name in names], proto.function.function_spec)

    def _make_bare_concrete_function(self, number: int, proto: Tree) -> LoadedSignature:
        del number
        bare = proto.bare_concrete_function
        return LoadedSignature(self.body(bare.concrete_function_name), list(bare.argument_keywords))

    def _connect(self, value: Tree, proto: Tree) -> None:
        """Sets the parts of an object."""
        parts = [(child.local_name, self._made[child.node_id]) for child in proto.children]
        if isinstance(value, dict):
            value.update(parts)
        elif isinstance(value, list):
            value.extend(part for _, part in sorted(parts, key=lambda pair: int(pair[0])))
        elif isinstance(value, LoadedObject):
            for name, part in parts:
                if proto.WhichOneof("kind") == "user_object":
                    vars(value)[name] = part

    def body(self, name: str) -> Body:
        """Returns the function called ``name`` of the library."""
        return Body(self, self._meta, name)

    def table(self, number: int) -> Table | None:
        """Returns a table that exists already."""
        return self._tables.get(number)


class Body:
    """A function of the library, with its captured objects.

    Attributes:
      args, kwargs: its arguments, with specs in the places of tensors.
      results: the structure of its results, with specs.
    """

    def __init__(self, loader: _Loader, meta: Tree, name: str) -> None:
        concrete = meta.object_graph_def.concrete_functions[name]
        self._loader, self._library, self.name = loader, meta.graph_def.library, name
        self._producer: int = meta.graph_def.versions.producer
        self._bound: Sequence[int] = list(concrete.bound_inputs)
        self._signature = concrete
        self._graph: Graph | None = None

    @property
    def arguments(self) -> tuple[tuple[Tree, ...], dict[str, Tree]]:
        """The positional and named arguments, with specs in the places of tensors."""
        return structures.decode(self._signature.canonicalized_input_signature)

    @property
    def results(self) -> Tree:
        """The structure of the results, with specs."""
        return structures.decode(self._signature.output_signature)

    def variables(self) -> list[Tree]:
        """Returns the variables that the function uses."""
        captured = map(self._loader.object, self._bound)
        return [value for value in captured if isinstance(value, Variable)]

    def call(self, tensors: Sequence[Tree]) -> Tree:
        """Returns the function's result for the tensors among its arguments."""
        found = iter(self.run(tensors))
        results = self.results
        return nest.pack(results, [None if spec is None else next(found) for spec in nest.flatten(results)])

    def _build(self) -> None:
        nodes, results = function_nodes(self._library, self.name)
        proto = graph_pb2.GraphDef(node=nodes, library=self._library)
        proto.versions.producer = self._producer
        function = next(each for each in self._library.function if each.signature.name == self.name)
        assigned = {source_of(node.input[0]) for node in expanded(proto) if node.op in _ASSIGNMENTS}
        self._graph = graph = Graph()
        self._inputs: list[Tensor] = []
        self._cells: dict[Operation, Tree] = {}
        first = len(function.signature.input_arg) - len(self._bound)
        with graph.as_default():
            for at, arg in enumerate(function.signature.input_arg):
                value = self._loader.object(self._bound[at - first]) if at >= first else None
                if isinstance(value, Variable):
                    kind, shape = as_dtype(str(value.dtype)), TensorShape(list(value.shape))
                else:
                    kind, shape = as_dtype(arg.type), TensorShape(None)
                if isinstance(value, Variable) and arg.name in assigned:
                    op = graph.create_op("VariableV2", [], {"dtype": kind, "shape": shape}, f"{arg.name}/")
                    self._cells[op] = value
                else:
                    op = graph.create_op("Placeholder", [], {"dtype": kind, "shape": shape}, f"{arg.name}/")
                self._inputs.append(op.outputs[0])
            extend_graph(graph, proto)
            self._outputs = [graph.as_graph_element(full_name(item)) for item in results]
            ends = [graph.get_operation_by_name(node) for node in function.control_ret.values()]
        self._order = needed_operations([*(tensor.op for tensor in self._outputs), *ends])

    def run(self, tensors: Sequence[Tree]) -> list[Tree]:
        """Computes the results, or adds the operations to the default graph while a graph is being built."""
        if self._graph is None:
            self._build()
        values: dict[Tensor, Tree] = {}
        for at, tensor in enumerate(self._inputs):
            if at < len(tensors):
                values[tensor] = tensors[at]
            elif tensor.op not in self._cells:
                values[tensor] = self._captured_value(self._bound[at - len(tensors)])
        for op in self._order:
            if op in self._cells:
                values[op.outputs[0]] = _Cell(self._cells[op])
            elif op.outputs and op.outputs[0] in values:
                continue
            else:
                given = [values[tensor] for tensor in op.inputs]
                values.update(zip(op.outputs, _outputs(op, given), strict=True))
        found = [_plain(values[tensor]) for tensor in self._outputs]
        return found if adds_operations() else [as_value(value) for value in found]

    def _captured_value(self, number: int) -> Tree:
        value = self._loader.object(number)
        if isinstance(value, LoadedTable):
            if adds_operations():
                return table_in_graph(value.held)
            handle = np.empty((), object)
            handle[()] = self._loader.table(number) or value.resource
            return handle
        return value_of(value) if isinstance(value, Variable) else value


class _Cell:
    """The value of a reference to a variable."""

    def __init__(self, variable: Tree) -> None:
        self.variable = variable


def _plain(value: Tree) -> Tree:
    return value_of(value.variable) if isinstance(value, _Cell) else value


def _outputs(op: Operation, given: Sequence[Tree]) -> Sequence[Tree]:
    first = given[0] if given else None
    if isinstance(first, _Cell):
        variable = first.variable
        if op.type in ("Assign", "AssignAdd", "AssignSub"):
            method = {"Assign": "assign", "AssignAdd": "assign_add", "AssignSub": "assign_sub"}[op.type]
            getattr(variable, method)(given[1])
            return [first]
        if op.type == "IsVariableInitialized":
            return [np.array(True)]
    values = [_plain(value) for value in given]
    if not adds_operations():
        return outputs_of(op, values)
    inputs = [convert_to_tensor(value) for value in values]
    return get_default_graph().create_op(op.type, inputs, dict(op.attrs), op.name).outputs


class LoadedFunction(Function):
    """A function of a saved model, for each kind of arguments with which it was saved."""

    def __init__(self, bodies: Sequence[Body], spec: Tree) -> None:
        self._bodies = list(bodies)
        described: dict[str, Tree] = structures.decode(spec.fullargspec) if spec.HasField("fullargspec") else {}
        self._names: list[str] = list(described.get("args") or ())
        if self._names[:1] == ["self"] and spec.is_method:
            self._names = self._names[1:]
        self._defaults: tuple[Tree, ...] = tuple(described.get("defaults") or ())
        self._described = described
        super().__init__(self._dispatch, autograph=False)
        self.__name__ = bodies[0].name if bodies else "function"

    @property
    def variables(self) -> list[Tree]:
        """The variables that it uses."""
        found = {id(value): value for body in self._bodies for value in body.variables()}
        return list(found.values())

    @property
    def structured_outputs(self) -> Tree:
        """The results of the first kind of arguments, as specs."""
        return self._bodies[0].results

    def signatures(self) -> list[tuple[Tree, Tree]]:
        return [body.arguments for body in self._bodies]

    def full_arguments(self) -> tuple[list[str], tuple[Tree, ...], list[str], str | None, str | None]:
        return self._names, self._defaults, [], self._described.get("varargs"), self._described.get("varkw")

    def argument_names(self) -> list[str]:
        return self._names

    def _dispatch(self, *args: Tree, **kwargs: Tree) -> Tree:
        whole = self._bound(args, kwargs)
        for body in self._bodies:
            for given in (whole, (args, kwargs)):
                tensors = _matched(given, body.arguments)
                if tensors is not None:
                    return body.call(tensors)
        known = "\n".join(f"  {body.arguments}" for body in self._bodies)
        raise ValueError(
            f"Could not find matching concrete function to call loaded from the SavedModel. Got:\n  {(args, kwargs)}\n"
            f"Expected these arguments to match one of the following {len(self._bodies)} option(s):\n{known}"
        )

    def _bound(self, args: Sequence[Tree], kwargs: Mapping[str, Tree]) -> tuple[tuple[Tree, ...], dict[str, Tree]]:
        """Returns the arguments by position where they have one, with defaults for missing ones."""
        rest = dict(kwargs)
        found = list(args)
        first_default = len(self._names) - len(self._defaults)
        for at, name in enumerate(self._names[len(args) :], len(args)):
            if name in rest:
                found.append(rest.pop(name))
            elif at >= first_default:
                found.append(self._defaults[at - first_default])
            else:
                break
        return tuple(found), rest


class LoadedSignature(Function):
    """A function of a saved model for tensors by name; it returns a dict of tensors.

    Attributes:
      structured_input_signature: the arguments, as specs.
      structured_outputs: the results, as specs.
    """

    def __init__(self, body: Body, names: Sequence[str]) -> None:
        self._body, self._words = body, list(names)
        super().__init__(self._of_tensors, autograph=False)
        self.__name__ = body.name

    @property
    def structured_input_signature(self) -> Tree:
        return self._body.arguments

    @property
    def structured_outputs(self) -> Tree:
        return self._body.results

    def signatures(self) -> list[tuple[Tree, Tree]]:
        return [self._body.arguments]

    def full_arguments(self) -> tuple[list[str], tuple[Tree, ...], list[str], str | None, str | None]:
        return [], (), self._words, None, None

    def argument_names(self) -> list[str]:
        return self._words

    @property
    def variables(self) -> list[Tree]:
        """The variables that it uses."""
        return self._body.variables()

    def _of_tensors(self, *args: Tree, **kwargs: Tree) -> Tree:
        given = dict(zip(self._words, args, strict=False)) | kwargs
        specs: dict[str, Tree] = self._body.arguments[1]
        if not specs:  # a concrete function with positional arguments
            flat = [leaf for leaf in nest.flatten(self._body.arguments) if isinstance(leaf, TensorSpec)]
            specs = dict(zip(self._words, flat, strict=True))
        if set(given) != set(specs):
            raise TypeError(f"{self.__name__} takes the tensors {sorted(specs)}, not {sorted(given)}")
        order = self._words if not self._body.arguments[1] else sorted(specs)
        tensors: list[Tree] = []
        for name in order:
            value = _as_spec(given[name], specs[name])
            if value is None:
                raise ValueError(f"{self.__name__}: {name} must fit {specs[name]}, not {given[name]!r}")
            tensors.append(value)
        return self._body.call(tensors)


def _matched(given: Tree, wanted: Tree) -> list[Tree] | None:
    """Returns the tensors among arguments; None if the arguments do not match the saved ones."""
    tensors: list[Tree] = []

    def fits(value: Tree, spec: Tree) -> bool:
        if isinstance(spec, TensorSpec):
            tensor = _as_spec(value, spec)
            if tensor is not None:
                tensors.append(tensor)
            return tensor is not None
        if isinstance(spec, Mapping):
            return (
                isinstance(value, Mapping)
                and set(value) == set(spec)  # pyright: ignore[reportUnknownArgumentType]
                and all(fits(value[key], spec[key]) for key in sorted(spec))  # pyright: ignore[reportUnknownArgumentType]
            )
        if isinstance(spec, list | tuple):
            return (
                isinstance(value, list | tuple)
                and len(value) == len(spec)  # pyright: ignore[reportUnknownArgumentType]
                and all(map(fits, value, spec))  # pyright: ignore[reportUnknownArgumentType]
            )
        return type(value) is type(spec) and value == spec

    return tensors if fits(given, wanted) else None


def _as_spec(value: Tree, spec: TensorSpec) -> Tree:
    """Converts ``value`` to a tensor of the spec; None if it does not fit."""
    if isinstance(value, Variable):
        value = value_of(value)
    if isinstance(value, Tensor):
        return value if value.dtype.base_dtype == spec.dtype and spec.shape.is_compatible_with(value.shape) else None
    if spec.dtype in (string, resource):
        array: Tree = value if isinstance(value, HostTensor) else host_tensor(value)
        if array.dtype.kind not in "OSU":
            return None
    else:
        if isinstance(value, jax.Array | np.ndarray | np.generic):
            if value.dtype != spec.dtype.numpy_dtype:
                return None
        elif not isinstance(value, bool | int | float | list | tuple):
            return None
        try:
            array = jnp.asarray(value, spec.dtype.numpy_dtype)  # pyright: ignore[reportUnknownArgumentType]
        except (TypeError, ValueError):
            return None
    return array if spec.shape.is_compatible_with(array.shape) else None


def signature_of(loaded: object, name: str) -> Tree:
    """Returns an endpoint of a loaded object: an attribute, or a signature.

    Raises:
      ValueError: there is none of that name.
    """
    found = getattr(loaded, name, None) or getattr(loaded, "signatures", {}).get(name)
    if found is None:
        known = sorted(getattr(loaded, "signatures", {}))
        raise ValueError(f"The endpoint {name!r} is neither an attribute nor a signature of the model; it has {known}")
    return found
