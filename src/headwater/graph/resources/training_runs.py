"""Membership of sessions in synchronous training: a session is a member of the run of the training in which it joined.

A chief may start the training several times, perhaps from an older checkpoint. Each start begins a *run*, and runs are
numbered (`run_number`). The actions of a session belong to the run in which it joined. When another run starts, the
present step of the session's replica is void: its gradient was computed from old variables, and the step for which it
waits may never start. So the replica gets an error immediately, joins again, and continues from the checkpoint that the
chief has restored.

All functions here are pure functions of `TrainingRuns`. Accumulators and barriers have a `TrainingRuns` each, and wait,
wake steps and raise errors according to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingRuns:
    """The runs of one training.

    Attributes:
      run_number: number of the present run: how many times a chief has started the training; 0 before the first start.
      began_at: the first step of the present run.
      sessions: maps the handle of each session to the run in which it joined.
    """

    run_number: int = 0
    began_at: int = 0
    sessions: Mapping[str, int] = field(default_factory=dict[str, int])

    def as_words(self) -> tuple[object, ...]:
        """Encodes the runs for a frame's header."""
        return self.run_number, self.began_at, dict(self.sessions)

    @classmethod
    def of_words(cls, words: Sequence[Any]) -> TrainingRuns:
        """Decodes the result of `as_words`."""
        run_number, began_at, sessions = words
        return cls(run_number=run_number, began_at=began_at, sessions=dict(sessions))


class Verdict(Enum):
    """The treatment of a gradient."""

    TAKE = "take"
    STALE = "stale"
    """The gradient is of an earlier step: drop it, and count it."""
    VOID = "void"
    """The gradient is of another run: drop it, and raise an error in its replica."""


@dataclass(frozen=True, slots=True)
class Start:
    """One start of the training. Each gradient names the start to which it belongs.

    The chief starts the training on one task after the other, while replicas send gradients to all of them. So one task
    may receive a gradient before its start, and another task the same gradient after its start. If the time of arrival
    decided whether a gradient counts, the second task would count the gradient and the first would drop it.

    Attributes:
      name: a random number, the same on all tasks; 0 before the first start known to the task.
      first: whether this start is the very first: gradients given before the first start count, too.
    """

    name: int = 0
    first: bool = False

    def counts(self, name: int) -> bool:
        """Returns whether a gradient of the start ``name`` counts."""
        return name == self.name or (self.first and name == 0)


@dataclass(frozen=True, slots=True)
class Members:
    """The sessions known to one accumulator since the last start of the training.

    Attributes:
      known: sessions that have joined, including ended ones.
      givers: sessions that have contributed a gradient.
    """

    known: frozenset[str] = frozenset()
    givers: frozenset[str] = frozenset()

    def with_session(self, session: str) -> Members:
        """Returns the members after ``session`` has joined."""
        return Members(self.known | {session}, self.givers)

    def with_gradient(self, session: str) -> Members:
        """Returns the members after ``session`` has contributed a gradient."""
        return self if session in self.givers else Members(self.known, self.givers | {session})

    def encode(self) -> bytes:
        """Encodes the members as text."""
        return json.dumps([sorted(self.known), sorted(self.givers)]).encode()

    @classmethod
    def decode(cls, text: bytes) -> Members:
        """Decodes the result of `encode`."""
        known, givers = json.loads(text)
        return cls(frozenset(known), frozenset(givers))


def has_forgotten(members: Iterable[Members]) -> bool:
    """Returns whether the task of one of these accumulators has restarted, and so lost contributed gradients.

    A replica joins all accumulators before it contributes a gradient. So if a replica has contributed a gradient, and
    some accumulator has no record of the replica, that accumulator has lost its state.

    Args:
      members: members of all accumulators of one training, read at about the same time.
    """
    members = list(members)
    givers = frozenset[str]().union(*(one.givers for one in members))
    somewhere = frozenset[str]().union(*(one.known for one in members))
    return any(givers & somewhere - one.known for one in members)


def with_session(runs: TrainingRuns, session: str) -> TrainingRuns:
    """Adds ``session`` to the present run, and removes it from an earlier one."""
    return replace(runs, sessions={**runs.sessions, session: runs.run_number})


def is_first(runs: TrainingRuns, elsewhere: int) -> bool:
    """Returns whether the next start is the very first one.

    Args:
      elsewhere: the largest number of starts known to any task; a restarted task does not know of earlier starts.
    """
    return runs.run_number == 0 and elsewhere == 0


def start_run(
    runs: TrainingRuns, session: str, step: int, elsewhere: int, *, stranded: Iterable[str] = ()
) -> TrainingRuns:
    """Starts a run at ``step``, in the chief's ``session``.

    Sessions that joined before the very first start become members of its run, since no older state exists. Sessions
    that joined before a later start do not, because other tasks have dropped their gradients. This also holds on a
    restarted task, which has not seen the earlier starts: ``elsewhere`` shows that there were some.

    Args:
      elsewhere: see `is_first`.
      stranded: sessions that wait for a step beyond ``step``; they do not become members.
    """
    run_number = runs.run_number + 1
    sessions = dict(runs.sessions)
    if is_first(runs, elsewhere):
        # Make stranded sessions members of run 0, so that they get an error: after a start, run 0 is never the present
        # run.
        sessions = {its: run_number for its in sessions if its not in set(stranded)} | dict.fromkeys(stranded, 0)
    return TrainingRuns(run_number=run_number, began_at=step, sessions={**sessions, session: run_number})


def continue_run(runs: TrainingRuns, step: int) -> TrainingRuns:
    """Starts a run at ``step`` with all present members."""
    run_number = runs.run_number + 1
    return TrainingRuns(run_number=run_number, began_at=step, sessions=dict.fromkeys(runs.sessions, run_number))


def without_session(runs: TrainingRuns, session: str) -> TrainingRuns:
    """Removes ``session``."""
    return replace(runs, sessions={its: run_number for its, run_number in runs.sessions.items() if its != session})


def is_void(runs: TrainingRuns, session: str) -> bool:
    """Returns whether ``session`` joined an earlier run. A session that never joined counts as a present member."""
    # A restarted task does not know the sessions that joined before its restart. It recognises old gradients by the
    # names of their starts instead.
    return runs.sessions.get(session, runs.run_number) != runs.run_number


def verdict_on(runs: TrainingRuns, session: str, of_step: int, step: int) -> Verdict:
    """Decides whether a gradient from ``session`` counts.

    Args:
      runs: the runs of the training.
      session: the session of the replica.
      of_step: the step at which the replica read the variables.
      step: the present step of the training.
    """
    if is_void(runs, session) or (runs.run_number and of_step > step):
        return Verdict.VOID
    return Verdict.STALE if of_step < step else Verdict.TAKE


def void_text(runs: TrainingRuns) -> str:
    """Returns a message with the reason why a replica's step is void, and the remedy."""
    return (
        f"the chief has restarted the training at step {runs.began_at}: the step of this replica is void. Run "
        "`local_step_init_op` to take part again; a MonitoredTrainingSession and a Supervisor do so by themselves"
    )
