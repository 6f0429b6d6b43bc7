"""A drained ``ps`` of graphs deposits its state with the chief, and the next incarnation of the ``ps`` restores the
state.

The deposited state (`headwater.cluster.task.deposited_states`) is a JSON document, followed by arrays. It contains:

- the variables, in the format of saved states (`headwater.graph.server.own_state`), and the seal of the training;
- the task's other resources (`headwater.graph.resources.replicable_kinds`);
- the state of its conversations with masters: its generation, the masters' sessions with their plans, answers that may
  not have arrived, waiting steps with their intermediate values, and transfers that no step has taken.

The next incarnation keeps the generation. So to other tasks the restart looks like a temporary loss of connections: by
the protocol of `headwater.graph.master.protocol`, a step resumes where it was, and is applied once on every ``ps``.

Some resources (iterators, readers) cannot be serialised and are empty after a restart, and masters have to notice the
loss. So a task with such resources deposits only its variables and its seal, and its next incarnation has a new
generation. Because of the new generation, masters create their sessions again. The chief finds the seals and restores
no checkpoint, as with saved states. If there is no seal, or if all ``ps`` have to restore together, a task with such
resources deposits nothing.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from headwater.cluster.addresses import parse_address
from headwater.cluster.claims import Claim
from headwater.cluster.config import chief_of
from headwater.cluster.names import TaskName
from headwater.cluster.spec import ClusterSpec
from headwater.cluster.task.deposited_states import StateAtChief
from headwater.cluster.task.links import WaitingLink
from headwater.cluster.task.shell import Predecessor, TaskShell
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.handshake import PeerIdentity, new_generation
from headwater.cluster.transport.links import LinkSettings
from headwater.data.io.state_files import Array
from headwater.errors import OpError
from headwater.graph.passes.plan import decode_plan, encode_plan
from headwater.graph.resources.containers import is_of_session, session_container
from headwater.graph.resources.replicable import Key, ResourceState, is_handle
from headwater.graph.resources.replicable_kinds import (
    ensure_replicable,
    find_replicable,
    handle_of,
    is_replicable,
    replicable_resources,
)
from headwater.graph.resources.training_note import Note, training_note_of
from headwater.graph.runtime.step import Stopped
from headwater.graph.runtime.task import TaskRuntime
from headwater.graph.server.own_state import FOLDER, capture_cell, pack_cells, unpack_cells
from headwater.graph.server.served_step import DepositedStep, ResumePoint
from headwater.graph.server.steps import StepService

_log = logging.getLogger("headwater")

#: Limit for running steps to end in a drain, in seconds.
_DRAIN_TIMEOUT_S: Final = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class DepositedState:
    """The state that a ``ps`` has deposited with the chief.

    Attributes:
      predecessor: the previous incarnation, whose generation the task keeps; None if the task gets a new generation.
      facts: the part of the state that JSON can express.
      arrays: the arrays of the state, in the order in which ``facts`` mentions them.
    """

    predecessor: Predecessor | None
    facts: Mapping[str, Any]
    arrays: Sequence[Any]

    @staticmethod
    def of(tensors: Sequence[Any]) -> DepositedState:
        """Parses the arrays that `encode_state` returned."""
        text, *arrays = tensors
        facts = json.loads(text.tobytes())
        predecessor = None
        if facts["generation"]:
            predecessor = Predecessor(generation=facts["generation"], connected_before=frozenset(facts["connected"]))
        return DepositedState(predecessor=predecessor, facts=facts, arrays=arrays)

    def restore(self, runtime: TaskRuntime, steps: StepService) -> None:
        """Restores the state of the previous incarnation in a task that does not serve yet.

        Args:
          runtime: gets the variables, the seal, the sessions with their plans, other resources, and transfers that no
            step has taken.
          steps: gets the steps that ended without a confirmed answer, and the suspended steps, which it resumes.
        """
        facts, rest = self.facts, iter(self.arrays)
        entries = facts["cells"]
        unpack_cells(runtime.resources, entries, [next(rest) for _ in entries])
        note = training_note_of(runtime.resources)
        note.change(base64.b64decode(facts["seal"]), facts["together"], prepares=facts["prepares"])
        for session, claim, numbers in facts["sessions"]:
            for number in numbers:
                plan = decode_plan(next(rest).tobytes())
                runtime.add_plan(session, number, plan, Claim(**claim), prevails=True)
        with runtime.resources.lock:
            for key, called, words, count in facts["kept"]:
                state = ResourceState(words, [next(rest) for _ in range(count)])
                ensure_replicable(runtime.resources, Key(*key), called, state)[0].install_state(state)
        known = [self._step(entries, runtime, rest) for entries in facts["steps"]]
        for session, step, transfer, count in facts["transfers"]:
            runtime.rendezvous.put(session, step, transfer, [next(rest) for _ in range(count)])
        steps.restore(known)

    @staticmethod
    def _step(entries: Sequence[Any], runtime: TaskRuntime, rest: Iterator[Any]) -> DepositedStep:
        """Decodes a step from its entry ``entries`` in the facts and from its arrays, the next ones in ``rest``."""
        session, number, received, dropped, frames, resume_point = entries
        unconfirmed = [Frame(kind, header, [next(rest) for _ in range(count)]) for kind, header, count in frames]
        if resume_point is None:
            return DepositedStep(session, number, received, dropped, unconfirmed, None)
        plan, position, seconds, arrays, handles, stash = resume_point
        slots = runtime.plan(session, plan).slots()
        for at in arrays:
            slots[at] = next(rest)
        for at, *key in handles:
            slots[at] = handle_of(find_replicable(runtime.resources, Key(*key)))
        waiting = {transfer: [next(rest) for _ in range(count)] for transfer, count in stash}
        return DepositedStep(
            session,
            number,
            received,
            dropped,
            unconfirmed,
            ResumePoint(plan, Stopped(position, slots), waiting, seconds),
        )


def _unsupported_kinds(runtime: TaskRuntime) -> set[type]:
    """Returns the classes of the task's resources that cannot be deposited."""
    return {kind for kind in runtime.resources.kinds() - {Note} if not is_replicable(kind)}


