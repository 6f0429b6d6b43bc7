"""Claims of tasks to places in a cluster, and the decision between two claims to one place.

A task sends its claim with the first plan of a session that it registers with another task. Two tasks may claim the
same place: a restarted worker claims the place of its earlier incarnation, a worker that is left over from an earlier
cluster still has the addresses of the current parameter servers in its cluster spec, and a worker returns after a
network partition. Rules:

1. A task gets the place that it claims if the place is free, or if the holder is not connected and has not just claimed
   the place itself.
2. Of two live tasks, the task whose own cluster spec has the same address for the place as this cluster prevails. The
   other task belongs to another cluster.
3. Otherwise the task that was started later prevails, because the earlier one is a leftover process.

A refused task receives the reason, and its program ends. It cannot regain the place, with one exception: while a task
was disconnected, rule 1 may have given its place to a task that would have lost by rule 2. The first task then regains
the place with a new claim.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """A task's claim to its place.

    Attributes:
      task: full name of the place; empty for a client that is not a task.
      generation: the generation of the task's incarnation.
      started: the start time of that incarnation, in seconds since 1970; 0 if unknown.
      address: the task's address in its own cluster spec; empty if unknown.
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
    """The decision between two claims.

    Attributes:
      prevails: whether the newcomer gets the place.
      reason: the reason, in words.
      final: whether the losing task can never regain the place.
    """

    prevails: bool
    reason: str
    final: bool = True


def decide(holder: Claim | None, newcomer: Claim, *, connected: bool, address: str) -> Verdict:
    """Decides which task gets a place.

    Args:
      holder: the claim of the current holder; None for a free place.
      newcomer: the new claim.
      connected: whether the holder is still connected.
      address: the address of the place in this cluster; empty if the cluster does not have the place.
    """
    if holder is None:
        return Verdict(prevails=True, reason="the place was free")
    if holder.generation == newcomer.generation:  # tasks repeat their claims
        return Verdict(prevails=True, reason="it has the place")
    unrelated = address and holder.address and newcomer.address
    unrelated = unrelated and (holder.address == address) != (newcomer.address == address)
    if not connected:
        # If the disconnected holder has this cluster's address for the place, it may be behind a network partition and
        # return: the verdict is not final.
        final = not unrelated or newcomer.address == address
        return Verdict(prevails=True, reason=f"the connection to {holder} has ended", final=final)
    if unrelated:
        other = holder if newcomer.address == address else newcomer
        reason = f"{other} belongs to another cluster: in this cluster, {newcomer.task} is at {address}"
        return Verdict(prevails=other is holder, reason=reason)
    if holder.started and newcomer.started and newcomer.started < holder.started:
        return Verdict(prevails=False, reason=f"{holder} was started later, and is alive")
    return Verdict(prevails=True, reason=f"{newcomer} was started later than {holder}")


#: For how long after its claim a task counts as connected, in seconds: its first channel may not be open yet.
NEW_CLAIM_S = 10.0


class ClaimedPlaces:
    """The holders of places that one task knows.

    Args:
      clock: returns monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock or time.monotonic
        self._holders: dict[str, Claim] = {}
        self._claimed_at: dict[str, float] = {}
        self._refused: dict[tuple[str, int], str] = {}

    def claim(self, newcomer: Claim, *, connected: Callable[[Claim], bool], address: str = "") -> str:
        """Processes a claim, and gives the place to the newcomer if its claim prevails.

        Args:
          newcomer: the claim.
          connected: returns whether a holder is still connected.
          address: the address of the place in this cluster; empty if the cluster does not have the place, or to
            decide without addresses.

        Returns:
          Why ``newcomer`` is refused; empty if it has the place.
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
                self.assign(newcomer)
        return self._refused.get(key, "")

    def assign(self, newcomer: Claim) -> None:
        """Assigns a place to a claim that is known to prevail."""
        self._holders[newcomer.task] = newcomer
        self._claimed_at[newcomer.task] = self._clock()

    def refusal(self, task: Claim, *, connected: Callable[[Claim], bool], address: str = "") -> str:
        """Returns why a claim would be refused, without processing the claim; empty if the claimant has the place, or
        would get it.

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
            live = self._clock() - self._claimed_at[newcomer.task] < NEW_CLAIM_S or connected(holder)
        return holder, decide(holder, newcomer, connected=live, address=address)

    def holds_place(self, generation: int) -> bool:
        """Returns whether a task of this generation has a place."""
        return any(holder.generation == generation for holder in self._holders.values())
