"""Reverts fixes of earlier defects, to verify that histories detect each of these defects.

Each function restores the defect that its docstring describes.

``python -m tests.simulation.run graphs:40 --without "notice of void steps"``
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import headwater.cluster.claims
import headwater.cluster.task.shell
import headwater.cluster.transport.lifeline
import headwater.graph.resources.example_ledger
import headwater.graph.resources.training_runs
import headwater.graph.runtime.first_reads
import headwater.graph.runtime.step
import headwater.graph.server.replicas.changes
import headwater.graph.server.replicas.copy
import headwater.graph.server.steps
import headwater.ps.accounting.ledger
import headwater.ps.consistency
import headwater.ps.conversation
import headwater.ps.host_state
import headwater.ps.membership
import headwater.ps.replicas.shard
import headwater.ps.replicas.tables
import headwater.ps.row_changes
import headwater.ps.service
import headwater.state.feed
import headwater.tf1.training.monitored_wrappers
import headwater.tf1.training.session_manager
from headwater.cluster.claims import Verdict
from headwater.tf1.training.supervised_session import LOST
from tests.simulation.scheduler import running


def _replace(owner: object, name: str, value: object) -> None:
    assert hasattr(owner, name), f"{owner} has no attribute {name}"
    setattr(owner, name, value)


def _ignore_void_steps() -> None:
    """Defect: a worker does not learn that its step is void after the chief has restored an older step."""
    runs: Any = headwater.graph.resources.training_runs
    _replace(runs, "is_void", lambda *_: False)


def _forget_retries() -> None:
    """Defect: a ``ps`` does not recognize a push that is retried on another channel."""
    workers: Any = headwater.ps.membership.Membership
    request = workers.request

    def forgets(self: Any, connection: Any, number: int) -> Any:
        self._updates.latest.pop(connection.worker, None)
        return request(self, connection, number)

    _replace(workers, "request", forgets)


def _omit_answers_from_states() -> None:
    """Defect: the saved state of a ``ps`` does not record the pushes that it includes."""
    state: Any = headwater.ps.host_state.HostState
    pack = state.pack

    def without_pushes(self: Any) -> Any:
        facts, arrays = pack(self)
        return {**facts, "answered": {}}, arrays

    _replace(state, "pack", without_pushes)


def _always_restore_checkpoints() -> None:
    """Defect: a restarted chief always restores a checkpoint, even if all parameter servers have their state."""
    manager: Any = headwater.tf1.training.session_manager
    _replace(manager, "always_restores", lambda: True)


def _accept_last_claim() -> None:
    """Defect: of two tasks that claim the same place, the last one gets it."""
    claims: Any = headwater.cluster.claims
    _replace(claims, "decide", lambda *_, **__: Verdict(prevails=True, reason="it came last"))


def _retry_after_deadlines() -> None:
    """Defect: a task that misses its deadline is treated as a lost task, so that others wait for it again."""
    session: Any = headwater.tf1.training.monitored_wrappers.RecoverableSession

    def created(self: Any, final: Any = ()) -> Any:
        del final
        while True:
            try:
                return self._create()
            except LOST:
                running().sleep(1.0)

    _replace(session, "_created", created)


def _lose_tasks_by_late_heartbeats() -> None:
    """Defect: a single late heartbeat makes a task lost."""
    detector: Any = headwater.cluster.transport.lifeline.FailureDetector
    init = detector.__init__

    def impatient(self: Any, silence_s: float, *others: Any) -> None:
        del silence_s
        init(self, 1.0, *others)

    _replace(detector, "__init__", impatient)


def _skip_query_for_ended_workers() -> None:
    """Defect: a restarted ``ps`` does not ask the other ``ps`` whether a worker's program has ended."""
    service: Any = headwater.ps.service.ParameterService
    _replace(service, "fetch_ended_workers", lambda *_: None)


def _drop_list_of_ended_tasks() -> None:
    """Defect: a launcher does not pass the list of ended workers to a task."""
    shell: Any = headwater.cluster.task.shell
    _replace(shell, "ended_tasks", lambda _: frozenset[Any]())


def _wait_after_lost_gradients() -> None:
    """Defect: a worker keeps waiting for a round after a ``ps`` has lost its gradients in a restart."""
    conversation: Any = headwater.ps.conversation.Conversation
    lost = conversation.reconnect

    def forgets(self: Any, index: int, error: Any) -> None:
        late = self._late
        lost(self, index, error)
        self._late = late

    _replace(conversation, "reconnect", forgets)


