"""Adapts a program's callbacks for each process, and adds callbacks that report the position of Keras's loop to the
mirrored model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import keras

from headwater.keras import callbacks as ours
from headwater.keras.internals import Callback, CallbackList

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.keras.mirrored.model import MirroredModel

_base = Callback
_list = CallbackList


@runtime_checkable
class SavesProgress(Protocol):
    """A callback that saves files from which a restarted `fit` resumes."""

    def save(self) -> None:
        """Writes the files."""
        ...


class Mirror(_base):
    """Reports the position in Keras's loop to the mirrored model; runs after all other callbacks."""

    async_safe = True
    comes_last = True

    def __init__(self, mirrored: MirroredModel) -> None:
        super().__init__()
        self._mirrored = mirrored
        self._training = False

    def on_train_begin(self, logs: Mapping[str, object] | None = None) -> None:
        self._training = True
        self._mirrored.start_fit()

    def on_train_end(self, logs: Mapping[str, object] | None = None) -> None:
        self._training = False

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, object] | None = None) -> None:
        self._mirrored.start_epoch(epoch)

    def on_test_begin(self, logs: Mapping[str, object] | None = None) -> None:
        if not self._training:
            self._mirrored.mirror()

    def on_predict_begin(self, logs: Mapping[str, object] | None = None) -> None:
        self._mirrored.mirror()


class _EpochEnds(_base):
    """Marks an epoch as finished before any other callback handles its end, so that the state which those callbacks
    save counts the epoch as finished."""

    def __init__(self, mirrored: MirroredModel) -> None:
        super().__init__()
        self._mirrored = mirrored

    def on_epoch_end(self, epoch: int, logs: Mapping[str, object] | None = None) -> None:
        self._mirrored.end_epoch()


def prepare_callbacks(callbacks: object, mirrored: MirroredModel) -> list[object]:
    """Returns the program's callbacks, adapted for this process.

    Callbacks that make decisions run in every process, on the same logs. `ModelCheckpoint` and `BackupAndRestore` run
    in every process too, and write their files in the first process only. Callbacks with output for one reader, such as
    TensorBoard's files, run in the first process only.
    """
    prepared: list[object] = [_EpochEnds(mirrored)]
    for callback in _listed(callbacks):
        if isinstance(callback, (keras.callbacks.ModelCheckpoint, keras.callbacks.BackupAndRestore)):
            prepared.append(ours.adapt_to_mirror(callback, mirrored))
        elif mirrored.is_chief or not isinstance(callback, _only_once()):
            prepared.append(callback)
    return prepared


def reads_batch_logs(callbacks: object) -> bool:
    """Returns whether a callback of the program is called after each batch of an evaluation."""
    modules = [callback.on_test_batch_end.__module__ for callback in _listed(callbacks)]
    return not all(module.startswith(("keras.", "headwater.")) for module in modules)


def _listed(callbacks: object) -> list[Any]:
    if isinstance(callbacks, _list):
        return list(callbacks.callbacks)
    if isinstance(callbacks, Iterable):
        return list(callbacks)  # pyright: ignore[reportUnknownArgumentType]
    return [] if callbacks is None else [callbacks]


def _only_once() -> tuple[Any, ...]:
    known = keras.callbacks
    return (known.TensorBoard, known.CSVLogger, known.RemoteMonitor, known.ProgbarLogger)
