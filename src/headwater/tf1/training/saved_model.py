"""Saved models: graph, values and signatures in one folder, as TensorFlow 1.15 writes and reads them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from headwater import dtypes
from headwater.data.io import files
from headwater.data.io.saved_model import ASSETS, FILE_NAME, TEXT_FILE_NAME, VARIABLES, encode, read
from headwater.dtypes import as_dtype
from headwater.graph.collections import GraphKeys
from headwater.graph.constants import constant_value
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Operation, Tensor
from headwater.tensorboard_protos import meta_graph_pb2
from headwater.tf1.functional.control_flow import group, no_op
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.training.meta_graph import import_graph, make_meta_graph
from headwater.tf1.training.saver import Saver
from headwater.tf1.variables.variable_lists import local_variables_initializer

if TYPE_CHECKING:
    from headwater.graph.graph import Graph
    from headwater.graph.types import OpOrTensor, SessionLike, Structure, TensorLike
    from headwater.tensorboard_protos import MetaGraphDef, SaverDef, SignatureDef, TensorInfo


SERVING: Final = "serve"
TRAINING: Final = "train"
EVAL: Final = "eval"
GPU: Final = "gpu"
TPU: Final = "tpu"

DEFAULT_SERVING_SIGNATURE_DEF_KEY: Final = "serving_default"
PREDICT_METHOD_NAME: Final = "tensorflow/serving/predict"
PREDICT_INPUTS: Final = "inputs"
PREDICT_OUTPUTS: Final = "outputs"
CLASSIFY_METHOD_NAME: Final = "tensorflow/serving/classify"
CLASSIFY_INPUTS: Final = "inputs"
CLASSIFY_OUTPUT_CLASSES: Final = "classes"
CLASSIFY_OUTPUT_SCORES: Final = "scores"
REGRESS_METHOD_NAME: Final = "tensorflow/serving/regress"
REGRESS_INPUTS: Final = "inputs"
REGRESS_OUTPUTS: Final = "outputs"

MAIN_OP: Final = "saved_model_main_op"
LEGACY_INIT_OP: Final = "legacy_init_op"


# Signatures -------------------------------------------------------------------------------------------------------


def build_tensor_info(tensor: Any) -> Any:
    """A tensor's name, element type and shape as a ``TensorInfo``."""
    info = meta_graph_pb2.TensorInfo()
    if hasattr(tensor, "dense_shape"):
        info.coo_sparse.values_tensor_name = tensor.values.name
        info.coo_sparse.indices_tensor_name = tensor.indices.name
        info.coo_sparse.dense_shape_tensor_name = tensor.dense_shape.name
    else:
        info.name = tensor.name
    info.dtype = as_dtype(tensor.dtype).as_datatype_enum
    info.tensor_shape.CopyFrom(tensor.get_shape().as_proto())
    return info


def get_tensor_from_tensor_info(tensor_info: TensorInfo, graph: Any = None, import_scope: str | None = None) -> Tensor:
    """The tensor that a ``TensorInfo`` names."""
    name = f"{import_scope}/{tensor_info.name}" if import_scope else tensor_info.name
    return (graph or get_default_graph()).as_graph_element(name, allow_operation=False)


def build_signature_def(inputs: Any = None, outputs: Structure = None, method_name: str | None = None) -> SignatureDef:
    """A ``SignatureDef`` of ``TensorInfo`` by name."""
    made = meta_graph_pb2.SignatureDef()
    for infos, field in ((inputs, made.inputs), (outputs, made.outputs)):
        given: dict[str, Any] = dict(infos or {})
        for key, info in given.items():
            field[key].CopyFrom(info)
    if method_name is not None:
        made.method_name = method_name
    return made


def _infos(tensors: Mapping[str, object]) -> dict[str, object]:
    return {key: build_tensor_info(tensor) for key, tensor in tensors.items()}


