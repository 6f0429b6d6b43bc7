"""Callbacks that write files: atomically, by one process of the job, under any name.

`ModelCheckpoint` and `BackupAndRestore` are Keras's callbacks with these properties. Keras's own callbacks, if passed
to a mirrored model, write files in the same way.
"""

from __future__ import annotations

import functools
import io
import json
import os
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from headwater.cluster.telemetry.troubles import TROUBLES
from headwater.data.io import files
from headwater.errors import DataLossError
from headwater.keras import saving
from headwater.keras.callback_states import CallbackStates
from headwater.keras.internals import python_utils

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.graph.registry import HostArray

_checkpoint: Any = keras.callbacks.ModelCheckpoint
_backup: Any = keras.callbacks.BackupAndRestore

_FORMAT = 1
_DESCRIPTION = "headwater"
_KEPT = "callbacks"
#: Attribute that marks a `BackupAndRestore` of a model on parameter servers, which Keras's own code saves.
_SERVED = "served"


def has_hook(container: Any, *names: str) -> bool:
    """Returns whether a callback in a `keras.callbacks.CallbackList` overrides one of these methods."""
    hooks = [getattr(callback, name) for callback in container.callbacks for name in names]
    return not all(map(python_utils.is_default, hooks))


class ModelCheckpoint(_checkpoint):
    """Saves the model, or its weights, every epoch or at an interval of batches.

    The file is written atomically: after an interruption, the file is complete or missing. The path may have any ending
    or none. A whole model is saved as a ``.keras`` archive (HDF5 for ``.h5``), weights are saved as HDF5.
    `headwater.keras.saving.load_model`, and ``keras`` in programs that run under Headwater, read the file regardless of
    its name.

    Args:
      filepath: the path, in which ``{epoch}``, ``{batch}`` and names of logs in braces are replaced by their values.
      others: see ``keras.callbacks.ModelCheckpoint``.
    """

    def __init__(self, filepath: Any, *args: Any, **kwargs: Any) -> None:
        name = os.fspath(filepath)
        weights = kwargs.get("save_weights_only", args[3] if len(args) > 3 else False)
        known = name.endswith(".weights.h5") if weights else name.endswith((".keras", ".h5"))
        super().__init__(name if known else name + (".weights.h5" if weights else ".keras"), *args, **kwargs)
        self.filepath = name

    def _save_model(self, epoch: int, batch: int | None, logs: Mapping[str, object]) -> None:
        save_checkpoint(self, epoch, batch, logs, writes=True)


def save_checkpoint(callback: Any, epoch: int, batch: int | None, logs: object, writes: bool) -> None:
    """Saves the model if ``callback``, a `keras.callbacks.ModelCheckpoint`, decides that a checkpoint is due.

    Args:
      callback: decides whether to save, and the file's name.
      epoch: the current epoch, from 0.
      batch: the current batch, from 0; None at the end of an epoch.
      logs: the values of the metrics.
      writes: whether this process writes the file. If not, only the callback's state, such as the best value, is
        updated.
    """
    best = getattr(callback, "best", None)
    path = callback._get_file_path(epoch, batch, logs or {})
    if not callback._should_save_model(epoch, batch, logs, path) or not writes:
        return
    model = callback.model
    model.jax_state_sync()
    with TROUBLES.record_full_disk(
        path, "Training continues; the previous file is intact; the next save will be attempted as scheduled"
    ):
        if callback.save_weights_only:
            saving.save_weights(model, path)
        else:
            saving.save_model(model, path)
        best = getattr(callback, "best", None)
    # If the save has failed, reset `best` to its previous value: a later model may be worse than this one, and still be
    # the best model that can be saved.
    callback.best = best


