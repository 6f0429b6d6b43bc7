"""Periodic saves of a ``ps`` of graphs, from which it resumes after a restart; see `headwater.state.state_saver`.

Only the restarted ``ps`` returns to its newest saved state. All other tasks keep their present state.

A saved state has the variables, including optimizer slots and the global step, and the seal of the training
(`headwater.tf1.training.seals`). The seal shows the chief that every task has an initialised model, so the chief
restores no checkpoint after the restart of one ``ps``. A chief that is about to restore a checkpoint on all tasks
breaks the seals first, and each ``ps`` then deletes its saved states. Until the next seal, there is no saved state to
resume from.

Other resources of the task (queues, readers, iterators) are empty after the restart, as after any loss of a task.
"""

from __future__ import annotations

import base64
import contextlib
import logging
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from headwater.cluster.names import TaskName
from headwater.cluster.telemetry.snapshot import GroupProgress
from headwater.cluster.transport.waiting import positive_seconds_from
from headwater.cluster.variables import SAVE_EVERY_S, SAVES
from headwater.data.io import files, state_files
from headwater.data.io.state_files import Array, Chain, Spec
from headwater.dtypes import to_string_array
from headwater.errors import FailedPreconditionError, OpError
from headwater.graph.resources.containers import Cell, Resources
from headwater.graph.resources.training_note import training_note_of
from headwater.graph.resources.update_counts import SLOTS, UpdateCounts, read_counts
from headwater.state.state_saver import Saves, StateSaver, StateSnapshot

if TYPE_CHECKING:
    from headwater.data.io.json_types import Json

_log = logging.getLogger("headwater")

#: Subfolder of the folder of saves; no set of parameters can have this name.
FOLDER: Final = "+graph"
_COUNTS: Final = "counts"
#: Maximum number of variables that a message names.
_SHOWN: Final = 5


def saves_of_environment(environ: Mapping[str, str] | None = None) -> Saves | None:
    """Reads the settings of saves from the environment; returns None if the environment names no folder.

    Raises:
      InvalidArgumentError: ``HEADWATER_SAVE_EVERY_S`` is not a positive number.
    """
    environ = os.environ if environ is None else environ
    folder = environ.get(SAVES, "")
    every_s = positive_seconds_from(environ, SAVE_EVERY_S, 5.0)
    return Saves(folder=folder, every_s=every_s) if folder else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Loss:
    """Updates that a ``ps`` lost when it restored its saved state.

    Attributes:
      at: when the state was saved, in seconds since 1970.
      updates: numbers of the first and the last lost update of each variable; None if unknown.
    """

    at: float
    updates: Mapping[str, tuple[int, int]] | None

    @property
    def max_lost_updates(self) -> int:
        """The largest number of updates that any variable has lost."""
        return max((last - first + 1 for first, last in (self.updates or {}).values()), default=0)

    def __str__(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.at))
        if self.updates is None:
            return f"restored its state of {since}; how many updates are lost is not known"
        if not self.updates:
            return f"restored its state of {since}; no update is lost"
        alike: dict[tuple[int, int], list[str]] = {}
        for name, lost in self.updates.items():
            alike.setdefault(lost, []).append(name)
        parts = [f"{_updates(*lost)} of {_names(names)}" for lost, names in list(alike.items())[:_SHOWN]]
        more = f"; and those of {len(alike) - _SHOWN} other groups of variables" if len(alike) > _SHOWN else ""
        return f"lost, applied after the save of {since}: {'; '.join(parts)}{more}"


def _updates(first: int, last: int) -> str:
    return f"update {first}" if first == last else f"updates {first} to {last}"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def loss_of(saved: Mapping[str, tuple[int, int]], counts: Sequence[int] | None, at: float) -> Loss:
    """Computes the updates lost since a saved state.

    Args:
      saved: slot of each variable, and the number of updates in its saved state.
      counts: final numbers of updates, by slot; None if unknown.
      at: when the state was saved, in seconds since 1970.
    """
    if counts is None:
        return Loss(at=at, updates=None)
    known = {name: (held + 1, counts[slot]) for name, (slot, held) in saved.items() if slot < len(counts)}
    return Loss(at=at, updates={name: (first, last) for name, (first, last) in known.items() if last >= first})


HeldCell = tuple[tuple[str, str], int, int, Array]
"""A variable at one moment: (container, name), its number in saved states, its count of updates, its value.
"""


