"""`Saver`: writes checkpoints of variables and restores them, in TensorFlow's format."""

from __future__ import annotations

import logging
import os
import threading
import uuid
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from headwater.cluster.devices import Device, parse_device
from headwater.data.io import files
from headwater.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError, OpError
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.convert import constant
from headwater.graph.operation import Operation, Tensor
from headwater.tensorboard_protos import saver_pb2
from headwater.tf1.functional.arrays import stack
from headwater.tf1.functional.control_flow import group, with_dependencies
from headwater.tf1.functional.strings import string_join
from headwater.tf1.training import meta_graph
from headwater.tf1.training.checkpoint_state import (
    checkpoint_exists,
    meta_graph_filename,
    remove_checkpoint,
    update_checkpoint_state,
)
from headwater.tf1.training.kept_checkpoints import KeptCheckpoints
from headwater.tf1.training.leftovers import Leftovers
from headwater.tf1.training.object_graph import keys_by_name
from headwater.tf1.training.saveable import (
    SaveableList,
    SaveableObject,
    add_restore_ops,
    add_save_op,
    assign_restored,
    saveables_of,
)
from headwater.tf1.training.training_util import global_step as read_global_step

if TYPE_CHECKING:
    from headwater.graph.types import SessionLike, TensorLike
    from headwater.tensorboard_protos import MetaGraphDef, SaverDef


_logger: Final = logging.getLogger(__name__)
_CPU: Final = "/device:CPU:0"