class BackupAndRestore(_backup):
    """Saves the training state, and resumes from it when the program is restarted after an interruption.

    Unlike Keras's callback, it resumes at the exact step after the saved one, with the same data, metrics and random
    numbers, so that an interrupted run ends with the same values as an uninterrupted run.

    Args:
      backup_dir: a folder for this callback only.
      save_freq: ``"epoch"``, or a number of batches.
      double_checkpoint: whether to keep the previous state, too. This is not needed for safety, because files are
        written atomically.
      delete_checkpoint: whether to remove the folder at the end of training.
      others: see ``keras.callbacks.BackupAndRestore``.
    """

    #: The `MirroredModel`, which knows the position in training; None for a model outside of mirrored scopes.
    mirrored: Any = None
    #: Whether this process writes.
    writes = True
    #: State of other callbacks, saved with the model.
    states: CallbackStates | None = None
    #: The state of other callbacks that was saved with the restored model.
    restored: tuple[str, list[HostArray]] | None = None

    def __init__(self, backup_dir: Any, save_freq: object = "epoch", *args: object, **kwargs: object) -> None:
        # Accept and ignore this argument of tf.keras, which Keras 3 has removed: a save before preemption is always
        # made.
        kwargs.pop("save_before_preemption", None)
        super().__init__(os.fspath(backup_dir), save_freq, *args, **kwargs)
        self.set_path()

    def set_path(self) -> None:
        """Sets the path of the file, which is in the folder of this callback."""
        self._path = os.path.join(os.fspath(self.backup_dir), "training-state")

    def on_train_begin(self, logs: object = None) -> None:
        self.restore()

    def _save_model(self) -> None:
        self.save()

    def on_train_end(self, logs: object = None) -> None:
        if self.writes:
            super().on_train_end(logs)

    def save(self) -> None:
        """Writes the current training state."""
        if not self.writes:
            return
        self.model.jax_state_sync()
        variables = _all_variables(self.model)
        values = [np.asarray(variable.value) for variable in variables]
        position = self._position()
        description: dict[str, Any] = {
            "format": _FORMAT,
            "paths": [variable.path for variable in variables],
            "dtypes": [str(value.dtype) for value in values],
            **position,
        }
        others: list[HostArray] = []
        if self.states is not None:
            description["callbacks"], others = self.states.saved()
        written = io.BytesIO()
        arrays = {str(number): _storable(value) for number, value in enumerate(values)}
        text = np.frombuffer(json.dumps(description).encode(), np.uint8)
        save: Any = np.savez
        arrays_of_callbacks = {f"{_KEPT} {number}": array for number, array in enumerate(others)}
        save(written, **{_DESCRIPTION: text}, **arrays, **arrays_of_callbacks)
        then = "Training continues; the previous file is intact; the next save will be attempted as scheduled"
        with TROUBLES.record_full_disk(self._path, then):
            if not files.exists(self.backup_dir):
                files.makedirs(self.backup_dir)
            with files.atomic_write(self._path) as file:
                # Write a copy: a view of the buffer could not be released while the traceback of an exception refers to
                # it.
                file.write(written.getvalue())

    def restore(self) -> None:
        """Restores the model from the saved state; does nothing if there is none.

        Raises:
          ValueError: the state was saved for another model.
          DataLossError: the file is damaged.
        """
        self.restored = None
        if not files.exists(self._path):
            return
        description, values, arrays_of_callbacks = _read_state(self._path)
        if "callbacks" in description:
            self.restored = description["callbacks"], arrays_of_callbacks
        model = self.model
        if model.optimizer is not None and not model.optimizer.built:
            model.optimizer.build(model.trainable_variables)
        variables = _all_variables(model)
        paths = description["paths"]
        shapes = [tuple(variable.shape) for variable in variables]
        if shapes != [value.shape for value in values]:
            raise ValueError(
                f"{self._path} holds the state of another model: {len(paths)} variables, {paths[:3]}…, but this model "
                f"has {len(variables)}, {[variable.path for variable in variables[:3]]}…; remove it to start again"
            )
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
        model._initial_epoch = description["epoch"]
        self._current_epoch = description["epoch"]
        if self.mirrored is not None:
            self.mirrored.resume(
                seed=description["seed"],
                epoch=description["epoch"],
                step=description["step"],
                metrics=values[len(values) - len(model.metrics_variables) :],
            )

    def restored_states(self) -> tuple[str, list[HostArray]] | None:
        """Returns the other callbacks' state that was saved with the restored model; the same in all processes."""
        if self.mirrored is None:
            return self.restored
        text, arrays = self.restored or ("", [])
        received = self.mirrored.replicas.broadcast([np.frombuffer(text.encode(), np.uint8), *arrays], "callbacks")
        return (bytes(np.asarray(received[0])).decode(), list(received[1:])) if len(received[0]) else None

    def _position(self) -> dict[str, int]:
        if self.mirrored is None:
            return {"epoch": self._current_epoch, "step": 0, "seed": 0}
        position = self.mirrored.position
        return {"epoch": position.epoch, "step": position.step, "seed": position.seed}


def adapt_to_mirror(callback: Any, mirrored: Any) -> object:
    """Patches a `ModelCheckpoint` or `BackupAndRestore` so that all processes decide alike, and only the first writes.

    Args:
      callback: the program's callback.
      mirrored: the `MirroredModel`, which knows whether this process writes, and the position in training.

    Returns:
      The same callback.
    """
    if not isinstance(callback, _checkpoint):
        adapt_backup(callback)
        callback.mirrored = mirrored
        callback.writes = mirrored.is_chief
        return callback
    is_due = type(callback)._should_save_on_batch

    def should_save_on_batch(batch: int) -> bool:
        # Do not save after steps that a restarted run skips: the previous run has saved them.
        return is_due(callback, batch) and not mirrored.skipping

    callback._should_save_on_batch = should_save_on_batch
    callback._save_model = functools.partial(save_checkpoint, callback, writes=mirrored.is_chief)
    return callback


