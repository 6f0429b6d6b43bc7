"""``tf.train.Checkpoint`` of Keras's models and optimizers, of modules and variables.

Files have TensorFlow 2's format in both directions: values by the attributes through which a program reaches them, and
the graph of the objects (`headwater.tf1.training.object_graph`). Objects without variables so far, such as layers that
have not been built, get their values when they are built.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final, Self, cast

import jax.numpy as jnp
import keras
import numpy as np

from headwater.data.io.bundle_writer import BundleWriter
from headwater.data.io.files import Path, as_path
from headwater.tensorboard_protos import trackable_object_graph_pb2
from headwater.tf1.training.checkpoint_reader import CheckpointReader
from headwater.tf1.training.checkpoint_state import update_checkpoint_state
from headwater.tf1.training.object_checkpoints import CheckpointManager as GraphManager
from headwater.tf1.training.object_graph import OBJECT_GRAPH_KEY, VARIABLE_VALUE, matches, object_graph
from headwater.tf2.modules import Module
from headwater.tf2.options import CheckpointOptions
from headwater.tf2.tape import value_of
from headwater.tf2.tensors import Variable

_KerasVariable = keras.Variable
_Optimizer = keras.optimizers.Optimizer
_Layer = keras.layers.Layer
_Metric = keras.metrics.Metric

_COUNTER: Final = "save_counter"
#: Types that differ between variables here and in files: Keras on TensorFlow stores the state of generators as int64.
_TYPES_IN_FILES: Final = {"uint32": "int64"}
_UPDATES: Final = "iteration"


class Checkpoint:
    """The state of objects: variables, models, layers, optimizers, metrics, modules, lists and dicts of these.

    Args:
      root: an object whose attributes are saved as attributes of the checkpoint.
      **kwargs: the objects, by the names of their attributes of the checkpoint.

    Attributes:
      save_counter: number of calls of `save`, a variable.

    Raises:
      ValueError: an object has no state to save, or ``root`` has another object under one of the names.
    """

    def __init__(self, root: object = None, **kwargs: object) -> None:
        self.save_counter: Any = Variable(0, dtype="int64", trainable=False, name=_COUNTER)
        self._root = root
        if root is not None:
            _check_trackable("root", root)
        parts = {} if root is None else dict(parts_of(root))
        for name, value in sorted(kwargs.items()):
            _check_trackable(name, value)
            if parts.get(name, value) is not value:
                raise ValueError(f"Checkpoint: root has another object as its attribute {name!r}")
            setattr(self, name, value)

    def trackable_parts(self) -> dict[str, object]:
        """Returns the objects by their names."""
        parts = {} if self._root is None else dict(parts_of(self._root))
        return parts | {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def write(self, file_prefix: Path, options: CheckpointOptions | None = None) -> str:
        """Writes the values to files with this prefix, and returns the prefix."""
        prefix = as_path(file_prefix)
        found = object_graph(self, parts_of, _kind_of)
        values: dict[str, Any] = {key: _array_of(variable) for key, variable in found.values.items()}
        values[OBJECT_GRAPH_KEY] = np.array(found.proto.SerializeToString(deterministic=True), object)
        with BundleWriter(prefix) as writer:
            for name, value in sorted(values.items()):
                writer.add(name, value)
            writer.finish()
        return prefix

    def save(self, file_prefix: Path, options: CheckpointOptions | None = None) -> str:
        """Writes a checkpoint, numbered by saves, and makes it the latest of its folder; returns its path."""
        number = self.count(None)
        path = self.write(f"{as_path(file_prefix)}-{number}")
        folder = path.rpartition("/")[0]
        update_checkpoint_state(folder or ".", path, [path], save_relative_paths=True)
        return path

    def default_session(self) -> None:
        """Returns None: variables have values, so a save needs no session."""

    def count(self, session: object) -> int:
        """Increments the counter of saves, and returns it."""
        del session
        self.save_counter.assign_add(1)
        return int(self.save_counter.numpy())

    def read(self, save_path: Path, options: CheckpointOptions | None = None) -> Status:
        """Same as `restore`."""
        return self.restore(save_path, options)

    def restore(self, save_path: Path | None, options: CheckpointOptions | None = None) -> Status:
        """Restores the objects from a checkpoint; does nothing for None. Layers, models and optimizers that have not
        been built are restored when they are.

        Raises:
          NotFoundError: there is no such checkpoint.
          ValueError: the shapes of a value and of its variable differ, or the file has no graph of objects.
        """
        if save_path is None:
            return Status(self, None)
        restoring = _Restoring(as_path(save_path))
        restoring.assign_values(self)
        return Status(self, restoring)


class _Restoring:
    """A checkpoint whose values are assigned to existing objects, and to others when they are built.

    Args:
      path: the checkpoint.

    Attributes:
      keys: of all values.
      assigned: for each value in use, the variable.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._reader = CheckpointReader(path)
        if not self._reader.has_tensor(OBJECT_GRAPH_KEY):
            raise ValueError(
                f"{path} has no graph of objects: it was written by tf.compat.v1.train.Saver or by version 0.1 or "
                "older; restore it with the program that wrote it"
            )
        graph = self._reader.get_tensor(OBJECT_GRAPH_KEY)
        self._proto: Any = trackable_object_graph_pb2.TrackableObjectGraph.FromString(graph)
        self.keys: set[str] = {each.checkpoint_key for node in self._proto.nodes for each in node.attributes}
        self.assigned: dict[str, Any] = {}
        self._waiting: set[int] = set()

    def assign_values(self, root: object, number: int = 0) -> None:
        """Assigns the values of the node ``number``, which is ``root``, and of its parts."""
        for value, at in matches(root, self._proto, parts_of, number):
            if isinstance(value, _KerasVariable):
                for attribute in self._proto.nodes[at].attributes:
                    self._assign(attribute.checkpoint_key, value)
            elif isinstance(value, (_Layer, _Optimizer)) and not value.built and id(value) not in self._waiting:
                self._waiting.add(id(value))
                _after_build(value, functools.partial(self.assign_values, value, at))

    def _assign(self, key: str, variable: Any) -> None:
        if key in self.assigned:
            return
        value = self._reader.get_tensor(key)
        if tuple(value.shape) != tuple(variable.shape):
            raise ValueError(f"{key} in {self._path} has shape {value.shape}, but the variable {tuple(variable.shape)}")
        if variable._initializer is None:
            variable.assign(jnp.asarray(value, variable.dtype))
        else:  # Keras builds layers in a trial of the call, and initialises their variables afterwards
            variable._initializer = lambda shape, dtype: jnp.asarray(value, dtype)
        self.assigned[key] = variable