def encode_state(runtime: TaskRuntime, steps: StepService, generation: int, connected: Collection[str]) -> list[Any]:
    """Freezes the task's state and encodes it as arrays. The task acknowledges no change after this call.

    Args:
      runtime: the task's state and plans.
      steps: the task's steps; `StepService.suspend` was called before.
      generation: the generation of this incarnation.
      connected: names of the tasks that have connected to this incarnation.

    Returns:
      The arrays that `DepositedState.of` parses: the facts as JSON in an array of uint8, then the arrays that they
      mention.
    """
    # Freeze before reading anything: the result lacks every change that is made later, so such a change must not be
    # acknowledged.
    known, is_all = steps.freeze(), not _unsupported_kinds(runtime)
    with runtime.resources.lock:
        cells = runtime.resources.cells().items()
        held = [capture_cell(key, 0, cell) for key, cell in cells if cell.value is not None]
    entries, packed = pack_cells(held)
    arrays: list[Any] = [array for _, array in packed]
    note = training_note_of(runtime.resources)
    sessions = runtime.sessions() if is_all else {}
    facts: dict[str, Any] = {
        "cells": entries,
        "seal": base64.b64encode(note.text).decode(),
        "together": note.together,
        "prepares": note.prepares,
        "generation": generation if is_all else 0,
        "connected": sorted(connected),
        "sessions": [],
        "kept": [],
        "steps": [],
        "transfers": [],
    }
    for session, (owner, plans) in sessions.items():
        facts["sessions"].append([session, dataclasses.asdict(owner), list(plans)])
        arrays += [_array(encode_plan(plan)) for plan in plans.values()]
    theirs = {session_container(session) for session in sessions}
    resources = {
        key: its
        for key, its in replicable_resources(runtime.resources).items()
        if is_all and _is_deposited(key, theirs)
    }
    with runtime.resources.lock:
        for key, its in resources.items():
            words, values = its.state()
            facts["kept"].append([key, type(its).__name__, words, len(values)])
            arrays += values
    places = {id(its): key for key, its in resources.items()}
    for step in known:
        if step.session in sessions:
            frames = [[frame.kind, list(frame.header), len(frame.tensors)] for frame in step.frames]
            arrays += [tensor for frame in step.frames for tensor in frame.tensors]
            resume_point, values = (
                (None, [])
                if step.resume_point is None
                else _encode_resume_point(step.resume_point, runtime, step.session, places)
            )
            arrays += values
            facts["steps"].append([step.session, step.number, list(step.received), step.dropped, frames, resume_point])
    for key, tensors in runtime.rendezvous.waiting().items():
        if key[0] in sessions:
            facts["transfers"].append([*key, len(tensors)])
            arrays += tensors
    return [_array(json.dumps(facts).encode()), *arrays]


def _is_deposited(key: Key, theirs: Collection[str]) -> bool:
    """Returns whether the resource at ``key`` is deposited; ``theirs`` are the containers of the deposited sessions."""
    return key.container in theirs or not is_of_session(key.container)


