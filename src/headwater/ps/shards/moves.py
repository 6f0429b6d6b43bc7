"""Moves of shards, for a ``ps`` that joins or leaves, and for the commands that change the number of ``ps`` or
rebalance them."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from typing import Final, NamedTuple

from headwater.cluster.names import TaskName
from headwater.cluster.pauses import pause
from headwater.cluster.task import kinds
from headwater.cluster.task.answers import bad_header
from headwater.cluster.transport.frames import Frame
from headwater.errors import FailedPreconditionError, UnavailableError
from headwater.ps.replicas.places import CopyMove, Pair, plan_copies
from headwater.ps.shards.directory import WHERE_TIMEOUT_S, Directory, Load, ShardReport
from headwater.ps.shards.places import Move, excess

_log = logging.getLogger("headwater")

#: Time limit of one move, in seconds.
MOVE_TIMEOUT_S: Final = 180.0
#: How long a ``ps`` may take to begin serving a shard that was handed off to it, in seconds.
TAKE_OVER_TIMEOUT_S: Final = 20.0
#: Pause between two requests to a new primary, in seconds.
PAUSE_S: Final = 0.05


class Moved(NamedTuple):
    """A completed move.

    Attributes:
      move: the shard, its source and its target.
      seconds: how long workers could not use the shard, in seconds.
      nbytes: size of values and state, in bytes.
    """

    move: Move
    seconds: float
    nbytes: int


def balance_shards(
    directory: Directory,
    *,
    servers: int | None = None,
    without: Collection[str] = (),
    me: ShardReport | None = None,
    by_rate: bool = False,
    above: float = 0.0,
) -> list[Moved]:
    """Moves shards, one after the other, so that the loads of ``ps`` are about equal.

    Args:
      directory: places of the shards.
      servers: number of ``ps`` to use, beginning with the lowest numbers; None for all ``ps`` that accept shards.
      without: ``ps`` that must not have any shard.
      me: this task's report on itself, if it is a ``ps``.
      by_rate: whether to balance the bytes sent and received, rather than the sizes of values.
      above: shards move only if the largest load exceeds the mean by more than this fraction; 0 for always.

    Returns:
      The moves.

    Raises:
      FailedPreconditionError: fewer than ``servers`` ``ps`` accept shards.
      UnavailableError: some shards are on a ``ps`` that does not answer.
      OpError: a move failed; the moves before it were made.
    """
    reports = directory.query_all()
    if me is not None:
        reports[directory.me] = me  # `query_all` asks the other tasks only
    takers = sorted((task for task in reports if reports[task].takes and task not in without), key=TaskName.parse)
    if not takers or (servers is not None and len(takers) < servers):
        problem = f"no ps accepts the shards of {directory.name!r}"
        if takers:
            accepting = ", ".join(takers)
            problem = f"the shards of {directory.name!r} need {servers} ps, but only these accept shards: {accepting}"
        raise FailedPreconditionError(f"{problem}. Start more ps first")
    takers = takers[:servers]
    places = {shard: place.task for shard, place in directory.places().items()}
    silent = sorted({task for task in places.values() if task not in reports})
    # The loads of these shards are unknown, so there can be no plan.
    if silent:
        raise UnavailableError(f"{', '.join(silent)} does not answer, and has shards of {directory.name!r}")
    loads = _loads(reports, by_rate=by_rate)
    if above and excess({task: sum(loads[shard] for shard in reports[task].loads) for task in takers}) <= above:
        return []
    # A shard whose new primary does not serve yet has no load, and stays in its place.
    known = [load for one in reports.values() for load in one.loads.values()]
    replicas = 1 if all(load.backup is None for load in known) else 2
    pairs = {
        shard: Pair(task, load.backup or None)
        for shard, task in places.items()
        if (load := reports[task].loads.get(shard)) is not None
    }
    if len(takers) < replicas:
        raise FailedPreconditionError(
            f"the shards of {directory.name!r} have two replicas each, which need two ps, but only {takers[0]} was "
            "given: give at least two"
        )
    return [move_copies(directory, change) for change in plan_copies(pairs, loads, takers, replicas)]


def _loads(reports: dict[str, ShardReport], *, by_rate: bool) -> dict[int, float]:
    """Returns the load of each shard, plus one unit, so that shards without load are distributed evenly by number."""
    loads: dict[int, Load] = {}
    for one in reports.values():
        loads |= one.loads
    return {shard: 1.0 + (load.rate if by_rate else load.nbytes) for shard, load in loads.items()}


def _request_move(directory: Directory, task: str, frame: Frame) -> tuple[float, int]:
    """Sends a ``ps`` the request for a move.

    Returns:
      How long workers could not use the shard, in seconds; and its size in bytes.
    """
    answer = directory.exchange(task, frame, MOVE_TIMEOUT_S + WHERE_TIMEOUT_S)
    match answer.header:
        case (float(seconds), int(nbytes)):
            return seconds, nbytes
        case _:
            raise bad_header(answer, task)


def move_copies(directory: Directory, change: CopyMove) -> Moved:
    """Moves a shard's replicas, and waits until they are in place.

    Returns:
      The source and target of the moved replica; of one of the two if both moved. The source is empty if a replica was
      added. If no ``ps`` was added, the source and target are the old and the new primary.

    Raises:
      OpError: the move failed.
    """
    shard, before, after = change
    primary, backup = after
    both = primary, directory.address(primary), backup or "", directory.address(backup) if backup else ""
    frame = Frame(kinds.MOVE, (directory.name, shard, *both))
    seconds, nbytes = _request_move(directory, before.primary, frame)
    give_up_at = time.monotonic() + TAKE_OVER_TIMEOUT_S
    while primary != before.primary:  # the new primary may still have to move the backup
        try:
            _request_move(directory, primary, frame)
            break
        except UnavailableError:
            # The new primary may not know yet that it is the primary.
            if time.monotonic() >= give_up_at:
                raise
            pause(PAUSE_S)
    servers_before, servers_after = ({server for server in pair if server is not None} for pair in (before, after))
    if added := servers_after - servers_before:
        return Moved(Move(shard, min(servers_before - servers_after, default=""), min(added)), seconds, nbytes)
    return Moved(Move(shard, before.primary, primary), seconds, 0)
