"""``tf.train.Checkpoint``: checkpoints of a program's objects, by the names of attributes in place of variables' names.

They are compatible with TensorFlow 1.15 in both directions. `headwater.tf1.training.object_graph` describes their
content.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Self

from headwater.data.io import files
from headwater.data.io.files import Path, as_path
from headwater.errors import NotFoundError
from headwater.graph.context import get_default_session
from headwater.graph.convert import constant
from headwater.tensorboard_protos import trackable_object_graph_pb2
from headwater.tf1.functional.control_flow import group
from headwater.tf1.functional.saveable import SaveableObject, SaveSpec
from headwater.tf1.training.checkpoint_reader import CheckpointReader
from headwater.tf1.training.checkpoint_state import get_checkpoint_state, remove_checkpoint, update_checkpoint_state
from headwater.tf1.training.object_graph import (
    OBJECT_GRAPH_KEY,
    ObjectGraph,
    PythonState,
    Trackable,
    is_trackable,
    matches,
    object_graph,
)
from headwater.tf1.training.saver import Saver
from headwater.tf1.training.training_util import global_step as read_step
from headwater.tf1.variables.state import assign_add
from headwater.tf1.variables.variables import Variable

if TYPE_CHECKING:
    from headwater.graph.operation import Operation
    from headwater.graph.types import SessionLike


_HOUR_S: Final = 3600.0


class _Text(SaveableObject):
    """Bytes that are saved, but not restored by operations."""

    def __init__(self, name: str, value: bytes) -> None:
        tensor = constant(value, name="state")
        super().__init__(tensor, [SaveSpec(tensor, "", name)], name)

    def restore(self, restored_tensors: object, restored_shapes: object) -> Operation:
        del restored_tensors, restored_shapes
        return group()


def _session(session: SessionLike | None) -> SessionLike:
    found = get_default_session() if session is None else session
    if found is None:
        raise ValueError("There is no default session: save and restore within `with tf.Session()`")
    return found


class Checkpoint(Trackable):
    """The state of objects, which are its attributes: variables, optimizers, layers, modules, lists and dicts of these.

    Args:
      **kwargs: the objects, by the names of the attributes that they become.

    Attributes:
      save_counter: number of calls of `save`: a variable, made at its first use.

    Raises:
      ValueError: an object has no state to save.
    """

    def __init__(self, **kwargs: object) -> None:
        self._counter: object = None
        self._count: Any = None
        self._savers: dict[bytes, Saver] = {}
        for name, value in sorted(kwargs.items()):
            if not is_trackable(value):
                raise ValueError(
                    "`Checkpoint` was expecting a trackable object (an object derived from `TrackableBase`), got "
                    f"{value}. If you believe this object should be trackable, say which attribute of it holds the "
                    "state"
                )
            setattr(self, name, value)

    def _parts(self) -> Iterable[tuple[str, Any]]:
        found = [(name, part) for name, part in vars(self).items() if not name.startswith("_")]
        return found if self._counter is None else [*found, ("save_counter", self._counter)]

    @property
    def save_counter(self) -> Any:
        """The variable that counts saves, created at its first use."""
        if self._counter is None:
            self._counter = Variable(0, trainable=False, dtype="int64", name="save_counter")
        return self._counter

    def write(self, file_prefix: Path, session: Any = None) -> str:
        """Saves the state under exactly this name, and does not record it in a state file.

        Args:
          file_prefix: path of the checkpoint.
          session: that has the variables; the default one if None.

        Returns:
          The path.
        """
        session = _session(session)
        with session.graph.as_default():
            path = self._saver(object_graph(self)).save(
                session, as_path(file_prefix), write_meta_graph=False, write_state=False
            )
        assert path is not None
        return path

    def _saver(self, found: ObjectGraph) -> Saver:
        key = found.proto.SerializeToString(deterministic=True)
        texts = {name: value.serialize() for name, value in found.values.items() if isinstance(value, PythonState)}
        key_of_all = b"".join([key, *texts.values()])
        if key_of_all not in self._savers:
            texts[OBJECT_GRAPH_KEY] = key
            variables = {name: value for name, value in found.values.items() if name not in texts}
            self._savers = {
                key_of_all: Saver(
                    variables | {name: _Text(name, value) for name, value in texts.items()}, max_to_keep=0
                )
            }
        return self._savers[key_of_all]

    def default_session(self) -> SessionLike:
        """Returns the session in which a manager saves; ValueError if there is none."""
        return _session(None)

    def count(self, session: Any) -> int:
        """Increments the number of saves in ``session``, and returns it."""
        if self._counter is None:
            session.run(self.save_counter.initializer)
        if self._count is None:
            self._count = assign_add(self.save_counter, 1)
        return int(session.run(self._count))

    def save(self, file_prefix: Path, session: Any = None) -> str:
        """Saves the state under a name that ends in the number of saves, and records it as the newest checkpoint of its
        folder.

        Args:
          file_prefix: path of the checkpoint without ``-<number>``.
          session: that has the variables; the default one if None.

        Returns:
          The path.
        """
        session = _session(session)
        with session.graph.as_default():
            number = self.count(session)
        prefix = as_path(file_prefix)
        path = self.write(f"{prefix}-{number}", session)
        update_checkpoint_state(os.path.dirname(prefix), path, [path], save_relative_paths=True)
        return path

    def restore(self, save_path: Path | None) -> LoadStatus:
        """Returns a status whose methods restore values from a checkpoint.

        Args:
          save_path: path of a checkpoint written by `save`, `write`, a `CheckpointManager` or a `Saver`; values of the
            latter are matched by variable names. None: the status initialises instead.

        Raises:
          NotFoundError: there is no such checkpoint.
        """
        if save_path is None:
            return InitializationOnlyStatus(self)
        reader = CheckpointReader(as_path(save_path))
        if reader.has_tensor(OBJECT_GRAPH_KEY):
            proto = trackable_object_graph_pb2.TrackableObjectGraph.FromString(reader.get_tensor(OBJECT_GRAPH_KEY))
            _ = self.save_counter
            status = CheckpointLoadStatus(self, as_path(save_path), proto)
            status.restore_states(reader)
            return status
        return NameBasedSaverStatus(self, as_path(save_path))


class LoadStatus:
    """A pending restore. Subclasses define which variables take which value.

    Args:
      root: the objects whose variables are restored.
      path: the checkpoint.
    """

    def __init__(self, root: Checkpoint, path: str = "") -> None:
        self._root = root
        self._path = path

    def _restored(self) -> dict[str, Any]:
        """The variables that take a value, by its name in the checkpoint."""
        raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")

    def _unmatched_objects(self) -> list[Any]:
        taken = {id(value) for value in self._restored().values()}
        return [value for value in object_graph(self._root).values.values() if id(value) not in taken]

    def assert_consumed(self) -> Self:
        """Checks that every value of the checkpoint matches an object, and vice versa.

        Raises:
          AssertionError: something is left on one side.
        """
        return self.assert_existing_objects_matched()

    def assert_existing_objects_matched(self) -> Self:
        """Checks that all existing variables match a value.

        Raises:
          AssertionError: one does not.
        """
        left = self._unmatched_objects()
        if left:
            raise AssertionError(f"Object not assigned a value from checkpoint: {left[0]}")
        return self

    def assert_nontrivial_match(self) -> Self:
        """Checks that at least one object matches a value.

        Raises:
          AssertionError: nothing does.
        """
        if not self._restored():
            raise AssertionError(f"Nothing to restore from {self._path} matches an object of this program")
        return self

    def expect_partial(self) -> Self:
        """Declares that unused values in the checkpoint are expected. Has no effect: nothing warns about them."""
        return self

    def run_restore_ops(self, session: SessionLike | None = None) -> None:
        """Assigns the checkpoint's values to existing variables."""
        values = self._restored()
        if not values:
            return
        session = _session(session)
        with session.graph.as_default():
            Saver(values, max_to_keep=0).restore(session, self._path)

    def initialize_or_restore(self, session: SessionLike | None = None) -> None:
        """Assigns the checkpoint's values to existing variables, and initialises all others."""
        session = _session(session)
        self.run_restore_ops(session)
        session.run([value.initializer for value in self._unmatched_objects() if isinstance(value, Variable)])


