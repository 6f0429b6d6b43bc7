"""Membership of sessions in synchronous training: in the present run of the training or in an earlier one.

A chief starts the training, perhaps several times, and perhaps from an older checkpoint. Runs are numbered; in the
code, this is `run_number`. Everything that a replica does in a session belongs to the run in which the session
joined. When another run starts, the replica's step is void: its gradient is for old variables, and the step that it
waits for may never start. The replica has to get an error at once, join again, and continue from the checkpoint that
the chief has restored.

All functions here are pure functions of `TrainingRuns`; the resources that hold it do the waiting, waking and raising.
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
      sessions: the run that each session joined, by handle.
    """

    run_number: int = 0
    began_at: int = 0
    sessions: Mapping[str, int] = field(default_factory=dict[str, int])

    def as_words(self) -> tuple[object, ...]:
        """Encodes it for a frame's header."""
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
    """One start of a training in which each gradient names its start.

    The chief starts the training on one task after the other, while gradients are being sent to several tasks. Without
    the name, one task could count a gradient that another one has dropped, depending on the time of arrival.

    Attributes:
      name: a random number, the same on all tasks; 0 before the first start known to the task.
      first: whether it is the first start of all: gradients given before it count, too.
    """

    name: int = 0
    first: bool = False

    def counts(self, name: int) -> bool:
        """Whether a gradient of the start ``name`` counts."""
        return name == self.name or (self.first and name == 0)


@dataclass(frozen=True, slots=True)
class Members:
    """The sessions known to one accumulator since the last start of the training.

    Attributes:
      known: sessions that have joined, including ended ones.
      givers: sessions that have given a gradient.
    """

    known: frozenset[str] = frozenset()
    givers: frozenset[str] = frozenset()

    def joined(self, session: str) -> Members:
        """Returns the members after ``session`` has joined."""
        return Members(self.known | {session}, self.givers)

    def gave(self, session: str) -> Members:
        """Returns the members after ``session`` has given a gradient."""
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
    """Whether the task of one of these accumulators has restarted after replicas had given gradients.

    A replica joins all accumulators before it gives a gradient. So if it has given one, and is known to one accumulator
    but unknown to another, the other accumulator has lost gradients.

    Args:
      members: members of all accumulators of one training, read at about the same time.
    """
    members = list(members)
    givers = frozenset[str]().union(*(one.givers for one in members))
    somewhere = frozenset[str]().union(*(one.known for one in members))
    return any(givers & somewhere - one.known for one in members)


def joined(runs: TrainingRuns, session: str) -> TrainingRuns:
    """Adds ``session`` to the present run, and removes it from an earlier one."""
    return replace(runs, sessions={**runs.sessions, session: runs.run_number})


def is_first(runs: TrainingRuns, elsewhere: int) -> bool:
    """Whether the next start is the first of all.

    Args:
      elsewhere: the largest number of starts known to any task; a restarted task does not know of earlier starts.
    """
    return runs.run_number == 0 and elsewhere == 0


def started(
    runs: TrainingRuns, session: str, step: int, elsewhere: int, *, stranded: Iterable[str] = ()
) -> TrainingRuns:
    """Starts a run at ``step``, in the chief's ``session``.

    Sessions that joined before the very first start are members of the run, since none of their state is older.
    Sessions that joined before a later start are not, even on a task without older state: other tasks have dropped
    their gradients.

    Args:
      elsewhere: see `is_first`.
      stranded: sessions at a step beyond ``step``, which are not members.
    """
    run_number = runs.run_number + 1
    sessions = dict(runs.sessions)
    if is_first(runs, elsewhere):
        sessions = {its: run_number for its in sessions if its not in set(stranded)} | dict.fromkeys(stranded, 0)
    return TrainingRuns(run_number=run_number, began_at=step, sessions={**sessions, session: run_number})


def continued(runs: TrainingRuns, step: int) -> TrainingRuns:
    """Starts a run at ``step`` with all present members."""
    run_number = runs.run_number + 1
    return TrainingRuns(run_number=run_number, began_at=step, sessions=dict.fromkeys(runs.sessions, run_number))


def left(runs: TrainingRuns, session: str) -> TrainingRuns:
    """Removes ``session``."""
    return replace(runs, sessions={its: run_number for its, run_number in runs.sessions.items() if its != session})


def is_void(runs: TrainingRuns, session: str) -> bool:
    """Whether ``session`` joined an earlier run. A session that never joined counts as a present member."""
    return runs.sessions.get(session, runs.run_number) != runs.run_number


def judged(runs: TrainingRuns, session: str, of_step: int, step: int) -> Verdict:
    """Decides on a gradient of the step ``of_step`` from ``session``, when training is at ``step``."""
    if is_void(runs, session) or (runs.run_number and of_step > step):
        return Verdict.VOID
    return Verdict.STALE if of_step < step else Verdict.TAKE


def void_text(runs: TrainingRuns) -> str:
    """Returns a message that says why a replica's step is void, and what to do."""
    return (
        f"the chief has started the training anew, at step {runs.began_at}: the step of this replica is void. Run "
        "`local_step_init_op` to take part again; a MonitoredTrainingSession and a Supervisor do so by themselves"
    )
