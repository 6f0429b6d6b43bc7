from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.cluster.names import TaskName
from headwater.platform.backends.base import NotEnough, Resources, TaskPlace, TaskRequest
from headwater.platform.backends.placement import Host, Reservations

GIB = 1 << 30


def reservations(*hosts: Host) -> Reservations:
    made = Reservations()
    for host in hosts:
        made.set_host(host)
    return made


def host(name: str, cores: int = 4, memory: int = 8 * GIB, gpus: int = 0, **labels: str) -> Host:
    names = tuple(str(number) for number in range(gpus))
    return Host(name=name, cores=tuple(range(cores)), memory_bytes=memory, gpus=names, labels=labels)


def ask(count: int = 1, *, job: str = "worker", first: int = 0, **resources: Any) -> list[TaskRequest]:
    asked = Resources(**resources)
    return [TaskRequest(task=TaskName(job, first + index), resources=asked) for index in range(count)]


def test_tasks_without_gpus_are_spread() -> None:
    placed = reservations(host("a"), host("b")).place("j", ask(4, cpus=1), problems={})
    assert sorted(one.host for one in placed) == ["a", "a", "b", "b"]


def test_tasks_that_ask_for_nothing_are_spread_too() -> None:
    placed = reservations(host("a"), host("b")).place("j", ask(4), problems={})
    assert sorted(one.host for one in placed) == ["a", "a", "b", "b"]
    assert all(one.cores == () for one in placed)


def test_tasks_with_gpus_are_packed() -> None:
    books = reservations(host("a", gpus=4), host("b", gpus=4))
    first, second = books.place("j", ask(2, gpus=2), problems={})
    assert first.host == second.host
    assert set(first.gpus) | set(second.gpus) == {"0", "1", "2", "3"}
    assert books.place("k", ask(1, gpus=4), problems={})[0].host != first.host


def test_whole_cores_are_a_tasks_own() -> None:
    one, two = reservations(host("a")).place("j", ask(2, cpus=2), problems={})
    assert sorted(one.cores + two.cores) == [0, 1, 2, 3]
    assert reservations(host("a")).place("j", ask(1, cpus=1.5), problems={})[0].cores == ()


def test_tasks_are_placed_all_or_none() -> None:
    books = reservations(host("a"))
    with pytest.raises(NotEnough) as refused:
        books.place("j", ask(3, cpus=2), problems={})
    assert not refused.value.temporary
    assert books.capacity({})[0].free.cpus == 4


def test_occupied_resources_are_available_later() -> None:
    books = reservations(host("a"))
    books.place("j", ask(1, cpus=3, memory_bytes=7 * GIB), problems={})
    with pytest.raises(NotEnough, match=r"worker 0 asks for 2 CPUs: a has 1 CPUs free") as refused:
        books.place("k", ask(1, cpus=2), problems={})
    assert refused.value.temporary
    books.release("j")
    books.place("k", ask(1, cpus=2), problems={})


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"gpus": 1}, "asks for 1 GPUs: a has 0 GPUs"),
        ({"memory_bytes": 9 * GIB}, "asks for 9.00 GiB of memory: a has 8.00 GiB of memory"),
        ({"cpus": 4.5}, "asks for 4.5 CPUs: a has 4 CPUs"),
    ],
)
def test_impossible_requests_are_named(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(NotEnough, match=said) as refused:
        reservations(host("a")).place("j", ask(1, **asked), problems={})
    assert not refused.value.temporary


def test_hosts_with_problems_get_nothing() -> None:
    books = reservations(host("a"), host("b"))
    assert {one.host for one in books.place("j", ask(2), problems={"a": "down"})} == {"b"}
    with pytest.raises(NotEnough, match="a: down") as refused:
        books.place("k", ask(2, cpus=3), problems={"a": "down"})
    assert refused.value.temporary


def test_unknown_hosts_may_have_enough_resources() -> None:
    books = reservations(host("a"))
    with pytest.raises(NotEnough, match="b: no route") as refused:
        books.place("j", ask(1, gpus=1), problems={"b": "no route"})
    assert refused.value.temporary
    assert [one.problem for one in books.capacity({"b": "no route"})] == ["", "no route"]


def test_labels_choose_hosts() -> None:
    books = reservations(host("a"), host("b", disk="fast"))
    request = TaskRequest(task=TaskName("worker", 0), selector={"disk": "fast"})
    assert books.place("j", [request], problems={})[0].host == "b"
    request = TaskRequest(task=TaskName("worker", 0), selector={"disk": "slow"})
    with pytest.raises(NotEnough, match="a does not have the labels disk=slow"):
        books.place("k", [request], problems={})


def test_a_place_survives_as_text() -> None:
    place = TaskPlace(
        task=TaskName("ps", 1),
        host="a",
        address="a:1234",
        resources=Resources(cpus=2, memory_bytes=5, gpus=1),
        cores=(1, 3),
        gpus=("GPU-1",),
        detail={"group": "x"},
    )
    assert TaskPlace.decode(place.encode()) == place
    books = reservations(host("a"))
    books.restore("j", [place])
    assert books.capacity({})[0].free.cpus == 2


ASKED = st.lists(
    st.tuples(st.sampled_from([0, 0.5, 1, 2, 3]), st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=6
)


@given(jobs=st.lists(ASKED, max_size=6), gone=st.sets(st.integers(0, 5)))
def test_nothing_is_given_away_twice(jobs: list[list[tuple[float, int, int]]], gone: set[int]) -> None:
    books = reservations(host("a", gpus=2), host("b", gpus=1, cores=2))
    held: dict[tuple[str, int], list[str]] = {}
    for number, asked in enumerate(jobs):
        requests = [
            TaskRequest(
                task=TaskName("worker", index), resources=Resources(cpus=cpus, memory_bytes=memory * GIB, gpus=gpus)
            )
            for index, (cpus, memory, gpus) in enumerate(asked)
        ]
        try:
            placed = books.place(str(number), requests, problems={})
        except NotEnough:
            continue
        for one in placed:
            held[str(number), one.task.index] = [f"{one.host} core {core}" for core in one.cores] + [
                f"{one.host} gpu {gpu}" for gpu in one.gpus
            ]
        if number in gone:
            books.release(str(number))
            held = {key: things for key, things in held.items() if key[0] != str(number)}
        things = [thing for some in held.values() for thing in some]
        assert len(things) == len(set(things))
        assert all(
            free.free.cpus >= 0 and free.free.memory_bytes >= 0 and free.free.gpus >= 0 for free in books.capacity({})
        )