class CheckpointLoadStatus(LoadStatus):
    """Restores from a checkpoint of objects.

    Args:
      root: the objects that take values.
      path: the checkpoint.
      proto: its graph of objects.
    """

    def __init__(self, root: Checkpoint, path: str, proto: Any) -> None:
        super().__init__(root, path)
        self._proto = proto
        self._states: dict[str, PythonState] = {}

    def _restored(self) -> dict[str, object]:
        return {
            attribute.checkpoint_key: value
            for value, number in matches(self._root, self._proto)
            for attribute in self._proto.nodes[number].attributes
            if isinstance(value, Variable)
        }

    def _unmatched_objects(self) -> list[Any]:
        states = {id(value) for value in self._states.values()}
        return [value for value in super()._unmatched_objects() if id(value) not in states]

    def restore_states(self, reader: CheckpointReader) -> None:
        """Restores the program's own Python states immediately."""
        for value, number in list(matches(self._root, self._proto)):
            if isinstance(value, PythonState):
                for attribute in self._proto.nodes[number].attributes:
                    self._states[attribute.checkpoint_key] = value
                    value.deserialize(reader.get_tensor(attribute.checkpoint_key))

    def assert_consumed(self) -> Self:
        self.assert_existing_objects_matched()
        taken = {*self._restored(), *self._states}
        for node in self._proto.nodes:
            for attribute in node.attributes:
                if attribute.checkpoint_key not in taken:
                    raise AssertionError(f"Unresolved object in checkpoint: {attribute.checkpoint_key}")
        return self


