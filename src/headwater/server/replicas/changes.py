"""What a copy of a task notes of changes and of steps in progress, and sends to the other copy.

The frames of a feed (see `headwater.replicas.feed`), after the number of each::

    STATE        (generation)                            what there is begins anew, empty; then all there is follows
    COPY_PLAN    (session, plan, owner)                  a plan
    COPY_RELEASE (session)                               a session is over
    COPY_RESET   (containers)                            their variables have no values any more, sessions are over
    REPEAT       (over, instruction)                     what an instruction was given: it is carried out again
    REPLACE      (over, instruction or None, variables)  values of variables, then what the instruction has given
    PASSED       (session, step, transfer)               what another task has sent to a step
    SEAL         (text, together)                        the note of the training

An ``instruction`` is (session, plan, position in the plan, step, whether that may resume, its operations that failed);
a variable (container, name, updates); ``over`` are the steps, as (session, step), that no master asks for again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headwater.replicas.feed import Feed, Tensors
from headwater.resources.containers import Cell
from headwater.resources.recording import Outcome, Place, RecordedStep
from headwater.runtime.executor import CompiledPlan
from headwater.runtime.step import Step
from headwater.runtime.task import TaskRuntime
from headwater.task import kinds

Key = tuple[str, int]
"""A step: its session and number."""


class Changes:
    """The recorder of a copy; see `headwater.resources.recording.Recorder`.

    Args:
      runtime: the copy's.
      feed: gives the feed of the other copy; None where there is none.
    """

    def __init__(self, runtime: TaskRuntime, feed: Callable[[], Feed | None]) -> None:
        self._runtime = runtime
        self._feed = feed
        self._lock = threading.Lock()
        self._outcomes: dict[Key, dict[Place, Outcome]] = {}
        self._passed: dict[Key, dict[int, Sequence[Any]]] = {}
        self._over: list[Key] = []
        self._keys: dict[int, tuple[str, str]] = {}
        self._count = 0

    # The recorder -----------------------------------------------------------------------------------------------------

    def known(self, step: RecordedStep, place: Place) -> Outcome | None:
        """What has come of an instruction of ``step`` already; None where it is yet to be carried out."""
        found = self._outcomes.get((step.session, step.number))
        return None if found is None else found.get(place)

    def changed(
        self, step: RecordedStep, place: Place, inputs: Sequence[Any] | None, cells: Sequence[Cell], outcome: Outcome
    ) -> None:
        """Notes a change, and sends it. The lock of the resources is held."""
        self._count += 1
        if step.resumes:
            with self._lock:
                self._outcomes.setdefault((step.session, step.number), {})[place] = outcome
        feed = self.feed
        if feed is None:
            return
        compiled = self._runtime.find_plan(step.session, place.plan) if inputs is not None else None
        told = (step.session, *place, step.number, step.resumes)
        if inputs is not None and compiled is not None:
            # They stay as they are until the step goes on, which it does when the other copy has them.
            sent = [np.asarray(value) for value in compiled.travelling(place.position, inputs)]
            feed.send(kinds.REPEAT, (self._take_over(), (*told, ())), sent)
        else:
            feed.send(*self._replaced((*told, _failed(outcome)), cells, outcome.outputs))

    @property
    def feed(self) -> Feed | None:
        """The feed of the other copy; None where there is none now."""
        feed = self._feed()
        return None if feed is None or feed.broken.is_set() else feed

    def _take_over(self) -> list[Key]:
        with self._lock:
            over, self._over = self._over, []
        return over

    def _replaced(
        self, instruction: tuple[object, ...] | None, cells: Sequence[Cell], outputs: Sequence[object]
    ) -> tuple[int, Sequence[object], Tensors]:
        variables = [(*self._key_of(cell), cell.updates) for cell in cells]
        values = [np.asarray(value) for value in (*(cell.value for cell in cells), *outputs)]
        return kinds.REPLACE, (self._take_over(), instruction, variables), values

    def _key_of(self, cell: Cell) -> tuple[str, str]:
        if id(cell) not in self._keys:
            self._keys = {id(its): key for key, its in self._runtime.resources.cells().items()}
        return self._keys[id(cell)]

    # Steps in progress ------------------------------------------------------------------------------------------------

    def passed(self, session: str, step: int, transfer: int, tensors: Sequence[Any]) -> None:
        """Takes what another task has sent to a step, once; where the session is not over."""
        runtime = self._runtime
        with runtime.resources.lock:
            if not runtime.owner(session):
                return
            with self._lock:
                known = self._passed.setdefault((session, step), {})
                if transfer in known:
                    return
                known[transfer] = tensors
            runtime.rendezvous.put(session, step, transfer, tensors)
            feed = self.feed
            if feed is not None:
                feed.send(kinds.PASSED, (session, step, transfer), tensors)

    def finished(self, session: str, step: int) -> None:
        """No master asks for a step again."""
        key = session, step
        with self._lock:
            known = [self._outcomes.pop(key, None), self._passed.pop(key, None)]
            if any(found is not None for found in known) and self.feed is not None:
                self._over.append(key)

    def forget(self, session: str) -> None:
        """A session is over."""
        with self._lock:
            for known in (self._outcomes, self._passed):
                for key in [key for key in known if key[0] == session]:
                    del known[key]

    # All there is -----------------------------------------------------------------------------------------------------

    def all(self) -> list[tuple[int, Sequence[object], Tensors]]:
        """Frames that bring another copy what the variables are, and what is known of steps. The lock of the resources
        is held."""
        with self._lock:
            self._over = []
            outcomes = [(key, place, its) for key, known in self._outcomes.items() for place, its in known.items()]
            passed = [(key, transfer, its) for key, known in self._passed.items() for transfer, its in known.items()]
        cells = [cell for cell in self._runtime.resources.cells().values() if cell.value is not None]
        return [
            *(self._replaced(None, [cell], ()) for cell in cells),
            *(
                self._replaced((session, *place, step, True, _failed(outcome)), (), outcome.outputs)
                for (session, step), place, outcome in outcomes
            ),
            *((kinds.PASSED, (*key, transfer), tensors) for key, transfer, tensors in passed),
        ]

    # Following --------------------------------------------------------------------------------------------------------

    def repeat(self, over: Sequence[Any], instruction: Sequence[Any], tensors: Sequence[Any]) -> None:
        """Carries out an instruction, as the other copy has.

        Raises:
          OpError: it cannot be carried out here.
        """
        self._end_steps(over)
        session, plan, position, number, resumes, _ = instruction
        step = Step(number, session)
        step.resumes = resumes
        before = self._count
        compiled: CompiledPlan = self._runtime.plan(session, plan)
        try:
            compiled.repeat(position, tensors, step)
        except Exception:
            if self._count == before:
                raise
            # It has failed there, too, after the variables had changed.

    def replace(
        self, over: Sequence[Any], instruction: Sequence[Any] | None, variables: Sequence[Any], tensors: Sequence[Any]
    ) -> None:
        """Gives variables values, and notes what has come of an instruction."""
        self._end_steps(over)
        resources = self._runtime.resources
        with resources.lock:
            for (container, name, updates), value in zip(variables, tensors, strict=False):
                value.flags.writeable = False  # a program that fetches it gets a copy
                cell = resources.cell(container, name)
                cell.value = value
                cell.counts[cell.slot] = updates
        if instruction is not None:
            session, plan, position, number, resumes, failed = instruction
            if resumes:
                outcome = Outcome(tensors[len(variables) :], dict.fromkeys(failed, True))
                with self._lock:
                    self._outcomes.setdefault((session, number), {})[Place(plan, position)] = outcome

    def _end_steps(self, over: Sequence[Any]) -> None:
        for session, step in over:
            self.finished(session, step)
            self._runtime.rendezvous.forget(session, step)


def _failed(outcome: Outcome) -> list[str]:
    return [name for name, failed in outcome.faults.items() if failed]
