"""Who does which step of an epoch. Pure; the first ``ps`` keeps it for all.

Steps are handed out one by one, so that an epoch has as many as the program says, however many workers there are and
whenever they come and go. Where updates take a gradient of several workers, a step is a round: all get the same one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headwater.ps.protocol import EPOCH_OVER, TRAINING_OVER, UNKNOWN_STEPS


@dataclass(kw_only=True, slots=True)
class Tickets:
    """The steps of the present epoch.

    Attributes:
      in_rounds: whether a step is a round of all workers, rather than one worker's.
      epoch: the present one, from 0; -1 before the first.
      given: steps handed out, where a step is one worker's.
      base: the version of the values at which the epoch began.
      steps: how many the epoch has; `UNKNOWN_STEPS` until somebody says.
      longest: for how many steps of it some worker had data.
      ends: how many those of another worker were enough for; None while none has told of an end.
      stopped: whether training is over before its time.
      asked: by worker, in which epoch it is.
      at_work: by worker, which step it is in the middle of.
    """

    in_rounds: bool
    epoch: int = -1
    given: int = 0
    base: int = 0
    steps: int = UNKNOWN_STEPS
    longest: int = 0
    ends: int | None = None
    stopped: bool = False
    asked: dict[str, int] = field(default_factory=dict[str, int])
    at_work: dict[str, int] = field(default_factory=dict[str, int])

    def step(self, version: int) -> int:
        """The number of the next step."""
        return version - self.base if self.in_rounds else self.given

    def take(self, worker: str, epoch: int, steps: int, version: int) -> int:
        """The step that ``worker`` is to do next.

        Args:
          worker: who asks; whatever it was at work on is done.
          epoch: the epoch it is in. The first to ask for a later one begins that.
          steps: how many steps that has, or `UNKNOWN_STEPS`.
          version: of the values.

        Returns:
          The step's number, `EPOCH_OVER` or `TRAINING_OVER`.
        """
        self.at_work.pop(worker, None)
        if self.stopped:
            return TRAINING_OVER
        self.reach(epoch, steps, version)
        step = self.step(version)
        if epoch < self.epoch or (self.steps != UNKNOWN_STEPS and step >= self.steps):
            return EPOCH_OVER
        self.given += 1
        self.at_work[worker] = step
        return step

    def reach(self, epoch: int, steps: int, version: int) -> None:
        """Begins ``epoch``, unless it or a later one has begun."""
        if epoch > self.epoch:
            self.epoch, self.given, self.base, self.steps = epoch, 0, version, steps
            self.longest, self.ends = 0, None

    def exhausted(self, epoch: int, step: int) -> None:
        """There are no data for ``step`` of ``epoch``: that many steps it has."""
        if epoch == self.epoch and (self.steps == UNKNOWN_STEPS or step < self.steps):
            self.steps = self.ends = step

    @property
    def uneven(self) -> bool:
        """Whether the data of one worker have ended before those of another."""
        return self.ends is not None and self.longest > self.ends

    def busy_in(self, epoch: int, *, but: str) -> list[str]:
        """The workers other than ``but`` that are in the midst of a step of ``epoch``."""
        return sorted(other for other in self.at_work if other != but and self.asked.get(other) == epoch)

    def ended(self, worker: str) -> None:
        """A worker has given what came of its step."""
        self.longest = max(self.longest, self.at_work.pop(worker, -1) + 1)

    def left(self, worker: str) -> None:
        """A worker does not go on."""
        self.at_work.pop(worker, None)
        self.asked.pop(worker, None)

    def may_begin(self, epoch: int) -> bool:
        """Whether all workers are in the epoch before ``epoch``, or further."""
        return self.stopped or all(other >= epoch - 1 for other in self.asked.values())

    def has_begun(self, worker: str, epoch: int) -> bool:
        """Whether ``worker`` is in ``epoch`` or further, or does not take part."""
        return self.stopped or self.asked.get(worker, epoch) >= epoch

    def begin_training(self) -> None:
        """All workers have finished: the next to ask begins a training of its own, with epochs from wherever."""
        self.epoch, self.steps, self.stopped = -1, UNKNOWN_STEPS, False
