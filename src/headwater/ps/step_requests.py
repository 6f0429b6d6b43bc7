"""Requests of a worker to the first ``ps`` for its next step, or for examples; see `headwater.ps.protocol`."""

from __future__ import annotations

import functools
from typing import Any

from headwater.errors import InvalidArgumentError
from headwater.ps.accounting.ledger import Plan, Work
from headwater.ps.consistency import Part

#: A request for a step: (number of the training, number of the epoch, number of steps of the epoch or -1, first step
#: without data or -1). If examples are accounted for, a fifth element is the result of `request_fields`.
StepRequest = tuple[int, int, int, int] | tuple[int, int, int, int, tuple[Any, ...]]
#: A range that is returned, with the reason; an empty reason means that the range did not fail.
Returned = tuple[Work, str]


def request_fields(first: int, plan: Plan, part: tuple[int, int] | None = None) -> tuple[Any, ...]:
    """Returns the last element of a request for examples.

    Args:
      first: the first epoch of the request.
      plan: the plan of the epochs.
      part: the worker's part of a batch, as (number of the part, number of parts), until the ``ps`` assigns one; None
          if the worker takes whole batches.
    """
    return first, plan.size, plan.batch, plan.tries, plan.shuffle, plan.seed, plan.unit, plan.in_turn, part


def work_of(work: Any) -> tuple[list[Work], list[Returned]]:
    """Parses the ranges in a frame: the ranges of its gradient, and the ranges that are returned, with reasons."""
    match work:
        case None:
            return [], []
        case ([*given], [*returned]):
            return [range_of(span) for span in given], [(range_of(span), str(reason)) for span, reason in returned]
        case _:
            raise InvalidArgumentError(f"{work} are not ranges of examples")


def range_of(value: object) -> Work:
    """Parses a range of examples in a frame."""
    match value:
        case (int(epoch), int(start), int(stop)):
            return Work(epoch, start, stop)
        case _:
            raise InvalidArgumentError(f"{value} is not a range of examples")


def step_request_of(
    worker: str, step_request: Any
) -> tuple[int, int, int, int, tuple[int, Plan, tuple[int, int] | None]]:
    """Parses a request for examples in a frame.

    Returns:
      Training, last epoch, steps, first step without data, and (first epoch, plan, part of a batch or None).
    """
    match step_request:
        case (
            int(training),
            int(epoch),
            int(steps),
            int(exhausted),
            (
                int(first),
                int(size),
                int(batch),
                int(tries),
                bool(shuffle),
                int() | None as seed,
                str(unit),
                bool(in_turn),
                part,
            ),
        ) if part is None or _is_part(part):
            try:
                plan = _make_plan(size, batch, tries, shuffle, seed, unit, in_turn)
            except ValueError as error:
                raise InvalidArgumentError(f"{worker} asked for examples: {error}") from error
            return training, epoch, steps, exhausted, (first, plan, part)
        case _:
            raise InvalidArgumentError(f"{worker} sent a malformed request for examples")


def part_of(part: object) -> Part | None:
    """Parses the part of a batch from which a gradient was computed; None if the frame has none."""
    match part:
        case None:
            return None
        case (int(incarnation), int(number), int(size), int(whole)):
            return Part(incarnation, number, size, whole)
        case _:
            raise InvalidArgumentError(f"{part} is not a part of a batch")


@functools.lru_cache(maxsize=64, typed=True)
def _make_plan(size: int, batch: int, tries: int, shuffle: bool, seed: int | None, unit: str, in_turn: bool) -> Plan:
    """Returns a plan, from a cache: every request of a worker repeats the plan of its epoch."""
    return Plan(size=size, batch=batch, tries=tries, shuffle=shuffle, seed=seed, unit=unit, in_turn=in_turn)


def _is_part(part: object) -> bool:
    """Returns whether ``part`` is a pair (number of a part, number of parts)."""
    match part:
        case (int(number), int(count)):
            return 0 <= number < count
        case _:
            return False
