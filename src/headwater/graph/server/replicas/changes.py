"""Replication of changes: the primary records changes and steps in progress, and sends them to the backup.

The frames of a feed (see `headwater.state.feed`); each header begins with the frame's number, not shown here::

    STATE        (generation)                            discard all contents; a snapshot follows
    COPY_PLAN    (session, plan, owner)                  a plan
    COPY_RELEASE (session)                               a session is over
    COPY_RESET   (containers)                            their variables lose their values, all sessions end
    REPEAT       (over, instruction)                     inputs of an instruction, which the backup runs, too
    REPLACE      (over, instruction or None, variables, resources)  values of variables, states of resources, then the
                                                         outputs of the instruction
    PASSED       (session, step, transfer)               a transfer from another task to a step
    SEAL         (text, together, prepares)              the note of the training

An ``instruction`` is (session, plan, position in the plan, step, whether the step may resume). In REPEAT, two fields
follow: the inputs that are handles of resources, as (position, place), and whether the instruction completes without
waiting. In REPLACE, three fields follow: the failed operations, the error as (code, message) or None, and whether the
instruction committed its step. A variable is (container, name, updates). A resource in ``resources`` is (place, class,
words, number of tensors), with ``place`` as `headwater.graph.resources.replicable.Key`. ``over`` lists the steps, as
(session, step), that no master will resume: the backup forgets their outcomes.
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
from headwater.graph.resources.recording import InstructionPlace, Outcome, ResourceOperation
from headwater.graph.resources.replicable import Key, ReplicableResource, ResourceState, StillWaitsError
from headwater.graph.resources.replicable_kinds import replicable_resources
from headwater.graph.runtime.executor import CompiledPlan
from headwater.graph.runtime.step import Step
from headwater.graph.runtime.task import TaskRuntime
from headwater.graph.server.replicas.resources import Attempt, CopiedResources, TryResult, with_handles, without_handles
from headwater.state.feed import Feed, Tensors

StepKey = tuple[str, int]
"""A step, as (session, number)."""


class Changes:
    """The recorder of a replica: records changes of variables, and runs operations on other resources.

    Args:
      runtime: the replica's runtime.
      resources: the runtime's resources.
      feed: returns the feed to the backup; None without a backup.
    """

    def __init__(self, runtime: TaskRuntime, resources: CopiedResources, feed: Callable[[], Feed | None]) -> None:
        self._runtime = runtime
        self._resources = resources
        self._feed = feed
        # For each resource on the backup: the object here, and how many of its changes the backup has. The object is
        # compared as well, since a resource may be discarded and created again under the same key.
        self._sent_changes: dict[Key, tuple[ReplicableResource, int]] = {}
        resources.recorder, resources.on_change = self, self.publish
        self._lock = threading.Lock()
        self._outcomes: dict[StepKey, dict[InstructionPlace, Outcome]] = {}
        self._passed: dict[StepKey, dict[int, Sequence[Any]]] = {}
        self._over: list[StepKey] = []
        self._keys: dict[int, tuple[str, str]] = {}
        self._count = 0

    # The recorder -----------------------------------------------------------------------------------------------------

    def find_outcome(self, step: Step, place: InstructionPlace) -> Outcome | None:
        """Returns the recorded outcome of an instruction of ``step``; None if none is recorded."""
        outcomes = self._outcomes.get((step.session, step.number))
        return None if outcomes is None else outcomes.get(place)

    def record_change(
        self,
        step: Step,
        place: InstructionPlace,
        inputs: Sequence[Any] | None,
        cells: Sequence[Cell],
        outcome: Outcome,
    ) -> None:
        """Records a change and sends it to the backup. The caller holds the lock of the resources.

        Args:
          step: the step that has made the change.
          place: the instruction of the step.
          inputs: the instruction's inputs, from which the backup repeats it; None to send the changed values instead.
          cells: the changed variables.
          outcome: the instruction's outcome.
        """
        self._count += 1
        self._record_outcome(step, place, outcome)
        feed = self.feed
        if feed is None:
            return
        compiled = self._runtime.find_plan(step.session, place.plan) if inputs is not None else None
        words = _place_words(step, place)
        if inputs is not None and compiled is not None:
            # No copy is needed: only the step could change the inputs, and it does not continue until the backup has
            # confirmed.
            sent = [np.asarray(value) for value in compiled.inputs_for_backup(place.position, inputs)]
            # Inputs are sent instead of results because gradients are two to three times smaller than the variables
            # with the optimizer's slots. The backup runs the same executable, so its results are bitwise equal.
            feed.send(kinds.REPEAT, (self._pop_ended_steps(), (*words, (), True)), sent)
        else:
            feed.send(*self._replace_frame((*words, *_encode_outcome(outcome)), cells, (), outcome.outputs))

    def _record_outcome(self, step: Step, place: InstructionPlace, outcome: Outcome) -> None:
        # Only a resumed step looks its outcomes up, so outcomes of other steps need not be kept.
        if step.resumes:
            with self._lock:
                self._outcomes.setdefault((step.session, step.number), {})[place] = outcome

    # Resources other than variables -----------------------------------------------------------------------------------

    def run_operation(self, operation: ResourceOperation, step: Step, inputs: Sequence[Any]) -> Sequence[Any]:
        """Runs an operation on resources other than variables, and replicates its changes. In a resumed step, returns
        the recorded outcome of the operation, if there is one.

        Raises:
          OpError: the operation has failed, or its recorded outcome is an error.
        """
        known = self.find_outcome(step, operation.place)
        if known is None:
            known = self._try_operation(operation, step, inputs)
        else:
            if known.commits:
                step.commit()
            for ledger in self._resources.of_kind(ExampleLedger).values():
                ledger.mark_resumed(step.session, step.number)
        if known.error is not None:
            raise known.error
        return known.outputs

    def _try_operation(self, operation: ResourceOperation, step: Step, inputs: Sequence[Any]) -> Outcome:
        notes: dict[str, object] = {}
        error: OpError | None = None
        with self._resources.lock:
            while True:
                tried = TryResult(self._resources, operation, Attempt(step, operation.place, notes, error), inputs)
                # An exception other than OpError is a defect of the operation, which may have changed a part of a
                # resource. Mark these resources as unknown to the backup, so that the next change sends their full
                # state.
                if tried.failure is not None:
                    for key in tried.touched:
                        self._sent_changes.pop(key, None)
                    raise tried.failure
                self._send_changes(operation, step, inputs, tried)
                if tried.waits is None:
                    return tried.outcome
                # A backup must not wait: the same thread applies all later changes. The primary sends another REPEAT
                # for this operation when its own wait has ended.
                if step.follows:
                    raise tried.waits
                try:
                    step.wait_until(tried.waits.condition, tried.waits.ready, tried.waits.what)
                except OpError as ended:
                    error = ended

    def _send_changes(self, operation: ResourceOperation, step: Step, inputs: Sequence[Any], tried: TryResult) -> None:
        """Records the changes of an operation and sends them. The caller holds the lock of the resources."""
        changed = {key: its for key, its in tried.touched.items() if self._sent_changes.get(key) != (its, its.changes)}
        through = tried.waits is None
        if not (changed or tried.cells or (operation.stable and through)):
            return
        # A handle refers to an object of this process, so an outcome with a handle cannot be sent or recorded. A
        # resumed step gets the handle by running the operation again, which then only looks the resource up.
        noted = through and not tried.returns_handles
        if noted:
            self._record_outcome(step, operation.place, tried.outcome)
        feed = self.feed
        if feed is None:
            return
        known = [self._sent_changes.get(key, (None, 0))[0] is its for key, its in changed.items()]
        # The backup can repeat the operation only if it has the state of all changed resources before the change.
        repeats = any(its.repeats for its in changed.values()) and all(known) and not tried.cells
        compiled = self._runtime.find_plan(step.session, operation.place.plan)
        if repeats and compiled is not None:
            handles, sent = without_handles(
                self._resources, compiled.inputs_for_backup(operation.place.position, inputs)
            )
            words = *_place_words(step, operation.place), handles, through
            feed.send(kinds.REPEAT, (self._pop_ended_steps(), words), sent)
            self._sent_changes.update({key: (its, its.changes) for key, its in changed.items() if its.repeats})
            # Resources without repeatable changes are sent by value, which also corrects any difference on the backup.
            rest = {key: its for key, its in changed.items() if not its.repeats}
            if rest:
                feed.send(*self._replace_frame(None, (), rest.items(), ()))
            return
        instruction = (*_place_words(step, operation.place), *_encode_outcome(tried.outcome)) if noted else None
        feed.send(
            *self._replace_frame(instruction, tried.cells, changed.items(), tried.outcome.outputs if noted else ())
        )

    def publish(self) -> None:
        """Sends changes made outside of steps. The caller holds the lock of the resources."""
        feed = self.feed
        if feed is None:
            return
        resources = [(key, its) for key, its in replicable_resources(self._resources).items() if not its.repeats]
        changed = [(key, its) for key, its in resources if self._sent_changes.get(key) != (its, its.changes)]
        if changed:
            feed.send(*self._replace_frame(None, (), changed, ()))

    def end_step(self, session: str, step: int) -> None:
        """Handles the end of a step's execution on this task: releases the ranges of examples that the step has
        reserved in the ledgers, and sends this change to the backup."""
        ledgers = self._resources.of_kind(ExampleLedger)
        if ledgers:
            with self._resources.lock:
                had = [ledger.end_step(session, step) for ledger in ledgers.values()]
                if any(had):
                    self.publish()

    @property
    def feed(self) -> Feed | None:
        """The feed to the backup; None if there is no backup now."""
        feed = self._feed()
        return None if feed is None or feed.ended.is_set() else feed

    def _pop_ended_steps(self) -> list[StepKey]:
        """Returns the steps that no master will resume and that the backup still remembers, and clears the
        list."""
        with self._lock:
            over, self._over = self._over, []
        return over

    def _replace_frame(
        self,
        instruction: tuple[object, ...] | None,
        cells: Sequence[Cell],
        resources: Collection[tuple[Key, ReplicableResource]],
        outputs: Sequence[object],
    ) -> tuple[int, Sequence[object], Tensors]:
        """Builds a REPLACE frame, and notes that the backup will have these states of ``resources``.

        Args:
          instruction: the encoded instruction and outcome to record; None to record none.
          cells: the changed variables.
          resources: the changed resources other than variables.
          outputs: the instruction's outputs.
        """
        variables = [(*self._key_of(cell), cell.updates) for cell in cells]
        words: list[object] = []
        arrays: list[object] = []
        for key, its in resources:
            state = its.state()
            words.append((key, type(its).__name__, state.words, len(state.arrays)))
            arrays += state.arrays
            self._sent_changes[key] = its, its.changes
        values = [np.asarray(value) for value in (*(cell.value for cell in cells), *arrays, *outputs)]
        return kinds.REPLACE, (self._pop_ended_steps(), instruction, variables, words), values

    def _key_of(self, cell: Cell) -> tuple[str, str]:
        if id(cell) not in self._keys:
            self._keys = {id(its): key for key, its in self._runtime.resources.cells().items()}
        return self._keys[id(cell)]

    # Steps in progress ------------------------------------------------------------------------------------------------

    def send_empty_change(self) -> None:
        """Sends the backup an empty change, whose acknowledgement shows that this replica is still the primary.

        A backup that was promoted meanwhile does not acknowledge the change. The promoted backup may have newer state
        than this replica, so without an acknowledgement the caller must not answer the master.
        """
        with self._resources.lock:
            feed = self.feed
            if feed is not None:
                feed.send(*self._replace_frame(None, (), (), ()))

    def accept_transfer(self, session: str, step: int, transfer: int, tensors: Sequence[Any]) -> None:
        """Accepts a transfer from another task to a step, and sends it to the backup. Idempotent; ignores the transfer
        if the session has ended.

        Args:
          session, step: identify the step.
          transfer: the number of the transfer within the step.
          tensors: its values.
        """
        runtime = self._runtime
        with runtime.resources.lock:
            if not runtime.owner(session):
                # The session is unknown here, usually because it has ended. But it is also possible that another
                # replica became the primary before the session was created. In that case the other replica does not
                # confirm the empty change, so the caller does not acknowledge the transfer.
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

    def committed_steps(self) -> list[tuple[StepKey, int]]:
        """Returns the steps that have committed (their update is decided) but may not have ended, each with the number
        of its plan."""
        with self._lock:
            return [
                (key, place.plan)
                for key, known in self._outcomes.items()
                for place, outcome in known.items()
                if outcome.commits
            ]

    def forget_step(self, session: str, step: int) -> None:
        """Forgets the outcomes and transfers of a step whose master has the answer; the backup forgets them with the
        next change."""
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

    def snapshot_frames(self) -> list[tuple[int, Sequence[object], Tensors]]:
        """Returns a snapshot, as frames: resources, outcomes and transfers of steps. The caller holds the lock of the
        resources."""
        feed = self.feed
        if feed is not None:  # bring the present backup up to date first: `_sent_changes` is reset below
            changed = [
                (key, its)
                for key, its in replicable_resources(self._resources).items()
                if self._sent_changes.get(key) != (its, its.changes)
            ]
            if changed:
                feed.send(*self._replace_frame(None, (), changed, ()))
        self._sent_changes = {}
        with self._lock:
            outcomes = [(key, place, its) for key, known in self._outcomes.items() for place, its in known.items()]
            passed = [(key, transfer, its) for key, known in self._passed.items() for transfer, its in known.items()]
        cells = [cell for cell in self._runtime.resources.cells().values() if cell.value is not None]
        return [
            *(self._replace_frame(None, [cell], (), ()) for cell in cells),
            *(self._replace_frame(None, (), [entry], ()) for entry in replicable_resources(self._resources).items()),
            *(
                self._replace_frame((session, *place, step, True, *_encode_outcome(outcome)), (), (), outcome.outputs)
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
            # The operation has made its first change and now waits, as it did on the primary. So both replicas are
            # equal.
        except Exception as error:
            # The primary sends only instructions that have changed something. If the error occurred after that change,
            # as it did on the primary, both replicas are equal. If it occurred before the change, this replica lacks
            # the change and must report the error.
            if not (isinstance(error, OpError) if compiled.uses_resources(position) else self._count > before):
                raise
            # The operation has failed on the primary as well, after the same change.

    def replace(
        self,
        over: Sequence[Any],
        instruction: Sequence[Any] | None,
        variables: Sequence[Any],
        states: Sequence[Any],
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
            for key, called, words, count in states:
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
            self.forget_step(session, step)
            self._runtime.rendezvous.forget(session, step)


def _place_words(step: Step, place: InstructionPlace) -> tuple[object, ...]:
    return step.session, *place, step.number, step.resumes


def _encode_outcome(outcome: Outcome) -> tuple[object, ...]:
    """Encodes an outcome: the failed operations, the error, and whether the instruction committed its step."""
    error = outcome.error
    failed = [name for name, failed in outcome.faults.items() if failed]
    return failed, None if error is None else (error.error_code, error.message), outcome.commits