def predict_signature_def(inputs: Mapping[str, Tensor], outputs: Mapping[str, Any]) -> SignatureDef:
    """A signature of any tensors.

    Raises:
      ValueError: there are no inputs or no outputs.
    """
    if not inputs:
        raise ValueError("Prediction inputs cannot be None or empty.")
    if not outputs:
        raise ValueError("Prediction outputs cannot be None or empty.")
    return build_signature_def(_infos(inputs), _infos(outputs), PREDICT_METHOD_NAME)


def regression_signature_def(examples: TensorLike, predictions: TensorLike) -> SignatureDef:
    """A signature from serialised examples to numbers."""
    return build_signature_def(
        _infos({REGRESS_INPUTS: examples}), _infos({REGRESS_OUTPUTS: predictions}), REGRESS_METHOD_NAME
    )


def classification_signature_def(examples: TensorLike, classes: object, scores: object) -> SignatureDef:
    """A signature from serialised examples to classes, scores or both."""
    outputs = {CLASSIFY_OUTPUT_CLASSES: classes, CLASSIFY_OUTPUT_SCORES: scores}
    found = {key: tensor for key, tensor in outputs.items() if tensor is not None}
    return build_signature_def(_infos({CLASSIFY_INPUTS: examples}), _infos(found), CLASSIFY_METHOD_NAME)


def is_valid_signature(signature_def: SignatureDef) -> bool:
    """Returns whether a signature has the inputs and outputs of its method: classification, regression or prediction.

    Args:
      signature_def: a ``SignatureDef``; None is not valid.
    """
    if signature_def is None:
        return False
    inputs, outputs = dict(signature_def.inputs), dict(signature_def.outputs)
    method = signature_def.method_name
    if method == PREDICT_METHOD_NAME:
        return bool(inputs) and bool(outputs)
    strings = int(dtypes.string.as_datatype_enum)
    if method == CLASSIFY_METHOD_NAME:
        wanted = {CLASSIFY_OUTPUT_CLASSES: strings, CLASSIFY_OUTPUT_SCORES: int(dtypes.float32.as_datatype_enum)}
    elif method == REGRESS_METHOD_NAME:
        wanted = {REGRESS_OUTPUTS: int(dtypes.float32.as_datatype_enum)}
    else:
        return False
    return (
        list(inputs) == [CLASSIFY_INPUTS]
        and inputs[CLASSIFY_INPUTS].dtype == strings
        and bool(outputs)
        and all(name in wanted and info.dtype == wanted[name] for name, info in outputs.items())
    )


def main_op() -> Operation:
    """An operation that initialises local variables and tables."""
    return group(local_variables_initializer(), *get_default_graph().get_collection(GraphKeys.TABLE_INITIALIZERS))


def main_op_with_restore(restore_op_name: Operation) -> Operation:
    """`main_op`, then the operation that restores the variables.

    Args:
      restore_op_name: that operation itself, in spite of the argument's name.

    Raises:
      TypeError: it is not an operation.
    """
    with control_dependencies([main_op()]):
        return group(restore_op_name)


# Writing ----------------------------------------------------------------------------------------------------------