def capture_cell(key: tuple[str, str], number: int, cell: Cell) -> HeldCell:
    """Captures the value of a variable, which must have one. The caller holds the lock of the resources."""
    # The NumPy view holds a reference to the buffer, so the next update allocates another one instead of writing in
    # place. The captured value therefore needs no copy.
    return key, number, cell.updates, np.asarray(cell.value)


def pack_cells(held: Iterable[HeldCell]) -> tuple[list[list[Any]], list[tuple[Spec, Array]]]:
    """Encodes variables in the format of saved states.

    Returns:
      The description of each variable, for JSON; and its value as an array of numbers.
    """
    entries: list[list[Any]] = []
    arrays: list[tuple[Spec, Array]] = []
    for (container, name), number, updates, value in held:
        strings = None if value.dtype != object else {"shape": list(value.shape), "sizes": _sizes(value)}
        array = value if strings is None else np.frombuffer(b"".join(map(_bytes, value.ravel())), np.uint8)
        entries.append([container, name, number, updates, strings])
        arrays.append((Spec.of(f"{container}:{name}", array), array))
    return entries, arrays


def unpack_cells(
    resources: Resources, entries: Sequence[Sequence[Any]], arrays: Iterable[Array]
) -> dict[tuple[str, str], tuple[int, int]]:
    """Restores variables of a task from the result of `pack_cells`.

    Returns:
      The number and the count of updates of each variable.
    """
    counts: dict[tuple[str, str], tuple[int, int]] = {}
    with resources.lock:
        for (container, name, number, updates, strings), array in zip(entries, arrays, strict=True):
            value = array if strings is None else _strings(array, strings)
            resources.cell(container, name).install(value, int(updates))
            counts[container, name] = int(number), int(updates)
    return counts