def _encode_resume_point(
    resume_point: ResumePoint, runtime: TaskRuntime, session: str, places: Mapping[int, Key]
) -> tuple[list[Any], list[Any]]:
    """Encodes the point at which a step resumes, for `DepositedState.restore`.

    Args:
      resume_point: the point in the plan, with the step's intermediate values.
      runtime: has the plan.
      session: the step's session.
      places: maps the ``id`` of each deposited resource to its key, so that handles can be encoded.

    Returns:
      Values for JSON, and arrays.
    """
    position, slots = resume_point.stopped
    # The next incarnation compiles the same plan, so the plan's initial slots need not be stored: only values that
    # differ from these are encoded.
    before = runtime.plan(session, resume_point.plan).slots()
    filled = [(at, value) for at, value in enumerate(slots) if value is not None and value is not before[at]]
    handles = [[at, *places[id(value.item())]] for at, value in filled if is_handle(value)]
    arrays = [(at, np.asarray(value)) for at, value in filled if not is_handle(value)]
    stash = [[transfer, len(tensors)] for transfer, tensors in resume_point.stash.items()]
    entries = [resume_point.plan, position, resume_point.seconds, [at for at, _ in arrays], handles, stash]
    return entries, [
        *(value for _, value in arrays),
        *(one for tensors in resume_point.stash.values() for one in tensors),
    ]


def _array(data: bytes) -> Array:
    return np.frombuffer(data, np.uint8)


def fetch(cluster: ClusterSpec, task: TaskName, *, inside_grpc: bool) -> DepositedState | None:
    """Fetches the state that the previous incarnation of a ``ps`` has deposited with the chief; None if there is none.

    Args:
      task: the ``ps``.
      inside_grpc: keep tensors inside gRPC.
    """
    chief = chief_of(cluster)
    if chief.job not in cluster.jobs:
        return None
    # The shell does not exist yet: it takes its generation from the state fetched here.
    link_settings = LinkSettings(me=PeerIdentity(task=str(task), generation=new_generation()), inside_grpc=inside_grpc)
    link = WaitingLink(link_settings, chief, parse_address(cluster.task_address(chief.job, chief.index)))
    try:
        fetched = StateAtChief(FOLDER, task.index, str(chief), link).fetch()
        if fetched is None:
            return None
        # Acknowledge before use, so that the chief drops the state. Otherwise this incarnation could acknowledge
        # updates, and a later incarnation could fetch the same old state and lose those updates.
        fetched.discard_at_chief()
    except OpError as error:
        _log.info("%s cannot fetch its deposited state from %s: %s", task, chief, error.message)
        return None
    finally:
        link.close()
    state = DepositedState.of(fetched.tensors)
    count = len(state.facts["cells"])
    _log.warning("%s continues with its state of %d variables, which was deposited with %s", task, count, chief)
    return state


class StateDeposit:
    """Deposits all state of a ``ps`` with the chief when the ``ps`` drains.

    Args:
      shell: the task.
      runtime: the task's state and plans.
      steps: the steps that the task serves.
    """

    def __init__(self, shell: TaskShell, runtime: TaskRuntime, steps: StepService) -> None:
        self._shell = shell
        self._runtime = runtime
        self._steps = steps

    def deposit_state(self) -> None:
        """Suspends the task's steps and deposits the state with the chief.

        The state is lost, and a warning is logged, in two cases: the chief does not answer; or the state would be
        unusable, because it lacks resources or parts of an update that cannot be deposited. Does nothing if no variable
        has a value.
        """
        shell, chief = self._shell, self._shell.chief
        if all(cell.value is None for cell in self._runtime.resources.cells().values()):
            return
        why = self._deposit_obstacle()
        if why:
            _log.warning("%s ends without depositing its state with %s: %s", shell.me, chief, why)
            return
        storage = StateAtChief(FOLDER, shell.me.index, str(chief), shell.link(chief))
        try:
            storage.require_chief()  # check the chief first: without it, suspending the steps would only delay the end
            on = self._steps.suspend(_DRAIN_TIMEOUT_S)
            for step in on:
                _log.warning("%s ends during step %d of session %s", shell.me, step.number, step.session)
            together = training_note_of(self._runtime.resources).together
            # Asynchronous training tolerates a step that is applied on some tasks only. Other training does not,
            # because the variables on all tasks must belong to the same step (`Note.together` has the reason).
            if together and (on or self._steps.is_inconsistent):
                what = "%s deposits no state with %s: a step has changed only a part of its variables; and %s"
                _log.warning(what, shell.me, chief, together)
                return
            storage.deposit(
                (), encode_state(self._runtime, self._steps, shell.identity.generation, shell.ever_connected)
            )
        except OpError as error:
            _log.warning(
                "%s could not deposit its state with %s, so the state is lost: %s", shell.me, chief, error.message
            )
        else:
            count = sum(cell.value is not None for cell in self._runtime.resources.cells().values())
            _log.warning(
                "%s has deposited its state of %d variables with %s for its next incarnation", shell.me, count, chief
            )

    def _deposit_obstacle(self) -> str:
        """Returns the reason not to deposit anything: the task has resources that cannot be deposited, and either the
        model has no seal or all ``ps`` have to restore together. Returns an empty string if there is no such reason."""
        more = _unsupported_kinds(self._runtime)
        if not more:
            return ""
        note = training_note_of(self._runtime.resources)
        if note.text:
            return note.together
        names = ", ".join(sorted(kind.__name__ for kind in more))
        return f"no chief has sealed its model, and it has resources that cannot be deposited ({names})"