class SavedModelBuilder:
    """Writes a saved model.

    Args:
      export_dir: a folder that does not exist, or is empty.

    Raises:
      AssertionError: the folder is not empty.
    """

    def __init__(self, export_dir: str) -> None:
        self._folder = os.fsdecode(export_dir)
        if files.exists(self._folder) and files.listdir(self._folder):
            raise AssertionError(
                f"Export directory {self._folder} already exists, and isn't empty. Please choose a different export "
                "directory, or delete all the contents of the specified directory."
            )
        files.makedirs(self._folder)
        self._graphs: list[MetaGraphDef] = []

    def add_meta_graph_and_variables(
        self,
        sess: SessionLike,
        tags: Sequence[str],
        signature_def_map: object = None,
        assets_collection: Sequence[Tensor] | None = None,
        legacy_init_op: OpOrTensor | None = None,
        clear_devices: bool = False,
        main_op: OpOrTensor | None = None,
        strip_default_attrs: bool = False,
        saver: Saver | None = None,
        assets_list: Any = None,
    ) -> None:
        """Adds the default graph, with the values that its variables have in ``sess``.

        Args:
          tags: names of the meta graph.
          signature_def_map: signatures by name.
          assets_collection, assets_list: tensors with paths of files to copy into the model's folder.
          main_op, legacy_init_op: run after loading.
          clear_devices: whether to omit devices.
          strip_default_attrs: omit attributes of operations that have their default.
          saver: writes the values.

        Raises:
          AssertionError: there are values already.
        """
        if self._graphs:
            raise AssertionError("Graph state including variables and assets has already been saved.")
        self._copy_assets(assets_collection or assets_list)
        saver = saver or Saver(sharded=True, allow_empty=True)
        saver.build()
        path = os.path.join(self._folder, *VARIABLES)
        files.makedirs(os.path.dirname(path))
        saver.save(sess, path, write_meta_graph=False, write_state=False)
        self._add(tags, signature_def_map, main_op or legacy_init_op, clear_devices, strip_default_attrs, saver)

    def add_meta_graph(
        self,
        tags: Sequence[str],
        signature_def_map: object = None,
        assets_collection: Sequence[Tensor] | None = None,
        legacy_init_op: OpOrTensor | None = None,
        clear_devices: bool = False,
        main_op: OpOrTensor | None = None,
        strip_default_attrs: bool = False,
        saver: Saver | None = None,
        assets_list: Any = None,
    ) -> None:
        """Adds the default graph for the values already saved. See `add_meta_graph_and_variables`.

        Raises:
          AssertionError: no values were saved yet.
        """
        if not self._graphs:
            raise AssertionError("Graph state including variables and assets has not been saved yet.")
        self._copy_assets(assets_collection or assets_list)
        saver = saver or Saver(sharded=True, allow_empty=True)
        saver.build()
        self._add(tags, signature_def_map, main_op or legacy_init_op, clear_devices, strip_default_attrs, saver)

    def _add(
        self, tags: Sequence[str], signatures: Any, init: Any, clear_devices: bool, strips: bool, saver: Saver
    ) -> None:
        graph = get_default_graph()
        if init is not None:
            graph.get_collection_ref(MAIN_OP).clear()
            graph.add_to_collection(MAIN_OP, init)
        info = meta_graph_pb2.MetaGraphDef.MetaInfoDef()
        info.tags.extend(tags)
        proto = make_meta_graph(
            graph, saver=saver, meta_info_def=info, clear_devices=clear_devices, strip_default_attrs=strips
        )
        if init is not None:
            proto.collection_def[MAIN_OP].Clear()
            proto.collection_def[MAIN_OP].node_list.value.append(init.name)
        given: dict[str, object] = dict(signatures or {})
        for key, signature in given.items():
            proto.signature_def[key].CopyFrom(signature)
        self._graphs.append(proto)

    def _copy_assets(self, tensors: Sequence[Tensor]) -> None:
        for tensor in tensors or ():
            value = constant_value(tensor)
            if value is None or tensor.dtype != dtypes.string:
                raise ValueError(f"Invalid asset filepath tensor {tensor!r}: it must be a constant text")
            source = os.fsdecode(value.item())
            folder = os.path.join(self._folder, ASSETS)
            files.makedirs(folder)
            files.copy(source, os.path.join(folder, os.path.basename(source)), overwrite=True)

    def save(self, as_text: bool = False) -> bytes:
        """Writes the file, and returns its path.

        Raises:
          ValueError: ``as_text``, which is not supported.
        """
        if as_text:
            raise ValueError("saved models as text are not supported; omit as_text")
        path = os.path.join(self._folder, FILE_NAME)
        with files.atomic_write(path) as file:
            file.write(encode(self._graphs))
        return path.encode()