class _States(keras.callbacks.Callback):
    """Collects the state of other callbacks, which `BackupAndRestore` callbacks save.

    Args:
      callbacks: the callbacks with state.
      backups: the `BackupAndRestore` callbacks.
    """

    async_safe = True

    def __init__(self, callbacks: list[Any], backups: list[Any]) -> None:
        super().__init__()
        self._states = CallbackStates(callbacks)
        self._backups = backups
        for backup in backups:
            backup.states = self._states

    def restore_states(self) -> None:
        """Restores states; must be called after ``on_train_begin`` of all callbacks, which may restore the model."""
        self._states.record_initial()
        for backup in self._backups:
            restored = backup.restored_states() if hasattr(backup, "restored_states") else None
            if restored is not None:
                self._states.restore(*restored)

    def on_epoch_end(self, epoch: int, logs: object = None) -> None:
        self._states.collect_changes()


def adapt_backup(callback: Any) -> None:
    """Patches Keras's `BackupAndRestore` to save and restore like Headwater's; does nothing to other callbacks."""
    if isinstance(callback, _backup) and not isinstance(callback, BackupAndRestore) and not hasattr(callback, _SERVED):
        become(callback, BackupAndRestore, _backup)
        callback.set_path()


def become(callback: Any, kind: Any, base: object) -> None:
    """Changes the class of ``callback`` from ``base`` to its subclass ``kind``.

    If the class is a program's own subclass of ``base``, its methods still override the methods of ``kind``.
    """
    own: Any = type(callback)
    callback.__class__ = kind if own is base else type(own.__name__, (own, kind), {"__module__": own.__module__})


def serve_backup(callback: Any) -> None:
    """Patches Keras's own `BackupAndRestore` to save the state of other callbacks, too, in a second file.

    The file's name contains the epoch, and the file is written before Keras saves the model. So whenever a model can be
    restored, the file with the state of the same epoch exists.
    """
    if isinstance(callback, BackupAndRestore) or hasattr(callback, _SERVED):
        return
    callback.served = True
    save = callback._save_model

    def path(epoch: int) -> str:
        return os.path.join(callback.backup_dir, f"callbacks-{epoch}")

    def save_with_states() -> None:
        epoch = callback._current_epoch
        text, arrays = callback.states.saved()
        written = io.BytesIO()
        write: Any = np.savez
        arrays_of_callbacks = {f"{_KEPT} {number}": array for number, array in enumerate(arrays)}
        write(written, **{_DESCRIPTION: np.frombuffer(text.encode(), np.uint8)}, **arrays_of_callbacks)
        if not files.exists(callback.backup_dir):
            files.makedirs(callback.backup_dir)
        with files.atomic_write(path(epoch)) as file:
            file.write(written.getvalue())
        save()
        if files.exists(path(epoch - 2)):
            files.remove(path(epoch - 2))

    def restored_states() -> tuple[str, list[HostArray]] | None:
        epoch = callback.model._initial_epoch
        if not epoch or not files.exists(path(epoch)):
            return None
        with files.open_file(path(epoch), "rb") as file:
            stored = np.load(io.BytesIO(file.read()), allow_pickle=False)
        return stored[_DESCRIPTION].tobytes().decode(), [stored[name] for name in stored.files if name != _DESCRIPTION]

    callback._save_model, callback.restored_states = save_with_states, restored_states


def arrange(listed: Any) -> None:
    """Orders callbacks so that, at the end of an epoch, callbacks with state run before the callbacks that save it.

    Args:
      listed: a `keras.callbacks.CallbackList`.
    """
    backups = [callback for callback in listed.callbacks if isinstance(callback, _backup)]
    last = [callback for callback in listed.callbacks if getattr(callback, "comes_last", False)]
    others = [callback for callback in listed.callbacks if callback not in backups and callback not in last]
    listed.headwater_states = _States(others, backups)
    listed.callbacks[:] = [*others, listed.headwater_states, *backups, *last]


def _read_state(path: str) -> tuple[dict[str, Any], list[HostArray], list[HostArray]]:
    """Reads a file of `BackupAndRestore.save`: its description, the model's values and the callbacks' arrays."""
    with files.open_file(path, "rb") as file:
        content = file.read()
    try:
        # `allow_pickle=False` permits only arrays of numbers, so that no code in the file can run. Each has a checksum.
        stored = np.load(io.BytesIO(content), allow_pickle=False)
        description = json.loads(stored[_DESCRIPTION].tobytes())
        values = [_restored(stored[str(number)], name) for number, name in enumerate(description["dtypes"])]
        return description, values, [stored[name] for name in stored.files if name.startswith(_KEPT)]
    except Exception as error:  # a damaged file can raise nearly any error in NumPy, zipfile or json
        raise DataLossError(
            f"{path} is damaged, so that training cannot continue from it: {error}; remove it to start again"
        ) from error


def _all_variables(model: Any) -> list[Any]:
    optimizer = model.optimizer.variables if model.optimizer is not None else []
    return [*model.trainable_variables, *model.non_trainable_variables, *optimizer, *model.metrics_variables]


def _storable(value: HostArray) -> HostArray:
    """Returns ``value`` viewed as a type that NumPy can write to files."""
    if value.dtype.kind in "biufc":
        return value
    return value.view(f"u{value.dtype.itemsize}")


def _restored(value: HostArray, dtype: str) -> HostArray:
    return value if str(value.dtype) == dtype else value.view(dtype)