def _after_build(owner: Any, restore: Callable[[], object]) -> None:
    """Calls ``restore`` once a layer or an optimizer has been built."""
    name = "_post_build" if isinstance(owner, _Layer) else "build"
    original = getattr(owner, name)

    def hook(*args: object, **kwargs: object) -> None:
        object.__delattr__(owner, name)
        original(*args, **kwargs)
        restore()

    object.__setattr__(owner, name, hook)


_KINDS: Final = (_KerasVariable, _Layer, _Optimizer, Module, Checkpoint)


class Status:
    """The result of a restore.

    Args:
      root: the objects.
      restoring: the checkpoint; None if nothing is restored.
    """

    def __init__(self, root: Checkpoint, restoring: _Restoring | None) -> None:
        self._root = root
        self._restoring = restoring

    def assert_consumed(self) -> Self:
        """Returns itself.

        Raises:
          AssertionError: a value has no variable, or a variable no value.
        """
        self.assert_existing_objects_matched()
        if self._restoring is not None:
            unused = self._restoring.keys - set(self._restoring.assigned)
            if unused:
                raise AssertionError(f"values without a variable: {', '.join(sorted(unused))}")
        return self

    def assert_existing_objects_matched(self) -> Self:
        """Returns itself.

        Raises:
          AssertionError: a variable has no value.
        """
        if self._restoring is not None:
            matched = set(map(id, self._restoring.assigned.values()))
            variables = object_graph(self._root, parts_of, _kind_of).values
            missing = [key.partition("/.ATTRIBUTES")[0] for key, value in variables.items() if id(value) not in matched]
            if missing:
                raise AssertionError(f"variables without a value: {', '.join(sorted(missing))}")
        return self

    def assert_nontrivial_match(self) -> Self:
        """Returns itself.

        Raises:
          AssertionError: no variable besides the counter of saves has a value.
        """
        if self._restoring is not None:
            counter = self._root.save_counter
            if all(variable is counter for variable in self._restoring.assigned.values()):
                raise AssertionError("no value of the checkpoint belongs to a variable")
        return self

    def expect_partial(self) -> Self:
        """Returns itself."""
        return self


