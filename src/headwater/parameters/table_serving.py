"""The embedding tables of a ``ps``, and what saves them."""

from __future__ import annotations

from headwater.parameters.table_host import TableService
from headwater.parameters.table_saver import TableSaver
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