def _accept_outdated_values() -> None:
    """Defect: a ``ps`` accepts gradients of prefetched values that other workers have changed since."""
    reads: Any = headwater.graph.runtime.first_reads.FirstReads
    _replace(reads, "is_current", lambda *_: True)


def _ignore_recorded_outcomes() -> None:
    """Defect: a promoted replica does not know the results of the previous primary in a step in progress."""
    changes: Any = headwater.graph.server.replicas.changes.Changes
    _replace(changes, "find_outcome", lambda *_: None)


def _skip_confirmation_of_steps() -> None:
    """Defect: a primary answers before the backup has confirmed the answer's effects."""
    copy: Any = headwater.graph.server.replicas.copy.GraphCopy
    _replace(copy, "secure", lambda *_: None)


def _skip_confirmation_of_updates() -> None:
    """Defect: a primary of parameters answers before the backup has confirmed the answer's effects."""
    copy: Any = headwater.ps.replicas.shard.ShardCopy
    _replace(copy, "_await_backup", lambda *_: None)


def _skip_confirmation_of_tables() -> None:
    """Defect: a primary of tables answers before the backup has confirmed the answer's effects."""
    copy: Any = headwater.ps.replicas.tables.TablesCopy
    _replace(copy, "secure", lambda *_: None)


def _mix_rows_of_several_moments() -> None:
    """Defect: a row that changes during a snapshot is sent with the change, which the log then applies again."""
    changes: Any = headwater.ps.row_changes.RowChanges
    _replace(changes, "will_change", lambda *_: None)


def _forget_held_ranges() -> None:
    """Defect: a ledger of examples that takes over from another one does not know the ranges that workers hold."""
    ledger: Any = headwater.ps.accounting.ledger.Ledger
    _replace(ledger, "_restore_assignments", lambda *_: None)


def _never_end_incomplete_rounds() -> None:
    """Defect: at the end of the data, an update still waits for the full number of gradients."""
    ledger: Any = headwater.graph.resources.example_ledger.ExampleLedger
    _replace(ledger, "_is_starved", lambda _: False)


def _update_before_start() -> None:
    """Defect: an update of a few workers' gradients is made before the chief has started the training."""
    consistency: Any = headwater.ps.consistency
    _replace(consistency, "_waits_for_start", lambda _: False)


def _skip_changes_to_third_replica() -> None:
    """Defect: a replica that will replace the backup does not receive changes during its snapshot."""
    feed: Any = headwater.state.feed.Feed
    _replace(feed, "send", feed._send)


def _save_during_steps() -> None:
    """Defect: a ``ps`` of a graph saves its state for a drain while steps are in progress."""
    steps: Any = headwater.graph.server.steps.StepService
    _replace(steps, "suspend", lambda *_: ())


def _drop_committed_steps() -> None:
    """Defect: a task that has committed to its part of an update drops it when the session ends."""
    step: Any = headwater.graph.runtime.step.Step
    _replace(step, "commit", lambda _: None)


DEFECTS: dict[str, Callable[[], None]] = {
    "notice of void steps": _ignore_void_steps,
    "recognition of retries": _forget_retries,
    "answers in saved states": _omit_answers_from_states,
    "reuse of existing state": _always_restore_checkpoints,
    "comparison of claims": _accept_last_claim,
    "final deadlines": _retry_after_deadlines,
    "evidence of loss": _lose_tasks_by_late_heartbeats,
    "query for ended workers": _skip_query_for_ended_workers,
    "list of ended tasks": _drop_list_of_ended_tasks,
    "detection of lost gradients": _wait_after_lost_gradients,
    "check of read values": _accept_outdated_values,
    "recorded outcomes": _ignore_recorded_outcomes,
    "confirmation of steps": _skip_confirmation_of_steps,
    "confirmation of updates": _skip_confirmation_of_updates,
    "confirmation of tables": _skip_confirmation_of_tables,
    "rows of one moment": _mix_rows_of_several_moments,
    "transfer of held ranges": _forget_held_ranges,
    "last rounds of few gradients": _never_end_incomplete_rounds,
    "suspension of steps": _save_during_steps,
    "commitment of steps": _drop_committed_steps,
    "start before updates": _update_before_start,
    "changes to the third replica": _skip_changes_to_third_replica,
}
