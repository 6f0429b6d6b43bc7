"""The knowledge of processes of job ``ps`` about each other."""

from __future__ import annotations

from typing import Any

from headwater.graph.server.replicas.processes import GONE, GraphProcesses

ADDRESSES = {0: "a:1", 1: "b:1"}


def _no_way(number: int, address: str) -> Any:
    raise AssertionError(f"process {number} at {address} is not asked")


def _processes(me: int | None) -> GraphProcesses:
    return GraphProcesses(ADDRESSES, tasks=[0, 1], link=_no_way, me=me)


def test_restarted_process_is_known_without_its_earlier_incarnation() -> None:
    worker, former = _processes(None), _processes(1)
    former.set_state(GONE)
    worker.merge_records(former.words())
    assert worker.numbers() == [0]
    worker.merge_records(_processes(1).words())
    assert worker.numbers() == [0, 1]
    worker.merge_records(former.words())
    assert worker.numbers() == [0, 1]


def test_where_all_have_ended_each_may_be_back() -> None:
    worker = _processes(None)
    for number in ADDRESSES:
        former = _processes(number)
        former.set_state(GONE)
        worker.merge_records(former.words())
    assert worker.numbers() == []
    assert worker.present() == [*ADDRESSES.items()]
    worker.merge_records(_processes(1).words())
    assert worker.present() == [(1, "b:1")]
