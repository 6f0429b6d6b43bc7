"""``tf.saved_model.save``: objects with variables, tables and functions in one folder, for every TensorFlow 2.

The folder contains the functions as graphs, the objects with their attributes, and the values of variables in a
checkpoint of objects. The graph beside the functions, with the signatures as inputs and outputs, is for TensorFlow 1
and for servers.

Source: the protocol messages ``SavedObjectGraph`` and ``TrackableObjectGraph``, and saved models that TensorFlow 2.21
wrote.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import keras
import numpy as np

from headwater.data.io import files
from headwater.data.io.bundle_writer import BundleWriter
from headwater.data.io.saved_model import FILE_NAME, VARIABLES, encode
from headwater.data.spec import TensorSpec
from headwater.dtypes import as_dtype, int32, resource, string
from headwater.graph.attr_value import write_attr
from headwater.graph.resources.lookup_tables import Table
from headwater.shapes import TensorShape
from headwater.tensorboard_protos import function_pb2, meta_graph_pb2, node_def_pb2, trackable_object_graph_pb2
from headwater.tf1.functional import nest
from headwater.tf1.training.object_graph import OBJECT_GRAPH_KEY
from headwater.tf1.training.saved_model import DEFAULT_SERVING_SIGNATURE_DEF_KEY, PREDICT_METHOD_NAME, SERVING
from headwater.tf2 import structures
from headwater.tf2.concrete import Traced, trace
from headwater.tf2.function import ConcreteFunction, Function
from headwater.tf2.function_defs import function_def
from headwater.tf2.lookup_tables import table_of
from headwater.tf2.saved_objects import parts_of
from headwater.tf2.structures import model_specs
from headwater.tf2.tape import value_of

if TYPE_CHECKING:
    from headwater.data.io.files import Path
    from headwater.keras.types import Tree
    from headwater.tf2.options import SaveOptions

INIT_KEY = "__saved_model_init_op"
"""The signature that names the operation to run after loading."""

_VARIABLE = keras.Variable
_PRODUCER = 2474  # the version of TensorFlow 2.21's GraphDefs
_MIN_CONSUMER = 12
_VERSION = "2.16.0"  # of the format, for programs that check it


def save(obj: Tree, export_dir: Path, signatures: Tree = None, options: SaveOptions | None = None) -> None:
    """Writes an object to a folder.

    Args:
      obj: a `tf.Module`, Keras model, checkpoint or other object. Its variables, tables, modules and `tf.function`
        functions, as attributes or in lists and dicts, are saved; functions for the specs in their
        ``input_signature``, or for all kinds of arguments with which they were called.
      export_dir: the folder; it is created, and existing files are replaced.
      signatures: a function with an ``input_signature``, a concrete function, or a dict of these by name. None: the
        only function of ``obj`` with a known signature, if there is exactly one, or the call of a Keras model.
      options: accepted; they have no effect.

    Raises:
      ValueError: a function cannot be exported; the message names the operation. Or a signature is not known.
    """
    del options
    _Writer(obj, os.fsdecode(export_dir)).write(signatures)


@dataclass(kw_only=True)
class _Node:
    """An object.

    Attributes:
      value: the object.
      path: the names of the attributes that lead to it.
      children: its parts, by name.
      kind: the kind of a node without an object; see `_Writer._fill`.
    """

    value: Tree
    path: tuple[str, ...] = ()
    children: dict[str, int] = field(default_factory=dict[str, int])
    kind: str = ""


class _Writer:
    def __init__(self, root: Tree, folder: str) -> None:
        self._folder = folder
        self._nodes: list[_Node] = []
        self._ids: dict[int, int] = {}
        self._kept: list[Tree] = []
        """Objects whose ids are in use."""
        self._names = itertools.count()
        self._meta = meta_graph_pb2.MetaGraphDef()
        self._objects = self._meta.object_graph_def
        self._handles: dict[int, str] = {}
        """The node of each variable's or table's handle in the main graph, by number."""
        self._node(root, ())
        position = 0
        while position < len(self._nodes):  # nodes are added at the end
            self._add_parts(self._nodes[position])
            position += 1

    # Objects --------------------------------------------------------------------------------------------------------

    def _node(self, value: Tree, path: tuple[str, ...], kind: str = "") -> int:
        table = table_of(value)
        key = id(value if table is None else table)
        if not kind and key in self._ids:
            return self._ids[key]
        self._nodes.append(_Node(value=value if table is None else table, path=path, kind=kind))
        self._kept.append((value, table))
        if not kind:
            self._ids[key] = len(self._nodes) - 1
        return len(self._nodes) - 1

    def _add_parts(self, node: _Node) -> None:
        if not node.kind and not isinstance(node.value, Table):
            for name, part in parts_of(node.value):
                node.children[name] = self._node(part, (*node.path, name.replace(".", "..").replace("/", ".S")))

    def _number(self, value: Tree) -> int:
        """Returns the node of a captured variable or table; objects that are no parts become parts of the root."""
        if id(value) not in self._ids:
            name = f"captured_{len(self._nodes)}"
            self._nodes[0].children[name] = self._node(value, (name,))
        return self._ids[id(value)]

    # Writing --------------------------------------------------------------------------------------------------------

    def write(self, signatures: Tree) -> None:
        meta = self._meta
        meta.meta_info_def.tags.append(SERVING)
        meta.meta_info_def.tensorflow_version = _VERSION
        meta.graph_def.versions.producer, meta.graph_def.versions.min_consumer = _PRODUCER, _MIN_CONSUMER
        traced: dict[int, list[Traced]] = {}
        for at, node in enumerate(list(self._nodes)):
            if isinstance(node.value, Function):
                traced[at] = [self._trace(node.value, *pair) for pair in node.value.signatures()]
        served = self._signatures(signatures, traced)
        for at, found in traced.items():
            self._add_function(at, found)
        self._add_signatures(served)
        tables = [at for at, node in enumerate(self._nodes) if isinstance(node.value, Table)]
        for at in tables:
            self._add_table(at)
        for at, node in enumerate(self._nodes):
            self._fill(self._objects.nodes[at] if at < len(self._objects.nodes) else self._objects.nodes.add(), node)
        self._add_main_graph(served, tables)
        self._write_values()
        with files.atomic_write(os.path.join(self._folder, FILE_NAME)) as file:
            file.write(encode([meta]))

    def _trace(self, function: Function, args: Tree, kwargs: Mapping[str, Tree]) -> Traced:
        whole = function.whole if isinstance(function, ConcreteFunction) else function
        found = trace(self._free(function.__name__), whole, args, kwargs)
        self._meta.graph_def.library.function.append(function_def(found.parts))
        for value in found.parts.captures:
            self._number(value)
        self._add_concrete(found.parts.name, found.parts.captures, found.args, found.kwargs, found.results)
        return found

    def _free(self, name: str) -> str:
        return f"__inference_{name.strip('<>')}_{next(self._names)}"

    def _add_concrete(self, name: str, captures: Sequence[Tree], args: Tree, kwargs: Tree, results: Tree) -> None:
        concrete = self._objects.concrete_functions[name]
        concrete.bound_inputs.extend(map(self._number, captures))
        concrete.canonicalized_input_signature.CopyFrom(structures.encode((tuple(args), dict(kwargs))))
        concrete.output_signature.CopyFrom(structures.encode(results))

    # Functions ------------------------------------------------------------------------------------------------------

    def _add_function(self, at: int, traced: Sequence[Traced]) -> None:
        function: Function = self._nodes[at].value
        for number, found in enumerate(traced):
            child = self._node(found, (), "concrete")
            self._nodes[at].children[f"trace_{number}"] = child
        self._nodes[at].kind = "function"
        self._nodes[at].value = function, [found.parts.name for found in traced]

    def _signatures(self, signatures: Tree, traced: Mapping[int, Sequence[Traced]]) -> dict[str, tuple[str, Traced]]:
        """Returns the wrapper's name and the function of each signature."""
        if signatures is None:
            known = [found for found in traced.values() if len(found) == 1 and _is_signature(found[0])]
            of_root = set(self._nodes[0].children.values())
            known = [found for at, found in traced.items() if at in of_root and found in known]
            chosen = {DEFAULT_SERVING_SIGNATURE_DEF_KEY: known[0][0]} if len(known) == 1 else {}
            root = self._nodes[0].value
            if not chosen and isinstance(root, keras.Model) and root.built:
                specs = model_specs(root)
                if len(specs) == 1 and isinstance(specs[0], TensorSpec):
                    specs = [TensorSpec(specs[0].shape, specs[0].dtype, "inputs")]
                chosen = {DEFAULT_SERVING_SIGNATURE_DEF_KEY: self._trace(Function(root.__call__, specs), specs, {})}
        else:
            given = signatures if isinstance(signatures, Mapping) else {DEFAULT_SERVING_SIGNATURE_DEF_KEY: signatures}
            chosen = {str(key): self._signature(str(key), value, traced) for key, value in given.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return {key: (self._free(f"signature_wrapper_{key}"), found) for key, found in chosen.items()}

    def _signature(self, key: str, function: Tree, traced: Mapping[int, Sequence[Traced]]) -> Traced:
        if not isinstance(function, Function):
            raise ValueError(f"signature {key!r} is {function!r}: pass a tf.function")
        known = traced.get(self._ids.get(id(function), -1))
        if known is None:
            pairs = function.signatures()
            known = [self._trace(function, *pair) for pair in pairs[:1]] if len(pairs) == 1 else []
        if len(known) != 1:
            raise ValueError(
                f"signature {key!r}: the function {function.__name__} has {len(known)} kinds of arguments; give it an "
                "input_signature, or pass function.get_concrete_function(...)"
            )
        return known[0]

    def _add_signatures(self, served: Mapping[str, tuple[str, Traced]]) -> None:
        whole = self._node(served, ("signatures",), "signature_map")
        self._nodes[0].children["signatures"] = whole
        for key, (name, found) in served.items():
            proto = self._meta.graph_def.library.function.add()
            self._fill_wrapper(proto, name, found, key)
            inputs = {spec.name: spec for spec in _input_specs(found)}
            outputs = {word: TensorSpec(spec.shape, spec.dtype, word) for word, spec in _output_specs(found).items()}
            self._add_concrete(name, found.parts.captures, (), inputs, outputs)
            child = self._node((name, list(inputs)), (), "signature")
            self._nodes[whole].children[key] = child

    def _fill_wrapper(self, proto: Tree, name: str, found: Traced, key: str) -> None:
        """Fills in the function of a signature, which has tensors by name as arguments and results."""
        signature = proto.signature
        signature.name, signature.is_stateful = name, True
        inputs = _input_specs(found)
        order = sorted(range(len(inputs)), key=lambda at: str(inputs[at].name))
        for at in order:
            signature.input_arg.add(name=f"input_{at}", type=inputs[at].dtype.as_datatype_enum)
        node = proto.node_def.add()
        arguments = [f"input_{at}" for at in range(len(inputs))]
        for at, _ in enumerate(found.parts.captures):
            signature.input_arg.add(name=f"capture_{at}", type=_RESOURCE)
            arguments.append(f"capture_{at}")
        self._fill_call(node, "call", found.parts.name, arguments, [spec.dtype for spec in inputs], found)
        proto.control_ret["call"] = "call"
        signature.control_output.append("call")
        for at, (word, spec) in enumerate(_output_specs(found).items()):
            number = _order_of(found).index(word)
            signature.output_arg.add(name=f"output_{at}", type=spec.dtype.as_datatype_enum)
            proto.ret[f"output_{at}"] = f"call:output:{number}"

    def _fill_call(
        self, node: Tree, name: str, function: str, inputs: Sequence[str], dtypes: Sequence[Tree], found: Traced
    ) -> None:
        node.name, node.op = name, "StatefulPartitionedCall"
        node.input.extend(inputs)
        node.attr["f"].func.name = function
        node.attr["Tin"].list.type.extend([dtype.as_datatype_enum for dtype in dtypes])
        node.attr["Tin"].list.type.extend([_RESOURCE] * len(found.parts.captures))
        node.attr["Tout"].list.type.extend(tensor.dtype.base_dtype.as_datatype_enum for tensor in found.parts.outputs)
        node.attr["Tout"].list.SetInParent()

    # Tables ---------------------------------------------------------------------------------------------------------

    def _add_table(self, at: int) -> None:
        """Adds the functions that create, fill and destroy a table."""
        table, handle, done = self._nodes[at].value, TensorSpec((), resource), TensorSpec((), int32)
        for attribute, made, captures, result in (
            ("_create_resource", self._creator(table, self._free(f"create_{at}")), [], handle),
            ("_initialize", self._initializer(table, self._free(f"initialize_{at}")), [table], done),
            ("_destroy_resource", self._returning_one(self._free(f"destroy_{at}")), [], done),
        ):
            self._meta.graph_def.library.function.append(made)
            self._add_concrete(made.signature.name, captures, (), {}, result)
            function = self._node((attribute, [made.signature.name]), (), "plain_function")
            self._nodes[at].children[attribute] = function

    def _creator(self, table: Table, name: str) -> Tree:
        proto = function_pb2.FunctionDef()
        proto.signature.name, proto.signature.is_stateful = name, True
        proto.signature.output_arg.add(name="output_0", type=_RESOURCE)
        proto.node_def.append(_table_node(table, "table", name.strip("_")))
        proto.ret["output_0"] = "table:table_handle:0"
        proto.control_ret["table"] = "table"
        proto.signature.control_output.append("table")
        return proto

    def _initializer(self, table: Table, name: str) -> Tree:
        proto = self._returning_one(name)
        proto.signature.is_stateful = True
        proto.signature.input_arg.add(name="table", type=_RESOURCE)
        keys, values = table.export()
        for word, value, dtype in (("keys", keys, table.key_dtype), ("values", values, table.value_dtype)):
            proto.node_def.append(_constant(word, value, dtype))
        node = proto.node_def.add(name="fill", op="LookupTableImportV2")
        node.input.extend(["table", "keys:output:0", "values:output:0"])
        node.attr["Tin"].type = table.key_dtype.as_datatype_enum
        node.attr["Tout"].type = table.value_dtype.as_datatype_enum
        proto.control_ret["fill"] = "fill"
        proto.signature.control_output.append("fill")
        return proto

    def _returning_one(self, name: str) -> Tree:
        """Returns a function without effects: tables are freed with their process."""
        proto = function_pb2.FunctionDef()
        proto.signature.name = name
        proto.signature.output_arg.add(name="output_0", type=int32.as_datatype_enum)
        proto.node_def.append(_constant("done", np.int32(1), int32))
        proto.ret["output_0"] = "done:output:0"
        return proto

    # The graph of objects -------------------------------------------------------------------------------------------

    def _fill(self, proto: Tree, node: _Node) -> None:
        for name, child in node.children.items():
            proto.children.add(node_id=child, local_name=name)
        match node.kind:
            case "function":
                function, names = node.value
                proto.function.concrete_functions.extend(names)
                _fill_spec(proto.function.function_spec, function)
            case "plain_function":
                proto.function.concrete_functions.extend(node.value[1])
                _fill_spec(proto.function.function_spec, None)
            case "concrete":
                found: Traced = node.value
                bare = proto.bare_concrete_function
                bare.concrete_function_name = found.parts.name
                names = [spec.name for spec in _input_specs(found)]
                bare.argument_keywords.extend(names)
                bare.allowed_positional_arguments = len(names)
            case "signature":
                bare = proto.bare_concrete_function
                bare.concrete_function_name = node.value[0]
                bare.argument_keywords.extend(sorted(node.value[1]))
                bare.allowed_positional_arguments = 0 if len(node.value[1]) != 1 else 1
            case _:
                self._fill_object(proto, node)

    def _fill_object(self, proto: Tree, node: _Node) -> None:
        value = node.value
        if isinstance(value, Table):
            proto.resource.SetInParent()
        elif isinstance(value, _VARIABLE):
            variable = proto.variable
            variable.dtype = as_dtype(str(value.dtype)).as_datatype_enum
            variable.shape.CopyFrom(TensorShape(list(value.shape)).as_proto())
            variable.trainable = bool(value.trainable)
            variable.name = str(value.name)
        else:
            user = proto.user_object
            user.identifier = node.kind or _identifier(value)
            user.version.producer = user.version.min_consumer = 1

    # The graph for servers ------------------------------------------------------------------------------------------

    def _add_main_graph(self, served: Mapping[str, tuple[str, Traced]], tables: Sequence[int]) -> None:
        graph = self._meta.graph_def
        for at, node in enumerate(self._nodes):
            if isinstance(node.value, Table):
                self._handles[at] = f"table_{at}"
                graph.node.append(_table_node(node.value, self._handles[at], f"table_{at}"))
            elif isinstance(node.value, _VARIABLE) and not node.kind:
                self._handles[at] = f"variable_{at}"
                handle = graph.node.add(name=self._handles[at], op="VarHandleOp")
                _set(handle, dtype=as_dtype(str(node.value.dtype)), shape=TensorShape(list(node.value.shape)))
                _set(handle, container="", shared_name=self._handles[at])
        for key, (name, found) in served.items():
            self._add_served(key, name, found)
        init = graph.node.add(name="NoOp", op="NoOp")
        for at in tables:
            concrete = self._nodes[self._nodes[at].children["_initialize"]].value[1][0]
            node = graph.node.add(name=f"initialize_{at}", op="StatefulPartitionedCall", input=[self._handles[at]])
            node.attr["f"].func.name = concrete
            node.attr["Tin"].list.type.append(_RESOURCE)
            node.attr["Tout"].list.type.append(int32.as_datatype_enum)
            init.input.append(f"^{node.name}")
        output = self._meta.signature_def[INIT_KEY].outputs[INIT_KEY]
        output.name = "NoOp"
        output.tensor_shape.unknown_rank = True
        self._add_saver()

    def _add_served(self, key: str, name: str, found: Traced) -> None:
        graph, signature = self._meta.graph_def, self._meta.signature_def[key]
        signature.method_name = PREDICT_METHOD_NAME
        specs = sorted(_input_specs(found), key=lambda spec: str(spec.name))
        inputs: list[str] = []
        for spec in specs:
            placeholder = graph.node.add(name=f"{key}_{spec.name}", op="Placeholder")
            _set(placeholder, dtype=spec.dtype, shape=spec.shape)
            inputs.append(placeholder.name)
            _fill_info(signature.inputs[spec.name], f"{placeholder.name}:0", spec)
        inputs += [self._handles[self._number(value)] for value in found.parts.captures]
        node = graph.node.add()
        self._fill_call(node, f"{key}_call", name, inputs, [spec.dtype for spec in specs], found)
        del node.attr["Tout"].list.type[:]
        for at, (word, spec) in enumerate(_output_specs(found).items()):
            node.attr["Tout"].list.type.append(spec.dtype.as_datatype_enum)
            _fill_info(signature.outputs[word], f"{node.name}:{at}", spec)

    def _add_saver(self) -> None:
        """Adds the operations that save and restore the variables."""
        graph, saver = self._meta.graph_def, self._meta.saver_def
        numbers = [at for at in self._handles if isinstance(self._nodes[at].value, _VARIABLE)]
        names = [_key(self._nodes[at]) for at in numbers]
        dtypes = [as_dtype(str(self._nodes[at].value.dtype)) for at in numbers]
        filename = graph.node.add(name="saver_filename", op="Placeholder")
        _set(filename, dtype=string, shape=TensorShape(()))
        graph.node.append(_constant("saver_names", np.array(names, object), string))
        graph.node.append(_constant("saver_slices", np.array([""] * len(names), object), string))
        shared = ["saver_filename", "saver_names", "saver_slices"]
        end = graph.node.add(name="saver_save", op="Identity", input=["saver_filename"])
        _set(end, T=string)
        restored = graph.node.add(name="saver_restore", op="NoOp")
        if names:
            for at, dtype in zip(numbers, dtypes, strict=True):
                read = graph.node.add(name=f"saver_read_{at}", op="ReadVariableOp", input=[self._handles[at]])
                _set(read, dtype=dtype)
            values = [f"saver_read_{at}" for at in numbers]
            node = graph.node.add(name="saver_values", op="SaveV2", input=[*shared, *values])
            _set(node, dtypes=tuple(dtypes))
            end.input.append("^saver_values")
            node = graph.node.add(name="saver_restored", op="RestoreV2", input=shared)
            _set(node, dtypes=tuple(dtypes))
            for place, (at, dtype) in enumerate(zip(numbers, dtypes, strict=True)):
                assign = graph.node.add(name=f"saver_assign_{at}", op="AssignVariableOp")
                assign.input.extend([self._handles[at], f"saver_restored:{place}" if place else "saver_restored"])
                _set(assign, dtype=dtype)
                restored.input.append(f"^saver_assign_{at}")
        saver.filename_tensor_name, saver.save_tensor_name = "saver_filename:0", "saver_save:0"
        saver.restore_op_name, saver.version = "saver_restore", saver.V2

    def _write_values(self) -> None:
        path = os.path.join(self._folder, *VARIABLES)
        files.makedirs(os.path.dirname(path))
        graph = trackable_object_graph_pb2.TrackableObjectGraph()
        values: dict[str, Tree] = {}
        for node in self._nodes:
            proto = graph.nodes.add()
            for name, child in node.children.items():
                proto.children.add(node_id=child, local_name=name)
            if isinstance(node.value, _VARIABLE) and not node.kind:
                key = _key(node)
                proto.attributes.add(name="VARIABLE_VALUE", full_name=str(node.value.name), checkpoint_key=key)
                values[key] = np.asarray(value_of(node.value))
        values[OBJECT_GRAPH_KEY] = np.array(graph.SerializeToString(deterministic=True), object)
        with BundleWriter(path) as writer:
            for name, value in sorted(values.items()):
                writer.add(name, value)
            writer.finish()


_RESOURCE = resource.as_datatype_enum


def _key(node: _Node) -> str:
    return "/".join([*node.path, ".ATTRIBUTES", "VARIABLE_VALUE"])


def _identifier(value: Tree) -> str:
    if isinstance(value, Mapping):
        return "trackable_dict_wrapper"
    if isinstance(value, list):
        return "trackable_list_wrapper"
    return "trackable_tuple_wrapper" if isinstance(value, tuple) else "_generic_user_object"


def _input_specs(found: Traced) -> list[TensorSpec]:
    """Returns the specs of a function's tensors with their names, in the order of its arguments."""
    leaves = [leaf for leaf in nest.flatten((found.args, dict(found.kwargs))) if isinstance(leaf, TensorSpec)]
    return [TensorSpec(leaf.shape, leaf.dtype, name) for leaf, name in zip(leaves, found.names, strict=True)]


def _order_of(found: Traced) -> list[str]:
    """Returns the names of the results in a signature, in the order of the function's results."""
    if isinstance(found.results, Mapping):
        return sorted(found.results)
    return [f"output_{at}" for at in range(len(found.parts.outputs))]


def _output_specs(found: Traced) -> dict[str, TensorSpec]:
    specs = [spec for spec in nest.flatten(found.results) if spec is not None]
    return dict(sorted(zip(_order_of(found), specs, strict=True)))


def _is_signature(found: Traced) -> bool:
    """Returns whether a function can be a signature: its results are tensors, or a flat dict or sequence of tensors."""
    results: Tree = found.results
    leaves = list(results.values()) if isinstance(results, Mapping) else results
    leaves = leaves if isinstance(leaves, list | tuple) else [leaves]
    return bool(leaves) and all(isinstance(leaf, TensorSpec) for leaf in leaves)


def _fill_spec(proto: Tree, function: Function | None) -> None:
    """Fills in the names and the defaults of a function's arguments."""
    names, defaults, only, varargs, varkw = ([], (), {}, None, None) if function is None else function.full_arguments()
    described = {
        "args": names,
        "varargs": varargs,
        "varkw": varkw,
        "defaults": defaults or None,
        "kwonlyargs": list(only),
        "kwonlydefaults": None,
        "annotations": {},
    }
    proto.fullargspec.named_tuple_value.name = "FullArgSpec"
    for key, value in described.items():
        proto.fullargspec.named_tuple_value.values.add(key=key).value.CopyFrom(structures.encode(value))
    signature = None if function is None else function.input_signature
    proto.input_signature.CopyFrom(structures.encode(None if signature is None else tuple(signature)))


def _fill_info(proto: Tree, name: str, spec: TensorSpec) -> None:
    proto.name, proto.dtype = name, spec.dtype.as_datatype_enum
    proto.tensor_shape.CopyFrom(spec.shape.as_proto())


def _set(node: Tree, **attrs: object) -> None:
    for key, value in attrs.items():
        write_attr(node.attr[key], value)


def _constant(name: str, value: Tree, dtype: Tree) -> Tree:
    node = node_def_pb2.NodeDef(name=name, op="Const")
    array = np.asarray(value)
    _set(node, dtype=dtype, value=array if dtype == string else array.astype(dtype.numpy_dtype))
    return node


def _table_node(table: Table, name: str, shared: str) -> Tree:
    node = node_def_pb2.NodeDef(name=name, op="HashTableV2" if table.is_fixed else "MutableHashTableV2")
    _set(node, key_dtype=table.key_dtype, value_dtype=table.value_dtype, shared_name=shared, container="")
    _set(node, use_node_name_sharing=True)
    return node
