"""What each process does with the callbacks of a program, and the one that keeps the processes together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import keras

from headwater.keras import callbacks as ours
from headwater.keras.internals import Callback, CallbackList
from headwater.keras.tensorboard import TensorBoard

if TYPE_CHECKING:
    from collections.abc import Mapping

_base = Callback
_list = CallbackList


@runtime_checkable
class SavesProgress(Protocol):
    """A callback from whose files a restarted `fit` goes on."""

    def save(self) -> None:
        """Writes them."""
        ...


class _Fits(Protocol):
    @property
    def is_chief(self) -> bool: ...

    stop_wanted: bool

    def begin(self) -> None: ...
    def mirror(self) -> None: ...
    def begin_epoch(self, epoch: int) -> None: ...
    def end_epoch(self) -> None: ...


class Mirror(_base):
    """Comes after all other callbacks, and tells their model's mirror where Keras's loop is."""

    async_safe = True
    comes_last = True

    def __init__(self, mirrored: _Fits) -> None:
        super().__init__()
        self._mirrored = mirrored
        self._training = False

    def on_train_begin(self, logs: Mapping[str, object] | None = None) -> None:
        self._training = True
        self._mirrored.begin()

    def on_train_end(self, logs: Mapping[str, object] | None = None) -> None:
        self._training = False

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, object] | None = None) -> None:
        self._mirrored.begin_epoch(epoch)

    def on_test_begin(self, logs: Mapping[str, object] | None = None) -> None:
        if not self._training:
            self._mirrored.mirror()

    def on_predict_begin(self, logs: Mapping[str, object] | None = None) -> None:
        self._mirrored.mirror()


class _EpochEnds(_base):
    """Comes before all other callbacks: what they save at the end of an epoch is to say that it is over."""

    def __init__(self, mirrored: _Fits) -> None:
        super().__init__()
        self._mirrored = mirrored

    def on_epoch_end(self, epoch: int, logs: Mapping[str, object] | None = None) -> None:
        self._mirrored.end_epoch()


def prepare_callbacks(callbacks: object, mirrored: _Fits) -> list[object]:
    """The program's callbacks as this process is to call them.

    Those that decide something are called in every process, which all see the same logs. Of those that write files,
    `ModelCheckpoint` and `BackupAndRestore` write whole files in the first process, and go along in the others; what
    is for one reader only, such as TensorBoard's files, the others leave out.
    """
    listed: list[object] = []
    if isinstance(callbacks, _list):
        listed = list(callbacks.callbacks)
    elif isinstance(callbacks, Iterable):
        listed = list(callbacks)  # pyright: ignore[reportUnknownArgumentType]
    elif callbacks is not None:
        listed = [callbacks]
    prepared: list[object] = [_EpochEnds(mirrored)]
    for callback in listed:
        if isinstance(callback, (keras.callbacks.ModelCheckpoint, keras.callbacks.BackupAndRestore)):
            prepared.append(ours.whole(callback, mirrored))
        elif mirrored.is_chief or not isinstance(callback, _only_once()):
            prepared.append(callback)
    return prepared


def _only_once() -> tuple[Any, ...]:
    known = keras.callbacks
    return (TensorBoard, known.TensorBoard, known.CSVLogger, known.RemoteMonitor, known.ProgbarLogger)
