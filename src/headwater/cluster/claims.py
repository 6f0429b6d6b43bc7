"""Two claims to one place in a cluster, and who has it.

A task shows its claim with the first plan of a session that it gives to another task. A life of a worker that was
started anew claims the place of its former life. A worker that an earlier cluster has left behind claims a place, too,
for its address book still names the parameter servers of the present one; so does the far side of a network that was
parted. The rule:

1. A free place, or one whose holder has no connection any more and has not asked for it just now, goes to the task
   that asks.
2. Of two that live, one whose own address book puts it where the cluster has that place prevails over one whose does
   not: that one is of another cluster.
3. Else the one that was started later prevails: the other one was left behind.

The one that does not prevail hears why, and its program ends. It does not get the place back, with one exception: a
task that has lost its place by rule 1 while its connections were lost, and would have kept it by rule 2, has it back
when it asks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """A task's claim to its place.

    Attributes:
      task: full name of the place; empty for a client that is no task.
      generation: of the task's life.
      started: when that began, in seconds since 1970; 0 where it does not say.
      address: where the task's own cluster spec has it; empty where it does not say.
    """

    task: str = ""
    generation: int = 0
    started: float = 0.0
    address: str = ""

    def __str__(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.started)) if self.started else "unknown"
        where = self.address or "an unknown address"
        return f"generation {self.generation:x} of {self.task} (at {where}, started {since})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """Who has the place.

    Attributes:
      prevails: whether it is the newcomer.
      reason: why, in words.
      final: whether the other one never gets the place back.
    """

    prevails: bool
    reason: str
    final: bool = True


def decide(holder: Claim | None, newcomer: Claim, *, connected: bool, address: str) -> Verdict:
    """Who has a place from now on.

    Args:
      holder: the task that has had it; None: no task.
      newcomer: who asks for it.
      connected: whether the holder is still connected.
      address: where the cluster has the place; empty where it does not have it.
    """
    if holder is None:
        return Verdict(prevails=True, reason="the place was free")
    if holder.generation == newcomer.generation:
        return Verdict(prevails=True, reason="it has the place")
    strangers = address and holder.address and newcomer.address
    strangers = strangers and (holder.address == address) != (newcomer.address == address)
    if not connected:
        final = not strangers or newcomer.address == address
        return Verdict(prevails=True, reason=f"the connection to {holder} has ended", final=final)
    if strangers:
        other = holder if newcomer.address == address else newcomer
        reason = f"{other} is of another cluster: this one has {newcomer.task} at {address}"
        return Verdict(prevails=other is holder, reason=reason)
    if holder.started and newcomer.started and newcomer.started < holder.started:
        return Verdict(prevails=False, reason=f"{holder} was started later, and lives")
    return Verdict(prevails=True, reason=f"{newcomer} was started later than {holder}")


#: So long after its claim a task counts as connected, in seconds: its first channel may be yet to come.
FRESH_S = 10.0


class ClaimedPlaces:
    """Who has which place, as one task sees it.

    Args:
      clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock or time.monotonic
        self._holders: dict[str, Claim] = {}
        self._claimed_at: dict[str, float] = {}
        self._refused: dict[tuple[str, int], str] = {}

    def claim(self, newcomer: Claim, *, connected: Callable[[Claim], bool], address: str = "") -> str:
        """Gives a place to a claim that prevails.

        Args:
          newcomer: who asks for it.
          connected: whether a holder is still connected.
          address: where the cluster has the place; empty where it does not have it, or that does not matter.

        Returns:
          Why ``newcomer`` does not have the place; empty where it has.
        """
        key = newcomer.task, newcomer.generation
        if key not in self._refused:
            holder, verdict = self._decide(newcomer, connected, address)
            if not verdict.prevails:
                self._refused[key] = verdict.reason
            else:
                if holder is not None and holder.generation != newcomer.generation and verdict.final:
                    reason = f"it was replaced by {newcomer}: {verdict.reason}"
                    self._refused[holder.task, holder.generation] = reason
                self.give(newcomer)
        return self._refused.get(key, "")

    def give(self, newcomer: Claim) -> None:
        """Gives a place to a claim that is known to prevail."""
        self._holders[newcomer.task] = newcomer
        self._claimed_at[newcomer.task] = self._clock()

    def refusal(self, task: Claim, *, connected: Callable[[Claim], bool], address: str = "") -> str:
        """Why a task does not speak for its place; empty where it does, or where it would have the place if it asked.

        Args:
          task, connected, address: see `claim`.
        """
        _, verdict = self._decide(task, connected, address)
        return self._refused.get((task.task, task.generation), "" if verdict.prevails else verdict.reason)

    def _decide(
        self, newcomer: Claim, connected: Callable[[Claim], bool], address: str
    ) -> tuple[Claim | None, Verdict]:
        holder, live = self._holders.get(newcomer.task), False
        if holder is not None:
            live = self._clock() - self._claimed_at[newcomer.task] < FRESH_S or connected(holder)
        return holder, decide(holder, newcomer, connected=live, address=address)

    def has_given(self, generation: int) -> bool:
        """Whether a task of this generation has a place."""
        return any(holder.generation == generation for holder in self._holders.values())
