"""The embedding tables of a ``ps``, and what saves them or keeps second copies of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headwater.cluster.names import TaskName
from headwater.parameters.replicas.tables import CopiesOfTables, Programs, TablesCopy
from headwater.parameters.table_host import TableService
from headwater.parameters.table_saver import TableSaver
from headwater.replicas.copy import PeerServerLink
from headwater.replicas.witness import Ask
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
    kept: Sequence[tuple[int, TaskName]],
    link: Callable[[TaskName], PeerServerLink],
    ask: Ask,
    host: Callable[[str, TablesCopy], None],
) -> CopiesOfTables:
    """The copies of tables that this task, a ``ps`` of ``members``, has.

    Args:
      members: the cluster.
      kept: of which ``ps`` it has a copy, by number, and which task has the other one.
      link: gives the way to a task.
      ask: asks the witness.
      host: called with the name of each, and with itself: it answers other tasks from then on.
    """
    programs = Programs()
    copies: dict[int, TablesCopy] = {}
    for shard, other in kept:
        copy = copies[shard] = TablesCopy(
            shard,
            ps=members.number,
            tasks=len(members.servers),
            task=str(members.me),
            other=str(other),
            programs=programs,
            link=link(other),
            ask=ask,
        )
        host(copy.name, copy)
    return CopiesOfTables(copies, programs)
