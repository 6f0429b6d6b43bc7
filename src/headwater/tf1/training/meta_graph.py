"""Meta graphs: a graph with its collections and its saver, in TensorFlow's format, stored with checkpoints."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from google.protobuf import text_format
from google.protobuf.message import DecodeError, Message

from headwater.data.io import files
from headwater.data.io.protos.queue_runner_pb2 import QueueRunnerDef
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.graph import Graph
from headwater.graph.graph_def import strip_defaults
from headwater.graph.importer import import_graph_def
from headwater.graph.operation import Operation, Tensor
from headwater.tensorboard_protos import graph_pb2, meta_graph_pb2, variable_pb2
from headwater.tf1.training.queue_runner import QueueRunner
from headwater.tf1.variables.variables import Variable

if TYPE_CHECKING:
    from headwater.tensorboard_protos import GraphDef, MetaGraphDef, SaverDef
    from headwater.tf1.training.saver import Saver


_logger: Final = logging.getLogger(__name__)
_TENSORFLOW_VERSION: Final = "1.15.0"  # version of the format, for programs that check it

FromProto = Callable[[Any, "str | None"], Any]
_kinds: dict[str, tuple[type[Message], FromProto]] = {
    **dict.fromkeys(
        (
            GraphKeys.GLOBAL_VARIABLES,
            GraphKeys.LOCAL_VARIABLES,
            GraphKeys.METRIC_VARIABLES,
            GraphKeys.MODEL_VARIABLES,
            GraphKeys.TRAINABLE_VARIABLES,
            GraphKeys.MOVING_AVERAGE_VARIABLES,
            GraphKeys.GLOBAL_STEP,
        ),
        (variable_pb2.VariableDef, Variable.from_proto),
    ),
    GraphKeys.QUEUE_RUNNERS: (QueueRunnerDef, QueueRunner.from_proto),
}


def register_proto_function(
    collection_name: str, proto_type: Any = None, to_proto: object = None, from_proto: Any = None
) -> None:
    """Registers how messages become the items of a collection; items are exported by their own ``to_proto``.

    Raises:
      TypeError: ``from_proto`` is not callable.
    """
    del to_proto
    if from_proto is not None and not callable(from_proto):
        raise TypeError("from_proto must be callable.")
    if proto_type is not None and from_proto is not None:
        _kinds[collection_name] = (proto_type, from_proto)


def make_meta_graph(
    graph: Graph,
    *,
    saver: Saver | None = None,
    saver_def: SaverDef | None = None,
    collection_list: Iterable[str] | None = None,
    graph_def: GraphDef | None = None,
    meta_info_def: object = None,
    export_scope: str | None = None,
    clear_devices: bool = False,
    strip_default_attrs: bool = False,
) -> Any:
    """``graph`` as a ``MetaGraphDef``; see `export_meta_graph`."""
    proto = meta_graph_pb2.MetaGraphDef()
    if meta_info_def is not None:
        proto.meta_info_def.CopyFrom(meta_info_def)
    proto.meta_info_def.tensorflow_version = _TENSORFLOW_VERSION
    proto.graph_def.CopyFrom(graph.as_graph_def(add_shapes=True) if graph_def is None else graph_def)
    if export_scope:
        _keep_scope(proto.graph_def, f"{export_scope}/")
    if clear_devices:
        for node in proto.graph_def.node:
            node.device = ""
    if strip_default_attrs:
        strip_defaults(proto.graph_def)
    proto.meta_info_def.stripped_default_attrs = strip_default_attrs
    if saver is not None:
        saver_def = saver.to_proto(export_scope)
    if saver_def is not None:
        proto.saver_def.CopyFrom(saver_def)
    keys = graph.get_all_collection_keys() if collection_list is None else list(collection_list)
    for key in keys:
        _write_collection(proto, key, graph.get_collection(key), export_scope)
    return proto


def _keep_scope(graph_def: GraphDef, prefix: str) -> None:
    """Removes nodes outside the scope, and the scope from the names of the rest."""
    whole = graph_pb2.GraphDef()
    whole.CopyFrom(graph_def)
    del graph_def.node[:]
    for node in whole.node:
        if not node.name.startswith(prefix):
            continue
        node.name = node.name.removeprefix(prefix)
        for index, source in enumerate(node.input):
            caret, name = ("^", source[1:]) if source.startswith("^") else ("", source)
            node.input[index] = caret + name.removeprefix(prefix)
        if "_class" in node.attr:
            groups = node.attr["_class"].list.s
            groups[:] = [group.replace(b"loc:@" + prefix.encode(), b"loc:@") for group in groups]
        graph_def.node.add().CopyFrom(node)


def _is_node(key: str, item: object) -> bool:
    """Returns whether an item of a collection is exported by its name, such as a variable in a program's collection."""
    return isinstance(item, Tensor | Operation) or (key not in _kinds and hasattr(item, "op"))


def _write_collection(proto: Any, key: str, items: Sequence[Any], export_scope: str | None) -> None:
    prefix = f"{export_scope}/" if export_scope else ""
    target = meta_graph_pb2.CollectionDef()
    for item in items:
        if hasattr(item, "to_proto") and not _is_node(key, item):
            message = item.to_proto(export_scope=export_scope)
            if message is not None:
                target.bytes_list.value.append(message.SerializeToString())
        elif _is_node(key, item):
            if item.name.startswith(prefix):
                target.node_list.value.append(item.name.removeprefix(prefix))
        elif isinstance(item, str | bytes):
            target.bytes_list.value.append(item.encode() if isinstance(item, str) else item)
        elif isinstance(item, bool):
            continue
        elif isinstance(item, int):
            target.int64_list.value.append(item)
        elif isinstance(item, float):
            target.float_list.value.append(item)
        elif isinstance(item, Message):
            target.any_list.value.add().Pack(item)
        else:
            _logger.debug("Collection %s: %r has no serialised form and is omitted", key, item)
    if target.WhichOneof("kind"):
        proto.collection_def[key].CopyFrom(target)


