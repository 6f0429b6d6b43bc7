"""The embedding tables of a ``ps``, and what saves them or keeps second copies of them."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.cluster.task.left_states import StateAtChief
from headwater.cluster.task.members import Members
from headwater.ps.left_tables import LeavingTables
from headwater.ps.replicas.tables import CopiesOfTables, Programs, TablesCopy
from headwater.ps.table_host import TableService
from headwater.ps.table_saver import TableSaver
from headwater.state.sites import Site
from headwater.state.state_saver import Saves


def table_service(members: Members, saves: Saves | None, kept: StateAtChief) -> TableService:
    """What keeps the tables of this task, a ``ps`` of ``members``; saved by itself where there are ``saves``, and
    otherwise left where they are ``kept`` when the task is told to end."""
    index, tasks = members.number, len(members.servers)
    made = TableService(str(members.me), index, tasks)
    if saves is not None:
        saver = TableSaver(made, saves, index=index, tasks=tasks)
        made.saver = saver
        saver.start()
    else:
        made.left = LeavingTables(made, str(members.me), kept)
    return made


def copies_of_tables(kept: Mapping[int, Site], parts: int, *, moves: bool) -> CopiesOfTables:
    """The copies of tables that this task has.

    Args:
      kept: of which parts it has a copy, by number, and where that is.
      parts: how many there are.
      moves: whether they move between ``ps``.
    """
    programs = Programs()
    copies = {
        shard: TablesCopy(shard, tasks=parts, programs=programs, site=site, moves=moves) for shard, site in kept.items()
    }
    return CopiesOfTables(copies, programs)
