"""``headwater rebalance``: moves shards of parameters between the ``ps`` of a cluster during training."""

from __future__ import annotations

import json

from headwater.cluster.addresses import parse_address
from headwater.cluster.names import TaskName
from headwater.cluster.task.links import WaitingLink
from headwater.cluster.telemetry.sizes import size_text
from headwater.cluster.telemetry.snapshot import SNAPSHOT_DETAIL, Snapshot
from headwater.cluster.transport.links import client_link_settings
from headwater.errors import FailedPreconditionError
from headwater.ps.shards.directory import Directory
from headwater.ps.shards.moves import Moved, balance_shards


def rebalance(address: str, *, ps: int | None, as_json: bool) -> None:
    """Moves shards of all parameter sets, and prints the moves.

    Args:
      address: ``host:port`` of a ``ps`` of the cluster.
      ps: the number of ``ps`` to divide the shards among, by bytes of values; None to even out the traffic instead.
      as_json: print JSON.

    Raises:
      FailedPreconditionError: no parameters have shards, or there are fewer ``ps``.
      OpError: a task cannot be reached, or a move failed.
      ValueError: ``address`` is not an address.
    """
    link_settings = client_link_settings()
    links: dict[tuple[str, str], WaitingLink] = {}

    def link(task: str, its_address: str) -> WaitingLink:
        if (task, its_address) not in links:
            links[task, its_address] = WaitingLink(link_settings, TaskName.parse(task), parse_address(its_address))
        return links[task, its_address]

    asked = WaitingLink(link_settings, None, parse_address(address))
    moved: dict[str, list[Moved]] = {}
    try:
        data = asked.control.status().details.get(SNAPSHOT_DETAIL)
        snapshot = Snapshot.decode(data) if data is not None else Snapshot(at=0.0)
        servers = {task: at for task, at in snapshot.cluster.items() if TaskName.parse(task).job == "ps"}
        names = [group.name for group in snapshot.groups if group.shards]
        if not names:
            raise FailedPreconditionError(
                f"the task at {address} has no parameters with shards: ask a ps of a program that says shards=..."
            )
        for name in names:
            directory = Directory(name, link_settings.me.task, servers, link)
            moved[name] = balance_shards(directory, servers=ps, by_rate=ps is None)
    finally:
        for one in (asked, *links.values()):
            one.close()
    _show(moved, as_json=as_json)


def _show(moved: dict[str, list[Moved]], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({name: [_to_json(one) for one in moves] for name, moves in moved.items()}))
        return
    for name, moves in moved.items():
        for (shard, source, target), seconds, nbytes in moves:
            print(f"{name}: shard {shard} from {source} to {target}, {size_text(nbytes)} in {seconds:.3f} s")
        if not moves:
            print(f"{name}: nothing to move")


def _to_json(moved: Moved) -> dict[str, object]:
    return {**moved.move._asdict(), "seconds": moved.seconds, "bytes": moved.nbytes}