def export_meta_graph(
    filename: str | None = None,
    meta_info_def: object = None,
    graph_def: GraphDef | None = None,
    saver_def: SaverDef | None = None,
    collection_list: Sequence[str] | None = None,
    as_text: bool = False,
    graph: Graph | None = None,
    export_scope: str | None = None,
    clear_devices: bool = False,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    save_debug_info: bool = False,
    **kwargs: object,
) -> MetaGraphDef:
    """Returns a graph with its collections as a ``MetaGraphDef``, and writes it to a file on request.

    Args:
      filename: the file; without it, no file is written.
      meta_info_def: description to include.
      graph_def: a ``GraphDef`` in place of the graph's.
      saver_def: the saver to include.
      collection_list: names of the collections; all if None.
      as_text: in the text form of protobuf, else binary.
      graph: the graph; the default one if None.
      export_scope: export only operations in this name scope, with the scope removed from their names.
      clear_devices: omit the devices.
      strip_default_attrs: omit attributes with default values, so that older programs can read the file.
      clear_extraneous_savers, save_debug_info: not supported.

    Raises:
      TypeError: ``graph`` is not a `Graph`, or there is an unknown argument.
      ValueError: ``clear_extraneous_savers`` or ``save_debug_info`` is true.
    """
    if kwargs:
        raise TypeError(f"export_meta_graph() got unexpected arguments {', '.join(kwargs)}")
    if clear_extraneous_savers or save_debug_info:
        raise ValueError("clear_extraneous_savers and save_debug_info are not supported; omit them")
    graph = graph or get_default_graph()
    if not isinstance(graph, Graph):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"graph must be of type Graph not {type(graph)}")
    proto = make_meta_graph(
        graph,
        saver_def=saver_def,
        collection_list=collection_list,
        graph_def=graph_def,
        meta_info_def=meta_info_def,
        export_scope=export_scope,
        clear_devices=clear_devices,
        strip_default_attrs=strip_default_attrs,
    )
    if filename:
        with files.atomic_write(filename) as file:
            file.write(text_format.MessageToString(proto).encode() if as_text else proto.SerializeToString())
    return proto


def read_meta_graph_file(filename: str) -> Any:
    """The ``MetaGraphDef`` in a file, binary or text.

    Raises:
      NotFoundError: there is no such file.
      OSError: it is not a meta graph.
    """
    with files.open_file(filename, "rb") as file:
        data = file.read()
    try:
        return meta_graph_pb2.MetaGraphDef.FromString(data)
    except DecodeError:
        pass
    try:
        return text_format.Parse(data.decode(), meta_graph_pb2.MetaGraphDef())
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise OSError(f"Cannot parse file {filename}: {error}.") from error


def import_graph(
    meta_graph_or_file: Any, clear_devices: bool = False, import_scope: str | None = None, **kwargs: Any
) -> Any:
    """Adds the graph and the collections of a meta graph to the default graph; returns the ``MetaGraphDef``.

    Raises:
      OSError: there is no such file.
    """
    if isinstance(meta_graph_or_file, meta_graph_pb2.MetaGraphDef):
        proto = meta_graph_or_file
    else:
        if isinstance(meta_graph_or_file, str) and not files.exists(meta_graph_or_file):
            raise OSError(f"File {meta_graph_or_file} does not exist.")
        proto = read_meta_graph_file(meta_graph_or_file)
    graph_def = type(proto.graph_def)()
    graph_def.CopyFrom(proto.graph_def)
    if clear_devices:
        for node in graph_def.node:
            node.device = ""
    kwargs.pop("return_elements", None)
    import_graph_def(graph_def, name=import_scope or "", **kwargs)
    graph = get_default_graph()
    for key, collection in sorted(proto.collection_def.items()):
        for item in _read_collection(graph, key, collection, import_scope):
            graph.add_to_collection(key, item)
    return proto


def _read_collection(graph: Graph, key: str, collection: Any, import_scope: str | None) -> list[Any]:
    kind = collection.WhichOneof("kind")
    if kind is None:
        return []
    values = getattr(collection, kind).value
    if kind == "node_list":
        prefix = f"{import_scope}/" if import_scope else ""
        return [graph.as_graph_element(prefix + name) for name in values]
    if kind == "bytes_list" and key in _kinds:
        # Restore one object per variable, even if it is in several collections.
        proto_type, from_proto = _kinds[key]
        return [_once(graph, proto_type.FromString(value), from_proto, import_scope) for value in values]
    return list(values)


def _once(graph: Graph, proto: object, from_proto: FromProto, import_scope: str | None) -> object:
    name = getattr(proto, "variable_name", None)
    if name is not None:
        full = f"{import_scope}/{name}" if import_scope else name
        for key in graph.get_all_collection_keys():
            for item in graph.get_collection(key):
                if isinstance(item, Variable) and item.name == full:
                    return item
    return from_proto(proto, import_scope)