def simple_save(
    session: SessionLike,
    export_dir: str,
    inputs: Mapping[str, Tensor],
    outputs: Mapping[str, object],
    legacy_init_op: OpOrTensor | None = None,
) -> None:
    """Writes the model of a session for serving, with one signature."""
    signatures = {DEFAULT_SERVING_SIGNATURE_DEF_KEY: predict_signature_def(inputs, outputs)}
    builder = SavedModelBuilder(export_dir)
    with session.graph.as_default():
        tables = session.graph.get_collection(GraphKeys.TABLE_INITIALIZERS)
        init = legacy_init_op or (group(*tables) if tables else no_op("saved_model_init"))
        builder.add_meta_graph_and_variables(
            session,
            [SERVING],
            signatures,
            session.graph.get_collection(GraphKeys.ASSET_FILEPATHS),
            main_op=init,
            clear_devices=True,
        )
    builder.save()


# Reading ----------------------------------------------------------------------------------------------------------


def maybe_saved_model_directory(export_dir: str) -> bool:
    """Returns whether there is a saved model in the folder."""
    return any(files.exists(os.path.join(os.fspath(export_dir), name)) for name in (FILE_NAME, TEXT_FILE_NAME))


def load(
    sess: SessionLike, tags: Iterable[str], export_dir: str, import_scope: str | None = None, **saver_kwargs: Any
) -> Any:
    """Adds a saved model to the session's graph, restores its values, and returns its ``MetaGraphDef``.

    Args:
      tags: names of the meta graph.
      saver_kwargs: further arguments of `import_graph_def`, such as ``input_map``, and ``clear_devices``.

    Raises:
      RuntimeError: the model has no meta graph with these tags.
      OSError: there is no model.
      DataLossError: the file is damaged.
    """
    folder = os.fsdecode(export_dir)
    wanted = set(tags)
    graphs = read(folder)
    found = next((proto for proto in graphs if set(proto.meta_info_def.tags) == wanted), None)
    if found is None:
        there = "; ".join(", ".join(proto.meta_info_def.tags) for proto in graphs)
        raise RuntimeError(
            f"MetaGraphDef associated with tags {sorted(wanted)} could not be found in SavedModel. It has: {there}"
        )
    with sess.graph.as_default():
        proto = import_graph(found, saver_kwargs.pop("clear_devices", False), import_scope, **saver_kwargs)
        path = os.path.join(folder, *VARIABLES)
        if files.exists(f"{path}.index"):
            saver = Saver(saver_def=_scoped(proto.saver_def, import_scope), name=import_scope)
            saver.restore(sess, path)
        feeds = _asset_feeds(sess.graph, folder)
        for key in (MAIN_OP, LEGACY_INIT_OP):
            names: Sequence[str] = proto.collection_def[key].node_list.value if key in proto.collection_def else ()
            for name in names:
                scoped = f"{import_scope}/{name}" if import_scope else name
                sess.run(sess.graph.as_graph_element(scoped), feeds)
    return proto


def _asset_feeds(graph: Graph, folder: str) -> dict[Any, Any]:
    """Returns feeds with the present paths of the model's copied files."""
    feeds: dict[Any, Any] = {}
    for tensor in graph.get_collection(GraphKeys.ASSET_FILEPATHS):
        held = convert_to_tensor(tensor)
        if held.op.type == "Const":
            name = os.path.basename(os.fsdecode(held.op.attrs["value"].item()))
            moved = os.path.join(folder, ASSETS, name)
            if files.exists(moved):
                feeds[held] = moved
    return feeds


def _scoped(saver_def: SaverDef, scope: str | None) -> object:
    if not scope:
        return saver_def
    made = type(saver_def)()
    made.CopyFrom(saver_def)
    for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
        setattr(made, field, f"{scope}/{getattr(made, field)}")
    return made
