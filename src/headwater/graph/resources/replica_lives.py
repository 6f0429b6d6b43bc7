"""Which sessions take part in synchronous training as it is now, and which belong to a life of it that is over.

A chief starts the training, perhaps from an older checkpoint, and perhaps again and again. Each start begins a *life*.
What a replica does in its session is of the life in which the session joined. When another life begins, the step of
that replica is void: its gradient is of variables that are gone, and the step that it waits for may never come. It has
to hear so at once, join again, and go on from what the chief has restored.

All here are pure functions of `Lives`; who keeps it also waits, wakes up and raises.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Lives:
    """What is known of the lives of one training.

    Attributes:
      life: the number of the present one: how many times a chief has started the training. 0 before the first time.
      began_at: the step that the present life began at.
      sessions: by handle of a session, the life that it joined.
    """

    life: int = 0
    began_at: int = 0
    sessions: Mapping[str, int] = field(default_factory=dict[str, int])

    def as_words(self) -> tuple[object, ...]:
        """What a frame's header can hold."""
        return self.life, self.began_at, dict(self.sessions)

    @classmethod
    def of_words(cls, words: Sequence[Any]) -> Lives:
        """What `as_words` has given."""
        life, began_at, sessions = words
        return cls(life=life, began_at=began_at, sessions=dict(sessions))


class Verdict(Enum):
    """What to do with a gradient."""

    TAKE = "take"
    STALE = "stale"
    """It is of an earlier step: drop it, and count it."""
    VOID = "void"
    """It is of another life: drop it, and tell its replica."""


@dataclass(frozen=True, slots=True)
class Start:
    """One start of a training whose replicas say with each gradient which start it is of.

    A gradient is on its way to several tasks while the chief starts the training on one after the other. So each task
    could count what another one has forgotten, if it went by when the gradient comes.

    Attributes:
      name: a random number, the same on all tasks; 0 before the first start that the task knows.
      first: whether it is the first of all: what was given before it counts, too.
    """

    name: int = 0
    first: bool = False

    def counts(self, name: int) -> bool:
        """Whether a gradient of the start of that name counts."""
        return name == self.name or (self.first and name == 0)


@dataclass(frozen=True, slots=True)
class Members:
    """What one accumulator knows of the sessions of its replicas since the training was started last.

    Attributes:
      known: those that have joined, also if they are over.
      givers: those that have given a gradient.
    """

    known: frozenset[str] = frozenset()
    givers: frozenset[str] = frozenset()

    def joined(self, session: str) -> Members:
        """The same, after ``session`` has joined."""
        return Members(self.known | {session}, self.givers)

    def gave(self, session: str) -> Members:
        """The same, after ``session`` has given a gradient."""
        return self if session in self.givers else Members(self.known, self.givers | {session})

    def encode(self) -> bytes:
        """As a text."""
        return json.dumps([sorted(self.known), sorted(self.givers)]).encode()

    @classmethod
    def decode(cls, text: bytes) -> Members:
        """What `encode` has made."""
        known, givers = json.loads(text)
        return cls(frozenset(known), frozenset(givers))


def has_forgotten(members: Iterable[Members]) -> bool:
    """Whether the task of one of these accumulators was started anew after replicas had given gradients.

    A replica joins everywhere before it gives anything. So one that has given a gradient, and is unknown to an
    accumulator while another one knows it, has given that one gradients that are lost.

    Args:
      members: of all accumulators of one training, asked for at about the same time.
    """
    members = list(members)
    givers = frozenset[str]().union(*(one.givers for one in members))
    somewhere = frozenset[str]().union(*(one.known for one in members))
    return any(givers & somewhere - one.known for one in members)


def joined(lives: Lives, session: str) -> Lives:
    """``session`` takes part from now on, whatever it took part in before."""
    return replace(lives, sessions={**lives.sessions, session: lives.life})


def is_first(lives: Lives, elsewhere: int) -> bool:
    """Whether the next start is the first of all.

    Args:
      elsewhere: how many times the training was started as far as all who keep lives know: one on a task that was lost
        and started anew knows of none.
    """
    return lives.life == 0 and elsewhere == 0


def started(lives: Lives, session: str, step: int, elsewhere: int, *, stranded: Iterable[str] = ()) -> Lives:
    """The chief starts the training at ``step``, in ``session``.

    Sessions that joined before the first start of all are in it, for nothing that they know is older than it. Before
    another one they are not, though nothing here is older: what they have given to another task is forgotten there.

    Args:
      elsewhere: see `is_first`.
      stranded: those that are at a step beyond ``step`` all the same: they are not in it.
    """
    life = lives.life + 1
    sessions = dict(lives.sessions)
    if is_first(lives, elsewhere):
        sessions = {its: life for its in sessions if its not in set(stranded)} | dict.fromkeys(stranded, 0)
    return Lives(life=life, began_at=step, sessions={**sessions, session: life})


def continued(lives: Lives, step: int) -> Lives:
    """The training starts once more at ``step``, and all who took part still do."""
    life = lives.life + 1
    return Lives(life=life, began_at=step, sessions=dict.fromkeys(lives.sessions, life))


def left(lives: Lives, session: str) -> Lives:
    """``session`` is over."""
    return replace(lives, sessions={its: life for its, life in lives.sessions.items() if its != session})


def is_void(lives: Lives, session: str) -> bool:
    """Whether ``session`` joined an earlier life. One that never joined is of the present one."""
    return lives.sessions.get(session, lives.life) != lives.life


def judged(lives: Lives, session: str, of_step: int, step: int) -> Verdict:
    """What to do with a gradient of the step ``of_step`` that comes in ``session``, when training is at ``step``."""
    if is_void(lives, session) or (lives.life and of_step > step):
        return Verdict.VOID
    return Verdict.STALE if of_step < step else Verdict.TAKE


def void_text(lives: Lives) -> str:
    """Why a replica's step is void, and what to do, in words."""
    return (
        f"the chief has started the training anew, at step {lives.began_at}: the step of this replica is void. Run "
        "`local_step_init_op` to take part again; a MonitoredTrainingSession and a Supervisor do so by themselves"
    )
