"""``tf.train.Checkpoint`` of Keras's models and optimizers, and of variables.

Files have TensorFlow's format, with Headwater's names of variables: the name that the program gave an object, and the
number of the variable within it. Keras's own names of variables depend on other objects that a program has built.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import jax.numpy as jnp
import keras
import numpy as np

from headwater.data.io.bundle_writer import BundleWriter
from headwater.data.io.files import Path, as_path
from headwater.tf1.training.checkpoint_reader import CheckpointReader
from headwater.tf1.training.checkpoint_state import update_checkpoint_state
from headwater.tf1.training.object_checkpoints import CheckpointManager as GraphManager
from headwater.tf2.modules import Module
from headwater.tf2.tape import value_of
from headwater.tf2.tensors import Variable

_KerasVariable = keras.Variable
_Optimizer = keras.optimizers.Optimizer
_Layer = keras.layers.Layer
_Metric = keras.metrics.Metric

_COUNTER = "save_counter"


class Checkpoint:
    """The state of objects: variables, models, layers, optimizers, metrics, lists and dicts of these.

    Args:
      root: not supported; in TensorFlow, an object with attributes to save.
      **kwargs: the objects, by the names of their attributes of the checkpoint.

    Raises:
      ValueError: an object has no state to save.
    """

    def __init__(self, root: object = None, **kwargs: object) -> None:
        if root is not None:
            raise NotImplementedError("tf.train.Checkpoint: root is not supported; pass objects by name")
        self.save_counter: Any = Variable(0, dtype="int64", trainable=False, name=_COUNTER)
        self._objects: dict[str, Any] = dict(sorted(kwargs.items()))
        for name, value in self._objects.items():
            _variables_of(value, name)
            setattr(self, name, value)

    def _variables(self) -> dict[str, Any]:
        found = {f"{_COUNTER}/0": self.save_counter}
        for name, value in self._objects.items():
            found.update((f"{name}/{key}", variable) for key, variable in _variables_of(value, name).items())
        return found

    def write(self, file_prefix: Path, options: object = None) -> str:
        """Writes the values to files with this prefix, and returns the prefix."""
        _refuse(options)
        prefix = as_path(file_prefix)
        with BundleWriter(prefix) as writer:
            for name, variable in sorted(self._variables().items()):
                writer.add(name, np.asarray(value_of(variable)))
            writer.finish()
        return prefix

    def save(self, file_prefix: Path, options: object = None) -> str:
        """Writes a checkpoint, numbered by saves, and makes it the latest of its folder; returns its path."""
        _refuse(options)
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

    def read(self, save_path: Path, options: object = None) -> Status:
        """Same as `restore`."""
        return self.restore(save_path, options)

    def restore(self, save_path: Path | None, options: object = None) -> Status:
        """Restores the objects from a checkpoint; does nothing for None. An optimizer that has made no step yet is
        built for the model that is saved with it.

        Raises:
          NotFoundError: there is no such checkpoint.
          ValueError: the shapes of a value and of its variable differ.
        """
        _refuse(options)
        if save_path is None:
            return Status(set(), set())
        path = as_path(save_path)
        reader = CheckpointReader(path)
        stored = set(reader.get_variable_to_shape_map())
        self._build_optimizers(stored)
        variables = self._variables()
        for name, variable in variables.items():
            if name in stored:
                value = reader.get_tensor(name)
                if tuple(value.shape) != tuple(variable.shape):
                    raise ValueError(
                        f"{name} in {path} has shape {value.shape}, but the variable {tuple(variable.shape)}"
                    )
                variable.assign(jnp.asarray(value))
        return Status(stored - set(variables), set(variables) - stored)

    def _build_optimizers(self, stored: set[str]) -> None:
        models = [value for value in self._objects.values() if isinstance(value, keras.Model) and value.built]
        for name, value in self._objects.items():
            slots = sum(key.startswith(f"{name}/") for key in stored)
            if isinstance(value, _Optimizer) and not value.built and slots > len(value.variables) and len(models) == 1:
                value.build(models[0].trainable_variables)


def _refuse(options: object) -> None:
    if options is not None:
        raise NotImplementedError("tf.train.CheckpointOptions are not supported")


class Status:
    """The result of a restore.

    Args:
      unused: names of values in the checkpoint without a variable.
      missing: names of variables without a value in the checkpoint.
    """

    def __init__(self, unused: set[str], missing: set[str]) -> None:
        self._unused = unused
        self._missing = missing

    def assert_consumed(self) -> Self:
        """Returns itself; raises AssertionError if a value has no variable, or a variable no value."""
        if self._unused:
            raise AssertionError(f"values without a variable: {', '.join(sorted(self._unused))}")
        return self.assert_existing_objects_matched()

    def assert_existing_objects_matched(self) -> Self:
        """Returns itself; raises AssertionError if a variable has no value."""
        if self._missing:
            raise AssertionError(f"variables without a value: {', '.join(sorted(self._missing))}")
        return self

    def expect_partial(self) -> Self:
        """Returns itself."""
        return self


def _variables_of(value: object, name: str) -> dict[str, object]:
    """Returns the variables of an object, by their names within it."""
    if isinstance(value, _KerasVariable):
        return {"0": value}
    if isinstance(value, (_Layer, _Optimizer, _Metric, Module)):
        variables: object = value.variables
        return {str(at): variable for at, variable in enumerate(variables)}
    if isinstance(value, Mapping):
        parts: object = {str(key): part for key, part in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    elif isinstance(value, (list, tuple)):
        parts = {str(at): part for at, part in enumerate(value)}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    else:
        raise ValueError(
            "`Checkpoint` was expecting a trackable object (an object derived from `Trackable`), got "
            f"{value!r} as {name}: variables, models, layers, optimizers, metrics, lists and dicts of these have state"
        )
    return {
        f"{key}/{inner}": v for key, part in parts.items() for inner, v in _variables_of(part, f"{name}/{key}").items()
    }


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

    def save(self, checkpoint_number: object = None, check_interval: bool = True, options: object = None) -> Any:
        """Saves a checkpoint and returns its path; None if the last one is not old enough."""
        _refuse(options)
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