class NameBasedSaverStatus(LoadStatus):
    """Restores from a checkpoint of a `Saver`, by the names of variables."""

    def _restored(self) -> dict[str, Variable]:
        reader = CheckpointReader(self._path)
        found = object_graph(self._root).values.values()
        named = {value.op.name: value for value in found if isinstance(value, Variable)}
        return {name: value for name, value in named.items() if reader.has_tensor(name)}


class InitializationOnlyStatus(LoadStatus):
    """Status without a checkpoint: variables are initialised instead of restored."""

    def initialize_or_restore(self, session: SessionLike | None = None) -> None:
        """Initialises all variables."""
        found = object_graph(self._root).values.values()
        _session(session).run([value.initializer for value in found if isinstance(value, Variable)])


class CheckpointManager:
    """Saves checkpoints in a folder, and deletes old ones.

    Checkpoints kept by an earlier manager of the folder are managed, too.

    Args:
      checkpoint: the objects to save.
      max_to_keep: number of checkpoints to keep; None: all.
      keep_checkpoint_every_n_hours: interval at which a further checkpoint is kept permanently, in hours.
      checkpoint_name: prefix of the names of the checkpoints.

    Raises:
      ValueError: ``max_to_keep`` is not positive.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: Path,
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
    ) -> None:
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError(f"Expected a positive integer or `None` for `max_to_max_to_keep`, got {max_to_keep:d}.")
        self._checkpoint = checkpoint
        self._directory = as_path(directory)
        self._prefix = os.path.join(self._directory, checkpoint_name)
        self._most = max_to_keep
        self._interval_s = (keep_checkpoint_every_n_hours or 0) * _HOUR_S
        self._latest: str | None = None
        self._kept: dict[str, float] = {}
        now = time.time()
        self._last_preserved = now - 1
        state = get_checkpoint_state(self._directory)
        if state is not None:
            self._latest = state.model_checkpoint_path
            self._last_preserved = min(now, state.last_preserved_timestamp)
            paths = list(state.all_model_checkpoint_paths)
            times = list(state.all_model_checkpoint_timestamps) or [now] * len(paths)
            self._kept = {path: min(saved, now) for path, saved in zip(paths, times, strict=True)}

    @property
    def latest_checkpoint(self) -> str | None:
        """Path of the newest checkpoint, for `Checkpoint.restore`; None if there is none."""
        return self._latest

    @property
    def checkpoints(self) -> list[str]:
        """Paths of the recent checkpoints, oldest first, without the checkpoints kept for good."""
        return list(self._kept)

    def save(self, checkpoint_number: Any = None) -> str:
        """Saves a checkpoint in the default session.

        Args:
          checkpoint_number: suffix of its name: a number, a tensor or a variable; the number of saves if None.

        Returns:
          Its path.
        """
        session = self._checkpoint.default_session()
        count = self._checkpoint.count(session)
        if checkpoint_number is None:
            number = count
        else:
            number = checkpoint_number if isinstance(checkpoint_number, int) else read_step(session, checkpoint_number)
        files.makedirs(self._directory)
        path = self._checkpoint.write(f"{self._prefix}-{number}", session)
        self._kept.pop(path, None)
        self._kept[path] = time.time()
        self._latest = path
        # Record the new checkpoint before deleting old ones, so that a crash in between does not lose track of it;
        # record again after deleting.
        self._record()
        while self._most is not None and len(self._kept) > self._most:
            self._drop(next(iter(self._kept)))
        self._record()
        return path

    def _drop(self, path: str) -> None:
        saved = self._kept.pop(path)
        if self._interval_s and saved - self._interval_s >= self._last_preserved:
            self._last_preserved = saved
            return
        try:
            remove_checkpoint(path)
        except NotFoundError:
            return

    def _record(self) -> None:
        update_checkpoint_state(
            self._directory,
            self._latest or "",
            list(self._kept),
            None,
            list(self._kept.values()),
            self._last_preserved,
            save_relative_paths=True,
        )