def parts_of(value: object) -> list[tuple[str, Any]]:
    """Returns the parts of an object that have variables or may get some, with the names of their attributes. As in
    TensorFlow, models do not save the metrics that `compile` and layers made."""
    kinds = (*_KINDS, _Metric)
    match value:
        case Checkpoint():
            found: Any = value.trackable_parts().items()
        case _Layer() | _Optimizer() | _Metric() | Module():
            # A model's layers are attributes, too, by which TensorFlow names them.
            found, kinds = [(name, part) for name, part in vars(value).items() if name != "_layers"], _KINDS
        case Mapping():
            found = [(key, part) for key, part in cast("Mapping[Any, Any]", value).items() if isinstance(key, str)]
        case list() | tuple():
            found = [(str(index), part) for index, part in enumerate(cast("list[Any]", value))]
        case _:
            found = ()
    return [(name, part) for name, part in found if _is_trackable(part, kinds)]


def _is_trackable(value: object, kinds: tuple[Any, ...]) -> bool:
    """Returns whether an object is of one of these kinds, or a container with such objects."""
    if isinstance(value, (list, tuple)):
        return any(_is_trackable(part, kinds) for part in cast("list[Any]", value))
    if isinstance(value, Mapping):
        return any(_is_trackable(part, kinds) for part in cast("Mapping[Any, Any]", value).values())
    return isinstance(value, kinds)


def _check_trackable(name: str, value: object) -> None:
    if not _is_trackable(value, (*_KINDS, _Metric)) and not isinstance(value, (list, tuple, dict)):
        raise ValueError(
            "`Checkpoint` was expecting a trackable object (an object derived from `Trackable`), got "
            f"{value!r} as {name}: variables, models, layers, optimizers, metrics, lists and dicts of these have state"
        )


def _kind_of(value: object) -> tuple[str, str] | None:
    return (VARIABLE_VALUE, cast("Any", value).path) if isinstance(value, _KerasVariable) else None


def _array_of(variable: Any) -> np.ndarray[Any, Any]:
    """Returns the value of a variable, of the type that TensorFlow gives this variable."""
    kind = "int64" if variable.name == _UPDATES else _TYPES_IN_FILES.get(variable.dtype, variable.dtype)
    return np.asarray(value_of(variable)).astype(np.dtype(kind) if kind != "bfloat16" else jnp.bfloat16)


class CheckpointManager(GraphManager):
    """Saves checkpoints in a folder, and deletes old ones.

    Args:
      checkpoint: the checkpoint to save.
      max_to_keep: number of checkpoints to keep; None for all.
      keep_checkpoint_every_n_hours: interval at which a checkpoint is kept permanently, in hours.
      checkpoint_name: prefix of the names of the checkpoints.
      step_counter: a variable that counts steps, for ``checkpoint_interval``.
      checkpoint_interval: number of steps between two checkpoints.
      init_fn: called by `restore_or_initialize` if there is no checkpoint.

    Raises:
      ValueError: ``max_to_keep`` is not positive, or there is an interval without a counter.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: Path,
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
        step_counter: Any = None,
        checkpoint_interval: int | None = None,
        init_fn: Any = None,
    ) -> None:
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError("`step_counter` should be passed if `checkpoint_interval` is not None.")
        whole: Any = checkpoint
        super().__init__(whole, directory, max_to_keep, keep_checkpoint_every_n_hours, checkpoint_name)
        self.checkpoint: Checkpoint = checkpoint
        self.directory: str = as_path(directory)
        self._counter = step_counter
        self._every = checkpoint_interval
        self._init = init_fn
        self._saved_at: int | None = None

    def save(
        self, checkpoint_number: object = None, check_interval: bool = True, options: CheckpointOptions | None = None
    ) -> Any:
        """Saves a checkpoint and returns its path; None if the last one is not old enough."""
        step = None if self._counter is None else int(np.asarray(value_of(self._counter)))
        last = self._saved_at
        if check_interval and self._every and step is not None and last is not None and step - last < self._every:
            return None
        self._saved_at = step
        number = checkpoint_number
        if number is not None and not isinstance(number, int):
            number = int(np.asarray(value_of(number) if isinstance(number, _KerasVariable) else number))
        return super().save(number)

    def restore_or_initialize(self) -> str | None:
        """Restores the newest checkpoint and returns its path, or calls ``init_fn``."""
        if self.latest_checkpoint is not None:
            self.checkpoint.restore(self.latest_checkpoint)
            return self.latest_checkpoint
        if self._init is not None:
            self._init()
        return None