class GraphSaver(StateSaver):
    """Saves the variables of a task.

    Args:
      resources: the task's resources, which include the variables.
      saves: folder and interval of the saves.
      task: the name of this task.
      tasks: number of tasks of its job.

    Attributes:
      loss: updates lost since the restored state; None if no state was restored.
      job_over: whether the job is over, so that saved states are of no further use.
    """

    def __init__(self, resources: Resources, saves: Saves, task: TaskName, tasks: int) -> None:
        super().__init__(saves, FOLDER, "variables", index=task.index, tasks=tasks, option=SAVES)
        self.loss: Loss | None = None
        self.job_over: bool = False
        self._resources = resources
        self._note = training_note_of(resources)
        self._logged_reason = ""
        self._incarnation = state_files.new_id()
        self._counts: UpdateCounts | None = None
        self._slots: dict[tuple[str, str], int] = {}

    # Lifecycle --------------------------------------------------------------------------------------------------------

    def restore(self) -> bool:
        """Restores the newest saved state before the task serves; returns whether there was one.

        Raises:
          FailedPreconditionError: the state is from a different number of ``ps``.
          OpError: the folder cannot be read.
        """
        chain = self._find_state()
        path = os.path.join(self.folder, _COUNTS)
        if chain is not None:
            self._continue_from(chain, path)
        files.makedirs(self.folder)
        begun = [0] * len(self._slots)
        cells = self._resources.cells()
        for key, slot in self._slots.items():
            begun[slot] = cells[key].updates
        try:
            # The counts of the previous incarnation have been read above. They must be replaced before the first
            # update, or updates of both incarnations would be counted together.
            self._counts = UpdateCounts(path, self._incarnation, begun)
        except OpError as error:
            _log.error("%s cannot report lost updates after a failure: %s", self._task, error.message)
        with self._resources.lock:
            for key, slot in self._slots.items():
                self._count_in_file(cells[key], slot)
        self._note.on_change = self._handle_seal_change
        return chain is not None

    def _continue_from(self, chain: Chain, path: str) -> None:
        """Installs the state in ``chain``, and computes the lost updates from the counts in the file ``path``."""
        last = chain.last
        entries: Sequence[Sequence[Any]] = last.facts["cells"]
        self._incarnation = int(last.facts["life"])
        counts = unpack_cells(self._resources, entries, chain.arrays())
        self._slots = {key: slot for key, (slot, _) in counts.items()}
        saved = {f"{container}/{name}" if container else name: its for (container, name), its in counts.items()}
        self._note.text = base64.b64decode(last.facts["seal"])
        self._fulls = (0, chain.headers[0].number)
        self.loss = loss_of(saved, read_counts(path, self._incarnation), last.at)
        ago = time.time() - last.at
        _log.warning(
            "%s continues with its own state of %d variables, saved %.1f s ago: %s",
            self._task,
            len(entries),
            ago,
            self.loss,
        )

    def end(self) -> None:
        """Saves the final state; if the job is over, removes all saved states instead.

        Called when all connections are closed, so that no change after this save can be acknowledged.
        """
        self._note.on_change = None
        self._periodic.stop()
        if not self.job_over:
            self.save()
            return
        self._remove_all()
        with contextlib.suppress(OpError):
            files.remove(os.path.join(self.folder, _COUNTS))

    def _handle_seal_change(self) -> None:
        """Handles a change of the seal: saves soon after a chief has set the seal, and deletes the saved states after a
        chief has removed it to restore the model on all tasks."""
        if not self._note.text or self._note.together:
            with self._saving:
                # The saved states were made before the chief restores the checkpoint on all tasks. A ps that resumed
                # from one of them later would have values of another training than the rest of the cluster.
                state_files.remove(self.folder)
                self._last = None
        else:
            self._periodic.trigger()

    # Saving -----------------------------------------------------------------------------------------------------------

    def _snapshot(self, *, whole: bool) -> StateSnapshot | None:
        del whole
        with self._resources.lock:
            note, why = self._note.text, self._note.together
            if not note or why:
                if note and why != self._logged_reason:
                    self._logged_reason = why
                    _log.warning("%s saves no state of its own: %s", self._task, why)
                return None
            held: list[HeldCell] = []
            for key, cell in self._resources.cells().items():
                slot = self._slots.setdefault(key, len(self._slots))
                self._count_in_file(cell, slot)
                if cell.value is not None:
                    held.append(capture_cell(key, slot, cell))
            at = time.time()
        entries, arrays = pack_cells(held)
        facts = {"life": self._incarnation, "seal": base64.b64encode(note).decode(), "cells": entries}
        return StateSnapshot(at=at, signature="", facts=facts, arrays=arrays)

    def _count_in_file(self, cell: Cell, slot: int) -> None:
        """Makes the variable count its updates in the file of counts, which outlives the process. The caller holds the
        lock of the resources."""
        if self._counts is not None and slot < SLOTS and cell.counts is not self._counts.numbers:
            self._counts.numbers[slot] = cell.updates
            cell.counts, cell.slot = self._counts.numbers, slot

    # Status -----------------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        last, text = self._last, "no state saved yet"
        if last is not None:
            text = self._status_text("", last.at)
        return f"{text}; {self.loss}" if self.loss is not None else text

    def group(self) -> GroupProgress:
        """Returns the progress for the task's status snapshot."""
        lost = self.loss.max_lost_updates if self.loss is not None else 0
        return GroupProgress(name="variables", saved=str(self), saved_bytes=self.written_bytes, lost_updates=lost)


def _bytes(text: object) -> bytes:
    return text if isinstance(text, bytes) else str(text).encode()


def _sizes(strings: Array) -> list[int]:
    return [len(_bytes(text)) for text in strings.ravel()]


def _strings(data: Array, entries: Mapping[str, Json]) -> Array:
    """Decodes a variable of strings from its concatenated bytes, the size of each string, and its shape."""
    strings: list[bytes] = []
    at = 0
    for size in entries["sizes"]:
        strings.append(data[at : at + size].tobytes())
        at += size
    return to_string_array(strings).reshape(entries["shape"])


def saver_for(resources: Resources, task: TaskName, tasks: int) -> GraphSaver | None:
    """Creates the saver of a ``ps`` and restores the saved state; returns None if the environment names no folder.

    Raises:
      FailedPreconditionError: the folder holds states from a different number of ``ps``.
      OpError: the folder cannot be read or written.
    """
    saves = saves_of_environment()
    if saves is None:
        return None
    saver = GraphSaver(resources, saves, task, tasks)
    try:
        saver.restore()
    except (KeyError, TypeError, ValueError) as error:
        raise FailedPreconditionError(
            f"{saver.folder} does not contain the state of a graph's variables ({error}): name another folder"
        ) from error
    return saver