class Saver:
    """Saves variables to checkpoints and restores them.

    Checkpoints are written atomically, even if the process is killed. They are compatible with TensorFlow in both
    directions.

    Args:
      var_list: the variables to save: a list, or a dict from names in the checkpoint to variables; all global
        variables and ``SAVEABLE_OBJECTS`` if None.
      reshape: restore tensors of another shape but the same number of elements.
      sharded: every device writes its variables to a separate file; the paths must be in a folder shared by all
        tasks. Otherwise one task reads and writes all variables.
      max_to_keep: number of checkpoints to keep; 0 or None: all.
      keep_checkpoint_every_n_hours: besides, one in each interval of this number of hours is kept for good.
      name: name scope of the operations it adds; ``save`` if None.
      restore_sequentially: restore one variable after the other, which needs less memory.
      saver_def: a ``SaverDef`` of operations that are in the graph already.
      builder: accepted for compatibility.
      defer_build: add the operations when `build` is called, for variables made until then.
      allow_empty: do not raise an error if there are no variables.
      write_version: format of checkpoints: `V2`, or `V1`, one file for each task.
      pad_step_number: write the step with eight digits.
      save_relative_paths: name checkpoints in the state file relative to it, so that the folder can move.
      filename: path of checkpoints if the save operation is run directly.

    Raises:
      ValueError: ``builder`` is given, or ``write_version`` is unknown.
      TypeError: ``var_list`` has the wrong type, or contains an object that is not a variable.
      ValueError: there are no variables, or two have the same name.
    """

    V1: Final = 1
    V2: Final = 2

    def __init__(
        self,
        var_list: SaveableList | None = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        saver_def: SaverDef | None = None,
        builder: object = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: int = V2,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: str | None = None,
    ) -> None:
        if builder is not None:
            raise ValueError("builder is not supported: pass var_list, or the saver_def of existing operations")
        if write_version not in (self.V1, self.V2):
            raise ValueError(f"write_version must be SaverDef.V1 or SaverDef.V2, not {write_version!r}")
        if defer_build and var_list is not None:
            raise ValueError(
                "If `var_list` is provided then build cannot be deferred. Either set defer_build=False or "
                "var_list=None."
            )
        self._var_list = var_list
        self._reshape = reshape
        self._sharded = sharded
        self._write_version = write_version
        self._max_to_keep = max_to_keep or 0
        self._keep_hours = keep_checkpoint_every_n_hours
        self._name = name
        self._restore_sequentially = restore_sequentially
        self._allow_empty = allow_empty
        self._pad_step_number = pad_step_number
        self._save_relative_paths = save_relative_paths
        self._filename = filename
        self._is_empty = False
        self._meta_graph_cache: tuple[object, bytes] | None = None
        self._saving = threading.Lock()
        self.saver_def: SaverDef = saver_def
        if saver_def is not None:
            self._check_saver_def()
            self._max_to_keep = saver_def.max_to_keep
            self._keep_hours = saver_def.keep_checkpoint_every_n_hours
            self._sharded = saver_def.sharded
        elif not defer_build:
            self.build()
        self._kept = KeptCheckpoints(self._max_to_keep, self._keep_hours)
        self._leftovers = Leftovers()

    def _check_saver_def(self) -> None:
        for field in ("save_tensor_name", "restore_op_name"):
            if not getattr(self.saver_def, field):
                raise ValueError(f"saver_def must specify the {field}: {self.saver_def}")

    # Operations -------------------------------------------------------------------------------------------------

    def build(self) -> None:
        """Adds the operations; for ``defer_build``."""
        if self.saver_def is not None or self._is_empty:
            return
        graph = get_default_graph()
        values = self._var_list
        if values is None:
            values = graph.get_collection(GraphKeys.GLOBAL_VARIABLES) + graph.get_collection(GraphKeys.SAVEABLE_OBJECTS)
        saveables = saveables_of(values)
        if not saveables:
            if not self._allow_empty:
                raise ValueError("No variables to save")
            self._is_empty = True
            return
        with graph.name_scope(self._name or "save"):
            with graph.name_scope("filename"):
                default = constant(self._filename or "model", name="input")
            default = _placeholder(default, "filename")
            filename = _placeholder(default, "Const")
            if self._sharded:
                saved, restored = self._build_sharded(filename, saveables)
            else:
                saved, restored = self._build_whole(filename, saveables)
        self.saver_def = saver_pb2.SaverDef(
            filename_tensor_name=filename.name,
            save_tensor_name=saved.name,
            restore_op_name=restored.name,
            max_to_keep=self._max_to_keep,
            sharded=self._sharded,
            keep_checkpoint_every_n_hours=self._keep_hours,
            version=self._write_version,
        )

    def _build_whole(self, filename: Tensor, saveables: Sequence[SaveableObject]) -> tuple[Tensor, Operation]:
        save = add_save_op(filename, saveables, self._write_version == self.V1)
        saved = with_dependencies([save], filename)
        done: list[Operation] = []
        for group_ in _by_task(saveables).values():
            # One restore operation for each task that gets values, so that values are sent while the next ones are
            # read.
            tensors = add_restore_ops(filename, group_, _CPU)
            done += assign_restored(group_, tensors, self._reshape, self._restore_sequentially)
        return saved, group(*done, name="restore_all")

    def _build_sharded(self, filename: Tensor, saveables: Sequence[SaveableObject]) -> tuple[Tensor, Operation]:
        graph = get_default_graph()
        old_format = self._write_version == self.V1
        prefix = filename if old_format else string_join([filename, f"_temp_{uuid.uuid4().hex}/part"])
        shards = _by_task(saveables)
        count = constant(len(shards), name="num_shards")
        parts: list[Tensor] = []
        done: list[Operation] = []
        host = ""
        for index, (device, members) in enumerate(shards.items()):
            host = Device(device_type="CPU", device_index=0).over(parse_device(device)).name()
            with graph.device(host):
                with graph.name_scope("ShardedFilename") as scope:
                    shard = constant(index, name="shard")
                    path = graph.create_op("ShardedFilename", [prefix, shard, count], name=scope).outputs[0]
                parts.append(with_dependencies([add_save_op(path, members, old_format)], path))
            tensors = add_restore_ops(filename, members, host)
            assigned = assign_restored(members, tensors, self._reshape, self._restore_sequentially)
            done.append(group(*assigned, name="restore_shard"))
        with graph.device(host):
            if old_format:
                with graph.control_dependencies([part.op for part in parts]):
                    saved = graph.create_op("ShardedFilespec", [filename, count]).outputs[0]
                return saved, group(*done, name="restore_all")
            with graph.name_scope("MergeV2Checkpoints") as scope:
                prefixes = stack(parts, name="checkpoint_prefixes")
                attrs = {"delete_old_dirs": True}
                merged = graph.create_op("MergeV2Checkpoints", [prefixes, filename], attrs, scope)
            with graph.control_dependencies([merged]):
                saved = graph.create_op("Identity", [filename]).outputs[0]
        return saved, group(*done, name="restore_all")

    # Saving -----------------------------------------------------------------------------------------------------

    def save(
        self,
        sess: SessionLike | None,
        save_path: str,
        global_step: TensorLike | None = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> str | None:
        """Saves the variables of ``sess``.

        Args:
          save_path: path of the checkpoint, to which ``-<step>`` is added.
          global_step: the step: a number, or a tensor or variable to read; None: nothing is added.
          latest_filename: name of the state file; ``checkpoint`` if None.
          meta_graph_suffix: end of the name of the graph's file.
          write_meta_graph: also write the graph.
          write_state: record the checkpoint in the state file, and delete old checkpoints.
          strip_default_attrs: omit attributes of operations that have their default.
          save_debug_info: not supported.

        Returns:
          The checkpoint's path, for `restore`; None for a saver without variables.

        Raises:
          RuntimeError: `build` was not called.
          TypeError: ``sess`` is not a session.
          ValueError: the folder does not exist, or the names collide.
        """
        if save_debug_info:
            raise ValueError("save_debug_info is not supported; omit it")
        if self.saver_def is None and not self._is_empty:
            raise RuntimeError("`build()` should be called before save if defer_build==True")
        latest_filename = latest_filename or "checkpoint"
        if os.path.split(latest_filename)[0]:
            raise ValueError("'latest_filename' must not contain path components")
        save_path = os.fspath(save_path)
        if global_step is None and os.path.basename(save_path) == latest_filename and not self._sharded:
            raise ValueError(f"'latest_filename' collides with 'save_path': '{latest_filename}' and '{save_path}'")
        if not hasattr(sess, "run"):
            raise TypeError(f"'sess' must be a Session; {sess}")
        # One save at a time, including its read of the step, so that the newest checkpoint is recorded last.
        with self._saving, self._leftovers.saving(save_path):
            checkpoint = self._with_step(sess, save_path, global_step)
            written: str | None = None
            if not self._is_empty:
                folder = os.path.dirname(save_path)
                written = self._run_save(sess, checkpoint, folder)
                if write_state:
                    self._record(written, folder, latest_filename, meta_graph_suffix)
            if write_meta_graph:
                self._write_meta_graph(sess, meta_graph_filename(checkpoint, meta_graph_suffix), strip_default_attrs)
            return written

    def _with_step(self, sess: SessionLike | None, save_path: str, global_step: Any) -> str:
        if global_step is None:
            return save_path
        step = int(global_step) if _is_number(global_step) else read_global_step(sess, global_step)
        return f"{save_path}-{step:08d}" if self._pad_step_number else f"{save_path}-{step}"

    def _run_save(self, sess: Any, checkpoint: str, folder: str) -> str:
        saver = self.saver_def
        try:
            path = sess.run(saver.save_tensor_name, {saver.filename_tensor_name: checkpoint})
        except (FailedPreconditionError, NotFoundError) as error:
            if files.isdir(folder or "."):
                raise
            raise ValueError(f"Parent directory of {checkpoint} doesn't exist, can't save.") from error
        return path.decode()

    def _write_meta_graph(self, sess: Any, path: str, strips: bool) -> None:
        key = sess.graph, sess.graph.version, strips
        if self._meta_graph_cache is None or self._meta_graph_cache[0] != key:
            with sess.graph.as_default():
                proto = meta_graph.make_meta_graph(sess.graph, saver_def=self.saver_def, strip_default_attrs=strips)
            self._meta_graph_cache = key, proto.SerializeToString()
        with files.atomic_write(path) as file:
            file.write(self._meta_graph_cache[1])

    def _record(self, path: str, folder: str, latest_filename: str, meta_graph_suffix: str) -> None:
        """Records a new checkpoint, and deletes the oldest if there are too many."""
        old = self._kept.add(path)
        update_checkpoint_state(
            folder or ".", path, self.last_checkpoints, latest_filename, save_relative_paths=self._save_relative_paths
        )
        if old is None:
            return
        try:
            remove_checkpoint(old, self.saver_def.version, meta_graph_suffix)
        except OpError as error:
            _logger.warning("An old checkpoint could not be deleted: %s", error)

    # Restoring --------------------------------------------------------------------------------------------------

    def restore(self, sess: SessionLike, save_path: str | None) -> None:
        """Restores the variables of ``sess``, which then need no initializer.

        Values of a `tf.train.Checkpoint` are assigned by the names that the variables had when it was saved.

        Args:
          save_path: the checkpoint's path, as `save` returns it.

        Raises:
          ValueError: there is no such checkpoint.
          NotFoundError: the checkpoint lacks a variable, which the message names.
          InvalidArgumentError: shapes or types differ.
          DataLossError: a file is damaged.
        """
        if self._is_empty:
            return
        if save_path is None:
            raise ValueError("Can't load save_path when it is None.")
        path = os.fspath(save_path)
        if not checkpoint_exists(path):
            raise ValueError(f"The passed save_path is not a valid checkpoint: {path}")
        _logger.info("Restoring parameters from %s", path)
        saver = self.saver_def
        try:
            sess.run(saver.restore_op_name, {saver.filename_tensor_name: path})
        except NotFoundError as error:
            if self._restores_objects(sess, path):
                return
            raise NotFoundError(
                error.node_def,
                error.op,
                "Restoring from checkpoint failed. This is most likely due to a Variable "
                f"name or other graph key that is missing from the checkpoint: {error.message}",
            ) from error
        except InvalidArgumentError as error:
            raise InvalidArgumentError(
                error.node_def,
                error.op,
                "Restoring from checkpoint failed. This is most likely due to a mismatch "
                f"between the current graph and the graph from the checkpoint: {error.message}",
            ) from error

    def _restores_objects(self, sess: SessionLike, path: str) -> bool:
        """Restores from an object checkpoint by variable names; returns whether it contains all variables."""
        keys = keys_by_name(path)
        with sess.graph.as_default():
            values = sess.graph.get_collection(GraphKeys.GLOBAL_VARIABLES) if self._var_list is None else self._var_list
            named = {saveable.name: saveable.op for saveable in saveables_of(values)} if keys else {}
            if not named or any(name not in keys for name in named):
                return False
            _logger.warning(
                "Restoring an object-based checkpoint using a name-based saver: %s. Use tf.train.Checkpoint, which "
                "does not depend on variables' names",
                path,
            )
            Saver({keys[name]: value for name, value in named.items()}, max_to_keep=0).restore(sess, path)
        return True

    # Existing checkpoints --------------------------------------------------------------------------------

    @property
    def last_checkpoints(self) -> list[str]:
        """Paths of the kept checkpoints, oldest first."""
        return self._kept.paths

    def set_last_checkpoints(self, last_checkpoints: Sequence[str]) -> None:
        """Older form of `set_last_checkpoints_with_time`."""
        if not isinstance(last_checkpoints, list):
            raise AssertionError(f"last_checkpoints must be a list, not {last_checkpoints!r}")
        self._kept.set((path, float("inf")) for path in last_checkpoints)

    def set_last_checkpoints_with_time(self, last_checkpoints_with_time: list[tuple[str, float]]) -> None:
        """Sets the checkpoints of an earlier run, which are deleted in turn as new ones are saved.

        Args:
          last_checkpoints_with_time: pairs of path and time saved, in seconds since 1970, oldest first.
        """
        if not isinstance(last_checkpoints_with_time, list):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise AssertionError(f"last_checkpoints_with_time must be a list, not {last_checkpoints_with_time!r}")
        self._kept.set(last_checkpoints_with_time)

    def recover_last_checkpoints(self, checkpoint_paths: Iterable[str]) -> None:
        """Calls `set_last_checkpoints_with_time` with the files' modification times; omits missing checkpoints."""
        self._kept.find(checkpoint_paths)

    # Serialised form --------------------------------------------------------------------------------------------

    def as_saver_def(self) -> SaverDef:
        """Returns a ``SaverDef`` of this saver."""
        return self.saver_def

    def to_proto(self, export_scope: str | None = None) -> SaverDef | None:
        """Returns a ``SaverDef``; None if its operations are outside ``export_scope``."""
        if export_scope is None:
            return self.saver_def
        prefix = f"{export_scope}/"
        if not self.saver_def.filename_tensor_name.startswith(prefix):
            return None
        proto = saver_pb2.SaverDef()
        proto.CopyFrom(self.saver_def)
        for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
            setattr(proto, field, getattr(proto, field).removeprefix(prefix))
        return proto

    @staticmethod
    def from_proto(saver_def: SaverDef, import_scope: str | None = None) -> Saver:
        """The saver that a ``SaverDef`` describes; its operations must be in the default graph."""
        proto = saver_pb2.SaverDef()
        proto.CopyFrom(saver_def)
        if import_scope:
            for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
                setattr(proto, field, f"{import_scope}/{getattr(proto, field)}")
        return Saver(saver_def=proto, name=import_scope)

    def export_meta_graph(
        self,
        filename: str | None = None,
        collection_list: Sequence[str] | None = None,
        as_text: bool = False,
        export_scope: str | None = None,
        clear_devices: bool = False,
        clear_extraneous_savers: bool = False,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> MetaGraphDef:
        """The default graph with this saver as a ``MetaGraphDef``; see `meta_graph.export_meta_graph`."""
        return meta_graph.export_meta_graph(
            filename=filename,
            saver_def=self.saver_def,
            collection_list=collection_list,
            as_text=as_text,
            export_scope=export_scope,
            clear_devices=clear_devices,
            clear_extraneous_savers=clear_extraneous_savers,
            strip_default_attrs=strip_default_attrs,
            save_debug_info=save_debug_info,
        )


def import_meta_graph(
    meta_graph_or_file: object, clear_devices: bool = False, import_scope: str | None = None, **kwargs: object
) -> Saver | None:
    """Adds the graph of a ``MetaGraphDef`` to the default graph, with its collections.

    Args:
      meta_graph_or_file: the message, or the path of a file with it.
      clear_devices: omit the devices.
      import_scope: prefix of all names.
      kwargs: further arguments of `import_graph_def`, such as ``input_map``.

    Returns:
      The graph's saver, a new one for its variables, or None if it has neither.
    """
    proto = meta_graph.import_graph(meta_graph_or_file, clear_devices, import_scope, **kwargs)
    if proto.HasField("saver_def"):
        return Saver.from_proto(proto.saver_def, import_scope)
    scope = f"{import_scope}/" if import_scope else None
    if get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, scope):
        return Saver()
    _logger.info("Saver not created because there are no variables in the graph to restore")
    return None


def _placeholder(default: Tensor, name: str) -> Tensor:
    attrs = {"shape": default.shape}
    return get_default_graph().create_op("PlaceholderWithDefault", [default], attrs, name).outputs[0]


def _by_task(saveables: Iterable[SaveableObject]) -> dict[str, list[SaveableObject]]:
    """Returns saveables by the task that holds them, tasks sorted by name."""
    found: dict[str, list[SaveableObject]] = {}
    for saveable in saveables:
        task = parse_device(saveable.device)._replace(device_type=None, device_index=None)
        found.setdefault(task.name(), []).append(saveable)
    return dict(sorted(found.items()))


def _is_number(value: TensorLike) -> bool:
    return isinstance(value, int) or (hasattr(value, "__index__") and not hasattr(value, "op"))
