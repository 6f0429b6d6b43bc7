"""The members of a training at a ``ps`` that continues the state of another one."""

from __future__ import annotations

import json
from collections.abc import Callable

import jax
import optax
import pytest

from headwater.cluster.transport.channel import memory_pair
from headwater.errors import UnavailableError
from headwater.ps.accounting.ledger import Plan, Work
from headwater.ps.consistency import Contributed, Event, Joined, Left, Released, from_text
from headwater.ps.host import HostedParameters
from headwater.ps.host_state import HostState
from headwater.ps.layout import make_layout
from headwater.ps.membership import CONNECT_TIMEOUT_S
from headwater.ps.optax_updates import OptaxUpdater, leaf_specs
from headwater.ps.worker_connections import Request, WorkerConnection

FIRST, SECOND, THIRD, FOURTH = (f"/job:worker/task:{number}" for number in range(4))


def hosted(
    workers: int,
    clock: Callable[[], float] = lambda: 0.0,
    answers: Callable[[str], bool] = lambda worker: False,
    consistency: str = "sync",
) -> HostedParameters:
    """Returns the parameters of a ``ps``, without values."""
    layout, structure = make_layout(leaf_specs({}), 1), jax.tree.structure({})
    updater = OptaxUpdater(layout, 0, structure, optax.sgd(1.0))
    choice = from_text(consistency, workers)
    return HostedParameters("params", "/job:ps/task:0", 0, layout, updater, choice, clock=clock, answers=answers)


def test_a_late_worker_is_awaited_while_its_task_answers() -> None:
    now, answering = 0.0, {SECOND}
    host = hosted(2, lambda: now, lambda worker: worker in answering)
    with host.lock:
        host.workers.expect({FIRST, SECOND}, set(), 15.0)

    def left_at(time: float) -> set[str]:
        nonlocal now
        now = time
        host.workers.remove_absent_workers()
        return set(host.updates.state.members)

    assert left_at(14.0) == {FIRST, SECOND}
    assert left_at(15.0) == {SECOND}
    answering.clear()
    assert left_at(29.0) == {SECOND}
    assert left_at(30.0) == set()


def test_a_disconnected_worker_is_awaited_while_its_task_answers() -> None:
    """Another part may have completed the round with this worker's gradient, which has not arrived here yet."""
    answering = {FIRST, SECOND}
    host = hosted(2, answers=lambda worker: worker in answering)
    workers, updates = host.workers, host.updates

    def arrives(worker: str, incarnation: int = 1) -> WorkerConnection:
        with host.lock:
            return workers.connect_worker(worker, memory_pair((worker, host.name))[0], incarnation, 0)

    def hears(event: Event) -> None:
        with host.lock:
            updates.event(event)

    def loses(worker: str) -> set[str]:
        arrives(worker)
        hears(Joined(worker))
        workers.handle_disconnect(updates.connections[worker])
        return set(updates.state.members)

    arrives(FIRST)
    hears(Joined(FIRST))
    assert loses(SECOND) == {FIRST}  # without a backup, no other replica has completed the round
    workers.stays_s = 15.0
    assert loses(SECOND) == {FIRST, SECOND}
    hears(Contributed(FIRST, 0))
    assert updates.state.version == 0
    arrives(SECOND)
    arrives(SECOND)  # before the loss is noticed
    hears(Contributed(SECOND, 0))
    assert updates.state.version == 1
    assert loses(SECOND) == {FIRST, SECOND}
    arrives(SECOND, incarnation=2)  # its program has restarted
    assert set(updates.state.members) == {FIRST}
    answering.clear()
    workers.handle_disconnect(updates.connections[FIRST])
    assert not updates.state.members


def test_a_replica_that_has_ended_refuses_workers() -> None:
    """The worker was directed to the replica just before; the round for which it would wait never completes."""
    host = hosted(2)
    host.workers.close_connections()
    channel, there = memory_pair((FIRST, host.name))
    with host.lock, pytest.raises(UnavailableError, match=f"{FIRST} connected to a replica that no longer serves"):
        host.workers.connect_worker(FIRST, channel, 1, 0)
    assert there.peer_gone()
    assert not host.updates.connections


def test_a_shard_moves_within_a_round_only_if_all_gradients_are_sent_again() -> None:
    """Two workers have pushed their gradients, the third has not."""
    host = hosted(3)
    updates, waiting = host.updates, host.waiting
    for worker in (FIRST, SECOND, THIRD):
        with host.lock:
            host.workers.connect_worker(worker, memory_pair((worker, host.name))[0], 1, 0)
            updates.event(Joined(worker))
        updates.latest[worker] = Request(number=5, version=0)
    for worker in (FIRST, SECOND):
        updates.latest[worker].applied = True
        updates.event(Contributed(worker, 0))
    lost = updates.connections.pop(SECOND)  # no thread waits here for the update on behalf of that worker
    assert not waiting.freeze_outside_rounds("the move", 0.0)
    assert waiting.frozen_until == ""
    updates.connections[SECOND] = lost
    assert waiting.freeze_outside_rounds("the move", 0.0)
    assert waiting.frozen_until == "the move"


