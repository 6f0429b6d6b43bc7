"""The embedding tables of a ``ps``, and what saves them or keeps second copies of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headwater.parameters.replicas.tables import CopiesOfTables, Programs, TablesCopy
from headwater.parameters.table_host import TableService
from headwater.parameters.table_saver import TableSaver
from headwater.replicas.copy import Site
from headwater.resources.state_saver import Saves
from headwater.task.members import Members


def table_service(members: Members, saves: Saves | None) -> TableService:
    """What keeps the tables of this task, a ``ps`` of ``members``; saved by itself where there are ``saves``."""
    index, tasks = members.number, len(members.servers)
    made = TableService(str(members.me), index, tasks)
    if saves is not None:
        saver = TableSaver(made, saves, index=index, tasks=tasks)
        made.saver = saver
        saver.start()
    return made


def copies_of_tables(
    members: Members,
    kept: Mapping[int, Site],
    host: Callable[[str, TablesCopy], None],
) -> CopiesOfTables:
    """The copies of tables that this task, a ``ps`` of ``members``, has.

    Args:
      members: the cluster.
      kept: of which ``ps`` it has a copy, by number, and where that is.
      host: called with the name of each, and with itself: it answers other tasks from then on.
    """
    programs = Programs()
    copies: dict[int, TablesCopy] = {}
    for shard, site in kept.items():
        copy = copies[shard] = TablesCopy(shard, tasks=len(members.servers), programs=programs, site=site)
        host(copy.name, copy)
    return CopiesOfTables(copies, programs)
