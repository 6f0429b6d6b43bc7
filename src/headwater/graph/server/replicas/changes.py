"""Replication of changes: the primary records changes and steps in progress, and sends them to the backup.

The frames of a feed (see `headwater.state.feed`); each header begins with the frame's number, not shown here::

    STATE        (generation)                            drop all contents; a snapshot follows
    COPY_PLAN    (session, plan, owner)                  a plan
    COPY_RELEASE (session)                               a session is over
    COPY_RESET   (containers)                            their variables lose their values, all sessions end
    REPEAT       (over, instruction)                     inputs of an instruction, which is run again
    REPLACE      (over, instruction or None, variables, kept)  values of variables, states of other resources, then
                                                               the outputs of the instruction
    PASSED       (session, step, transfer)               a transfer from another task to a step
    SEAL         (text, together, prepares)              the note of the training

An ``instruction`` is (session, plan, position in the plan, step, whether the step may resume). In REPEAT, two fields
follow: the inputs that are handles of resources, as (position, place), and whether the instruction completes without
waiting. In REPLACE, three fields follow: the failed operations, the error as (code, message) or None, and whether the
instruction committed its step. A variable is (container, name, updates). A resource in ``kept`` is (place, class,
words, number of tensors), with ``place`` as `headwater.graph.resources.kept.Key`. ``over`` are the steps, as (session,
step), that no master will ask for again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from headwater.cluster.task import kinds
from headwater.errors import OpError, make_error
from headwater.graph.resources.containers import Cell
from headwater.graph.resources.example_ledger import ExampleLedger
from headwater.graph.resources.keeping import kept_of
from headwater.graph.resources.kept import Kept, Key, ResourceState, StillWaitsError
from headwater.graph.resources.recording import InstructionPlace, KeptOperation, Outcome, RecordedStep
from headwater.graph.runtime.executor import CompiledPlan
from headwater.graph.runtime.step import Step
from headwater.graph.runtime.task import TaskRuntime
from headwater.graph.server.replicas.kept import Attempt, CopiedResources, Tried, with_handles, without_handles
from headwater.state.feed import Feed, Tensors

StepKey = tuple[str, int]
"""A step, as (session, number)."""


class Changes:
    """The recorder of a replica; see `headwater.graph.resources.recording.Recorder`.

    Args:
      runtime: the replica's runtime.
      resources: the runtime's resources.
      feed: returns the feed to the backup; None without a backup.
    """

    def __init__(self, runtime: TaskRuntime, resources: CopiedResources, feed: Callable[[], Feed | None]) -> None:
        self._runtime = runtime
        self._resources = resources
        self._feed = feed
        # The state of each resource that the backup has: the object, and its number of changes. The object is compared
        # as well, since a resource may be discarded and created again under its key.
        self._told: dict[Key, tuple[Kept, int]] = {}
        resources.recorder, resources.on_change = self, self.publish
        self._lock = threading.Lock()
        self._outcomes: dict[StepKey, dict[InstructionPlace, Outcome]] = {}
        self._passed: dict[StepKey, dict[int, Sequence[Any]]] = {}
        self._over: list[StepKey] = []
        self._keys: dict[int, tuple[str, str]] = {}
        self._count = 0

    # The recorder -----------------------------------------------------------------------------------------------------

    def known(self, step: RecordedStep, place: InstructionPlace) -> Outcome | None:
        """Returns the recorded outcome of an instruction of ``step``; None if none is recorded."""
        found = self._outcomes.get((step.session, step.number))
        return None if found is None else found.get(place)

    def changed(
        self,
        step: RecordedStep,
        place: InstructionPlace,
        inputs: Sequence[Any] | None,
        cells: Sequence[Cell],
        outcome: Outcome,
    ) -> None:
        """Records a change and sends it to the backup. The caller holds the lock of the resources."""
        self._count += 1
        self._record_outcome(step, place, outcome)
        feed = self.feed
        if feed is None:
            return
        compiled = self._runtime.find_plan(step.session, place.plan) if inputs is not None else None
        told = _told(step, place)
        if inputs is not None and compiled is not None:
            # No copy is needed: the inputs do not change until the step continues, and it waits for the backup first.
            sent = [np.asarray(value) for value in compiled.travelling(place.position, inputs)]
            # Inputs instead of results: the same executable computes the same bits from them, and gradients are two to
            # three times smaller than variables with an optimizer's slots.
            feed.send(kinds.REPEAT, (self._pop_ended_steps(), (*told, (), True)), sent)
        else:
            feed.send(*self._replaced((*told, *_ended(outcome)), cells, (), outcome.outputs))

    def _record_outcome(self, step: RecordedStep, place: InstructionPlace, outcome: Outcome) -> None:
        # A step that does not resume is never asked for again, so its outcomes need not be kept.
        if step.resumes:
            with self._lock:
                self._outcomes.setdefault((step.session, step.number), {})[place] = outcome

    # Resources other than variables -----------------------------------------------------------------------------------

    def carry_out(self, operation: KeptOperation, step: Step, inputs: Sequence[Any]) -> Sequence[Any]:
        known = self.known(step, operation.place)
        if known is None:
            known = self._carry_out(operation, step, inputs)
        else:
            if known.commits:
                step.commit()
            for ledger in self._resources.of_kind(ExampleLedger).values():
                ledger.resumed(step.session, step.number)
        if known.error is not None:
            raise known.error
        return known.outputs

    def _carry_out(self, operation: KeptOperation, step: Step, inputs: Sequence[Any]) -> Outcome:
        notes: dict[str, object] = {}
        error: OpError | None = None
        with self._resources.lock:
            while True:
                tried = Tried(self._resources, operation, Attempt(step, operation.place, notes, error), inputs)
                # This is a defect in the implementation of the operation: it may have changed a part of a
                # resource.
                if tried.failure is not None:
                    for key in tried.touched:  # so that the next change sends the full state to the backup
                        self._told.pop(key, None)
                    raise tried.failure
                self._send_changes(operation, step, inputs, tried)
                if tried.waits is None:
                    return tried.outcome
                # A backup must not wait: its thread applies all further changes. The primary sends another REPEAT after
                # its wait.
                if step.follows:
                    raise tried.waits
                try:
                    step.wait_until(tried.waits.condition, tried.waits.ready, tried.waits.what)
                except OpError as ended:
                    error = ended

    def _send_changes(self, operation: KeptOperation, step: Step, inputs: Sequence[Any], tried: Tried) -> None:
        """Records the changes of an operation and sends them. The caller holds the lock of the resources."""
        changed = {key: its for key, its in tried.touched.items() if self._told.get(key) != (its, its.changes)}
        through = tried.waits is None
        if not (changed or tried.cells or (operation.stable and through)):
            return
        # A handle refers to an object of this process, so it cannot be sent. A resumed step gets a handle by running
        # the operation again, which only looks the resource up.
        noted = through and not tried.gives_handles
        if noted:
            self._record_outcome(step, operation.place, tried.outcome)
        feed = self.feed
        if feed is None:
            return
        known = [self._told.get(key, (None, 0))[0] is its for key, its in changed.items()]
        # The backup can only repeat the operation if it has the previous state of all changed resources.
        repeats = any(its.repeats for its in changed.values()) and all(known) and not tried.cells
        compiled = self._runtime.find_plan(step.session, operation.place.plan)
        if repeats and compiled is not None:
            handles, sent = without_handles(self._resources, compiled.travelling(operation.place.position, inputs))
            told = *_told(step, operation.place), handles, through
            feed.send(kinds.REPEAT, (self._pop_ended_steps(), told), sent)
            self._told.update({key: (its, its.changes) for key, its in changed.items() if its.repeats})
            # Resources without repeatable changes are sent by value, which also corrects any difference on the backup.
            rest = {key: its for key, its in changed.items() if not its.repeats}
            if rest:
                feed.send(*self._replaced(None, (), rest.items(), ()))
            return
        instruction = (*_told(step, operation.place), *_ended(tried.outcome)) if noted else None
        feed.send(*self._replaced(instruction, tried.cells, changed.items(), tried.outcome.outputs if noted else ()))

    def publish(self) -> None:
        """Sends changes made outside of steps. The caller holds the lock of the resources."""
        feed = self.feed
        if feed is None:
            return
        kept = [(key, its) for key, its in kept_of(self._resources).items() if not its.repeats]
        changed = [(key, its) for key, its in kept if self._told.get(key) != (its, its.changes)]
        if changed:
            feed.send(*self._replaced(None, (), changed, ()))

    def ended(self, session: str, step: int) -> None:
        """Notes that no part of a step runs on this task any more."""
        ledgers = self._resources.of_kind(ExampleLedger)
        if ledgers:
            with self._resources.lock:
                had = [ledger.ended(session, step) for ledger in ledgers.values()]
                if any(had):
                    self.publish()

    @property
    def feed(self) -> Feed | None:
        """The feed to the backup; None if there is no backup now."""
        feed = self._feed()
        return None if feed is None or feed.broken.is_set() else feed

    def _pop_ended_steps(self) -> list[StepKey]:
        with self._lock:
            over, self._over = self._over, []
        return over

    def _replaced(
        self,
        instruction: tuple[object, ...] | None,
        cells: Sequence[Cell],
        kept: Collection[tuple[Key, Kept]],
        outputs: Sequence[object],
    ) -> tuple[int, Sequence[object], Tensors]:
        variables = [(*self._key_of(cell), cell.updates) for cell in cells]
        words: list[object] = []
        arrays: list[object] = []
        for key, its in kept:
            state = its.state()
            words.append((key, type(its).__name__, state.words, len(state.arrays)))
            arrays += state.arrays
            self._told[key] = its, its.changes
        values = [np.asarray(value) for value in (*(cell.value for cell in cells), *arrays, *outputs)]
        return kinds.REPLACE, (self._pop_ended_steps(), instruction, variables, words), values

    def _key_of(self, cell: Cell) -> tuple[str, str]:
        if id(cell) not in self._keys:
            self._keys = {id(its): key for key, its in self._runtime.resources.cells().items()}
        return self._keys[id(cell)]

    # Steps in progress ------------------------------------------------------------------------------------------------

    def send_empty_change(self) -> None:
        """Sends an empty change, to find out whether this replica is still the primary: a backup that was promoted
        meanwhile does not acknowledge the change. It may have newer state, so this replica must then not answer."""
        with self._resources.lock:
            feed = self.feed
            if feed is not None:
                feed.send(*self._replaced(None, (), (), ()))

    def accept_transfer(self, session: str, step: int, transfer: int, tensors: Sequence[Any]) -> None:
        """Accepts a transfer from another task to a step. Idempotent; ignored if the session has ended."""
        runtime = self._runtime
        with runtime.resources.lock:
            if not runtime.owner(session):
                # The session may be unknown only because this replica has been replaced as primary. Then the backup
                # does not confirm the empty change, and the caller does not acknowledge the transfer.
                self.send_empty_change()
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

    def committed(self) -> list[tuple[StepKey, int]]:
        """Returns the steps that have committed and may not have ended, each with the number of its plan."""
        with self._lock:
            return [
                (key, place.plan)
                for key, known in self._outcomes.items()
                for place, outcome in known.items()
                if outcome.commits
            ]

    def finished(self, session: str, step: int) -> None:
        """Forgets a step that no master will ask for again."""
        key = session, step
        with self._lock:
            known = [self._outcomes.pop(key, None), self._passed.pop(key, None)]
            if any(found is not None for found in known) and self.feed is not None:
                # Sent along with the next change: the backup only has to free memory, which is not worth a frame.
                self._over.append(key)

    def forget(self, session: str) -> None:
        """Forgets the steps of a session that has ended."""
        with self._lock:
            for known in (self._outcomes, self._passed):
                for key in [key for key in known if key[0] == session]:
                    del known[key]

    # Snapshots --------------------------------------------------------------------------------------------------------

    def all(self) -> list[tuple[int, Sequence[object], Tensors]]:
        """Returns a snapshot, as frames: resources, outcomes and transfers of steps. The caller holds the lock of the
        resources."""
        feed = self.feed
        if feed is not None:  # bring the present backup up to date first: `_told` is reset below
            changed = [
                (key, its) for key, its in kept_of(self._resources).items() if self._told.get(key) != (its, its.changes)
            ]
            if changed:
                feed.send(*self._replaced(None, (), changed, ()))
        self._told = {}
        with self._lock:
            outcomes = [(key, place, its) for key, known in self._outcomes.items() for place, its in known.items()]
            passed = [(key, transfer, its) for key, known in self._passed.items() for transfer, its in known.items()]
        cells = [cell for cell in self._runtime.resources.cells().values() if cell.value is not None]
        return [
            *(self._replaced(None, [cell], (), ()) for cell in cells),
            *(self._replaced(None, (), [kept], ()) for kept in kept_of(self._resources).items()),
            *(
                self._replaced((session, *place, step, True, *_ended(outcome)), (), (), outcome.outputs)
                for (session, step), place, outcome in outcomes
            ),
            *((kinds.PASSED, (*key, transfer), tensors) for key, transfer, tensors in passed),
        ]

    # Following --------------------------------------------------------------------------------------------------------

    def repeat(self, over: Sequence[Any], instruction: Sequence[Any], tensors: Sequence[Any]) -> None:
        """Runs an instruction that the primary has run.

        Raises:
          OpError: the instruction cannot be run here.
        """
        self._end_steps(over)
        session, plan, position, number, resumes, handles, through = instruction
        step = Step(number, session)
        step.resumes, step.follows = resumes, True
        before = self._count
        compiled: CompiledPlan = self._runtime.plan(session, plan)
        try:
            compiled.repeat(position, with_handles(self._resources, handles, tensors), step)
        except StillWaitsError:
            if through:
                raise
            # The operation waits on the primary as well, after it has made a first change.
        except Exception as error:
            # The primary sends only instructions that have changed something. An error after the same change leaves
            # both replicas equal. An error before the change means that this replica lacks the change.
            if not (isinstance(error, OpError) if compiled.keeps(position) else self._count > before):
                raise
            # The operation has failed on the primary as well, after it has made a first change.

    def replace(
        self,
        over: Sequence[Any],
        instruction: Sequence[Any] | None,
        variables: Sequence[Any],
        kept: Sequence[Any],
        tensors: Sequence[Any],
    ) -> None:
        """Installs the primary's values of variables and states of other resources, and records an instruction's
        outcome."""
        self._end_steps(over)
        resources = self._resources
        rest = iter(tensors)
        with resources.lock:
            for container, name, updates in variables:
                resources.cell(container, name).install(next(rest), updates)
            for key, called, words, count in kept:
                resources.install_state(Key(*key), called, ResourceState(words, [next(rest) for _ in range(count)]))
        if instruction is not None:
            session, plan, position, number, resumes, failed, error, commits = instruction
            step = Step(number, session)
            step.resumes = resumes
            ended = None if error is None else make_error(*error)
            outcome = Outcome(list(rest), dict.fromkeys(failed, True), ended, commits)
            self._record_outcome(step, InstructionPlace(plan, position), outcome)

    def _end_steps(self, over: Sequence[Any]) -> None:
        for session, step in over:
            self.finished(session, step)
            self._runtime.rendezvous.forget(session, step)


def _told(step: RecordedStep, place: InstructionPlace) -> tuple[object, ...]:
    return step.session, *place, step.number, step.resumes


def _ended(outcome: Outcome) -> tuple[object, ...]:
    """Encodes an outcome: the failed operations, the error, and whether the instruction committed its step."""
    error = outcome.error
    failed = [name for name, failed in outcome.faults.items() if failed]
    return failed, None if error is None else (error.error_code, error.message), outcome.commits