def test_ranges_stay_with_workers_that_send_their_gradients_to_another_ps() -> None:
    """The first worker waits for the update, the second continues without it, the third is lost, the fourth is busy."""
    host, other, plan = hosted(4), hosted(4), Plan(size=20, batch=2)
    updates, accounts = host.updates, host.updates.accounts
    works: dict[str, Work] = {}
    for worker in (FIRST, SECOND, THIRD, FOURTH):
        updates.event(Joined(worker))
        found = accounts.assign_range(worker, 0, 0, 9, plan, None, 0)
        assert isinstance(found, tuple)
        works[worker], _ = found
        updates.latest[worker] = Request(number=5, version=0)
    for worker in (FIRST, SECOND, THIRD):
        assert accounts.record_gradient(worker, [works[worker]])
        updates.latest[worker].applied = True
        updates.event(Contributed(worker, 0))
    updates.event(Released(SECOND))
    found = accounts.assign_range(SECOND, 0, 0, 9, plan, None, 0)
    assert isinstance(found, tuple)
    next_work, seed = found
    assigned_work = next_work.epoch, next_work.start, next_work.stop, seed
    updates.latest[SECOND].assigned_work = assigned_work
    updates.event(Left(THIRD, "its channel has ended"))

    with host.lock:
        words = host.memory.words()
    other.memory.install_words(words, 15.0)
    its = other.updates.accounts
    assert {worker: its.holds(worker, work) for worker, work in works.items()} == {
        FIRST: True,
        SECOND: False,
        THIRD: False,
        FOURTH: True,
    }
    # If the answer with the range is lost, it is repeated, without a statement that the gradient counts.
    assert its.holds(SECOND, next_work)
    assert other.updates.latest[SECOND] == Request(number=5, version=0, assigned_work=assigned_work)
    assert [other.updates.latest[worker].number for worker in (FIRST, THIRD, FOURTH)] == [-1, -1, 5]
    its.restore_ranges(THIRD)
    assert its.holds(THIRD, works[THIRD])
    again = its.assign_range(FOURTH, 0, 0, 9, plan, None, 0)
    assert isinstance(again, tuple)
    assert again[0] == works[SECOND]


def test_the_next_incarnation_keeps_held_ranges_until_their_workers_had_time_to_connect() -> None:
    """Another ``ps`` may have applied the gradient of a held range, so no other worker may get the range."""
    now, plan = 0.0, Plan(size=20, batch=2)
    host, other = (hosted(3, lambda: now, consistency="async") for _ in range(2))
    works: dict[str, Work] = {}
    ranges: dict[str, tuple[int, int, int, int]] = {}
    with host.lock:
        host.updates.filled = 1
        for worker in (FIRST, SECOND, THIRD):
            connection = host.workers.connect_worker(worker, memory_pair((worker, host.name))[0], 7, 0)
            request, _ = host.workers.request(connection, 5)
            found = host.updates.accounts.assign_range(worker, 0, 0, 9, plan, None, 0)
            assert isinstance(found, tuple)
            work, seed = found
            works[worker] = work
            request.assigned_work = ranges[worker] = (work.epoch, work.start, work.stop, seed)
        state = host.memory.state(last=True)
    assert state is not None
    facts, arrays = state.pack()
    names, values = zip(*arrays, strict=True)
    facts = json.loads(json.dumps(facts))  # as a state file has them
    other.memory.resume(HostState.unpack(facts, names, values), 0.0)
    accounts, workers = other.updates.accounts, other.workers

    def held() -> set[str]:
        with other.lock:
            workers.return_overdue_ranges()
        return {worker for worker, work in works.items() if accounts.holds(worker, work)}

    def asks(worker: str, number: int) -> tuple[Request, bool]:
        with other.lock:
            connection = workers.connect_worker(worker, memory_pair((worker, other.name))[0], 7, 0)
            return workers.request(connection, number)

    assert held() == {FIRST, SECOND, THIRD}
    assert asks(FIRST, 5) == (Request(number=5, assigned_work=ranges[FIRST]), True)
    assert held() == {FIRST, SECOND, THIRD}
    # The answers to requests 6 and 7 came from an incarnation that the state file does not know: the range is stale.
    asks(SECOND, 8)
    assert held() == {FIRST, THIRD}
    now = CONNECT_TIMEOUT_S
    assert held() == {FIRST}
    # The third worker has only been slow: it gets its range again.
    asks(THIRD, 6)
    assert held() == {FIRST, THIRD}
