"""Makes the service of a ``ps``'s embedding tables, with their periodic saves, handoff or replicas."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.cluster.task.deposited_states import StateAtChief
from headwater.cluster.task.members import Members
from headwater.ps.replicas.tables import CopiesOfTables, Programs, TablesCopy
from headwater.ps.tables.deposits import TableDeposit
from headwater.ps.tables.host import TableService
from headwater.ps.tables.saver import TableSaver
from headwater.state.sites import Site
from headwater.state.state_saver import Saves


def table_service(members: Members, saves: Saves | None, kept: StateAtChief) -> TableService:
    """Creates the table service of this task, a ``ps``.

    Args:
      members: the cluster, and this process's place in it.
      saves: where to save the tables periodically; None for no saves.
      kept: the chief's storage, where tables are deposited at a graceful shutdown if there are no saves.
    """
    index, tasks = members.number, len(members.servers)
    made = TableService(str(members.me), index, tasks)
    if saves is not None:
        saver = TableSaver(made, saves, index=index, tasks=tasks)
        made.saver = saver
        saver.start()
    else:
        made.deposit = TableDeposit(made, str(members.me), kept)
    return made


def copies_of_tables(kept: Mapping[int, Site], parts: int, *, moves: bool) -> CopiesOfTables:
    """Makes this task's replicas of tables.

    Args:
      kept: sites of the replicas, by the number of the part.
      parts: number of parts.
      moves: whether the replicas may move between ``ps``.
    """
    programs = Programs()
    copies = {
        shard: TablesCopy(shard, tasks=parts, programs=programs, site=site, moves=moves) for shard, site in kept.items()
    }
    return CopiesOfTables(copies, programs)
