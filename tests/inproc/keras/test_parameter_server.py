"""Parameter servers for JAX: updates, consistency, and the loss of a ps or a worker."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import headwater
from headwater.cluster.task.answers import raise_error
from headwater.cluster.task.kinds import FINISH, HELLO, WELCOME
from headwater.cluster.task.shell import OVER_DETAIL
from headwater.cluster.telemetry.watchdog import ProgressWatchdog
from headwater.cluster.transport.channel import Channel, memory_pair
from headwater.cluster.transport.frames import Frame
from headwater.errors import (
    CancelledError,
    FailedPreconditionError,
    InvalidArgumentError,
    ResourceExhaustedError,
    UnavailableError,
)
from headwater.ps.client import ParameterClient
from headwater.ps.consistency import from_text, without_count
from headwater.ps.conversation import ServerLink
from headwater.ps.global_norms import SumsError, find_sums, sums_of_gradients
from headwater.ps.layout import FixedShardsPartitioner, Layout, make_layout
from headwater.ps.local_servers import LocalServers
from headwater.ps.optax_updates import OptaxUpdater, leaf_specs, update_digest

PARAMS: dict[str, Any] = {
    "dense": {"kernel": np.arange(12, dtype=np.float32).reshape(4, 3) / 10, "bias": np.zeros(3, np.float32)},
    "scale": np.float32(2.0),
}
LEAVES = jax.tree.leaves(PARAMS)
MANY = 10**6


def servers(
    optimizer: Any, consistency: str = "async", *, tasks: int = 2, workers: int = 1, norms: bool = False
) -> LocalServers:
    """Starts parameter servers; with ``norms``, the optimizer uses a norm over all leaves."""
    layout = make_layout(leaf_specs(PARAMS), tasks, FixedShardsPartitioner(2))
    structure = jax.tree.structure(PARAMS)

    def updater(index: int) -> OptaxUpdater:
        return OptaxUpdater(layout, index, structure, optimizer, norms=norms)

    squares = (lambda index: updater(index).squares()) if norms and consistency == "sync" else None
    return LocalServers("params", layout, updater, from_text(consistency, workers), squares=squares)


def at_once(*pushes: Callable[[], object]) -> None:
    threads = [threading.Thread(target=push) for push in pushes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def connected(local: LocalServers, worker: int = 0) -> ParameterClient:
    client = local.client(LEAVES, worker)
    client.connect()
    client.pull()
    return client


def gradients(seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=np.shape(leaf)).astype(np.float32) for leaf in LEAVES]


def alone(optimizer: Any, steps: list[list[Any]]) -> Any:
    """Returns the parameters after the optimizer's updates without parameter servers."""
    values: Any = [jnp.asarray(leaf) for leaf in LEAVES]
    state = optimizer.init(values)
    for step in steps:
        updates, state = optimizer.update([jnp.asarray(leaf) for leaf in step], state, values)
        values = optax.apply_updates(values, updates)
    return values


def close(found: list[Any], expected: list[Any]) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "optimizer",
    [optax.sgd(0.1, momentum=0.9), optax.adamw(0.05), optax.adam(optax.cosine_decay_schedule(0.1, 10))],
    ids=["momentum", "adamw", "schedule"],
)
def test_updates_are_those_of_the_optimizer_alone(optimizer: Any) -> None:
    local = servers(optimizer)
    client = connected(local)
    steps = [gradients(number) for number in range(5)]
    for step in steps:
        client.push(step)
    close(client.values(), alone(optimizer, steps))
    assert client.version == 5
    client.close()
    local.stop()


def test_a_push_and_its_answer_are_one_round_trip() -> None:
    local = servers(optax.sgd(0.1))
    client = connected(local)
    before = client.conversation.traffic().round_trips
    client.push(gradients(0))
    assert client.conversation.traffic().round_trips == before + 1
    client.close()
    local.stop()


def test_synchronous_updates_are_weighted_means() -> None:
    local = servers(optax.adam(0.1), "sync", workers=3)
    clients = [connected(local, worker) for worker in range(3)]
    given = [[gradients(10 * number + worker) for worker in range(3)] for number in range(3)]
    weights = [1.0, 2.0, 5.0]

    def work(worker: int) -> None:
        for number in range(3):
            _, applied = clients[worker].push(given[number][worker], weight=weights[worker])
            assert applied

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    means = [
        [sum(w * leaf for w, leaf in zip(weights, leaves, strict=True)) / 8 for leaves in zip(*each, strict=True)]
        for each in given
    ]
    for client in clients:
        close(client.values(), alone(optax.adam(0.1), means))
        client.close()
    local.stop()


def test_the_first_k_gradients_are_an_update_and_the_last_is_too_late() -> None:
    local = servers(optax.sgd(0.1), "k=1", workers=2)
    first, second = connected(local, 0), connected(local, 1)
    assert first.push(gradients(0))[1]
    assert not second.push(gradients(1))[1]
    assert second.push(gradients(2))[1]
    close(second.values(), alone(optax.sgd(0.1), [gradients(0), gradients(2)]))
    for client in (first, second):
        client.close()
    local.stop()


def test_the_loss_of_a_worker_ends_the_wait_for_its_gradient() -> None:
    local = servers(optax.sgd(0.1), "sync", workers=2)
    clients = [connected(local, 0), connected(local, 1)]
    both = [threading.Thread(target=client.push, args=(gradients(0),)) for client in clients]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    waiting = threading.Thread(target=clients[0].push, args=(gradients(1),))
    waiting.start()
    clients[1].close()
    waiting.join()
    assert clients[0].version == 2
    clients[0].close()
    local.stop()


def test_restarted_ps_is_filled_from_the_chiefs_snapshot() -> None:
    local = servers(optax.adam(0.1))
    chief, other = connected(local, 0), connected(local, 1)
    chief.push(gradients(0))
    chief.snapshot()
    chief.push(gradients(1))
    local.restart(1)
    thread = threading.Thread(target=other.pull)  # waits until the chief fills it
    thread.start()
    chief.pull()
    thread.join()
    assert local.hosts[0].version == 2
    assert local.hosts[1].version == 1
    close(chief.values(), other.values())
    # Adam's moments were restored with the values: the next update equals an undisturbed second step.
    chief.push(gradients(1))
    expected = alone(optax.adam(0.1), [gradients(0), gradients(1)])
    layout = _layout(local)
    close(layout.split(chief.values(), 1), layout.split(expected, 1))
    for client in (chief, other):
        client.close()
    local.stop()


def test_lost_channel_is_opened_again() -> None:
    """While the client waits for the answer of one ps, it checks the channels to the others and closes lost ones."""
    local = servers(optax.sgd(0.1))
    client = connected(local)
    lost = client.conversation.sessions[1].channel
    assert lost is not None
    lost.close()
    client.push(gradients(0))
    asked = client.conversation.sessions[1]
    client.conversation._send(asked, Frame(FINISH, (0,)))
    assert asked.channel is not None
    asked.channel.close()
    with pytest.raises(UnavailableError, match="the channel to /job:ps/task:1 is gone"):
        client.conversation._receive(asked)
    client.finish(0)
    close(client.values(), alone(optax.sgd(0.1), [gradients(0)]))
    client.close()
    local.stop()


def _finish(*clients: ParameterClient) -> None:
    at_once(*(functools.partial(client.finish, 0) for client in clients))


def test_a_late_worker_does_not_wait_for_the_others() -> None:
    """The late worker connects to one ps as a member of the current training, and to the other ps after the others have
    finished.
    """
    local = servers(optax.sgd(0.1), "k=2")
    first, second, late = connected(local, 0), connected(local, 1), local.client(LEAVES, 2)
    late.conversation.connect(0)
    at_once(functools.partial(first.push, gradients(0)), functools.partial(second.push, gradients(1)))
    _finish(first, second)
    for client in (first, second):
        client.close()
    late.conversation.connect(1)
    late.pull()
    late.push(gradients(2))
    late.finish(0)
    # All expected workers have taken part in one training.
    states = [host.memory.state() for host in local.hosts]
    assert [state.trainings for state in states if state is not None] == [1, 1]
    assert first.trainings == late.trainings == 1
    late.close()
    local.stop()


@pytest.mark.timeout(60)
def test_worker_of_restarted_ps_keeps_the_finished_training() -> None:
    """The first ps reports the number of finished trainings to the worker, which tells the second ps its training."""
    local = servers(optax.sgd(0.1), "k=2", tasks=3)
    clients = first, second, late = [connected(local, number) for number in range(3)]
    at_once(*(functools.partial(client.push, gradients(number)) for number, client in enumerate(clients)))
    local.restart(0)
    local.restart(1)
    for _ in range(2):  # the first ps has restarted, and accepts no gradients of the finished training
        at_once(functools.partial(first.push, gradients(0)), functools.partial(second.push, gradients(1)))
    finishing = threading.Thread(target=_finish, args=(first, second))
    finishing.start()
    for host in local.hosts[:2]:
        with host.lock:
            host.lock.wait_for(lambda host=host: host.workers.trainings == 1)
    late.push(gradients(2))
    late.push(gradients(2))
    late.finish(0)
    finishing.join()
    assert [host.workers.trainings for host in local.hosts] == [1, 1, 1]
    for client in clients:
        client.close()
    local.stop()


def test_other_ps_learn_that_all_workers_have_finished() -> None:
    """The first worker that connects after that belongs to the next training; workers that finish at the other ps do
    not wait.
    """
    local = servers(optax.sgd(0.1), "k=2")
    first, second = connected(local, 0), connected(local, 1)
    at_once(functools.partial(first.push, gradients(0)), functools.partial(second.push, gradients(1)))
    finish = Frame(FINISH, (0,))
    at_once(*(functools.partial(client.conversation.request_until_answered, 0, finish) for client in (first, second)))
    late = connected(local, 2)
    assert late.trainings == 1
    first.conversation.request_until_answered(1, finish)
    second.conversation.request_until_answered(1, finish)
    for client in (first, second, late):
        client.close()
    local.stop()


def test_a_worker_waits_for_no_number_once_the_program_of_another_has_ended() -> None:
    local = servers(optax.sgd(0.1), "k=2")
    for host in local.hosts:
        host.record_worker_end()
    client = connected(local)
    client.push(gradients(0))
    client.push(gradients(1))
    client.close()
    local.stop()


class _SaysOver:
    """A link to a ps that reports the end of the chief's program."""

    details: Mapping[str, bytes] = {OVER_DETAIL: b""}

    def __init__(self, link: ServerLink) -> None:
        self._link = link

    def reach(self, deadline_s: float | None = None) -> _SaysOver:
        return self

    def open_channel(self) -> Channel:
        return self._link.open_channel()

    def release_channel(self, channel: Channel, usable: bool) -> None:
        self._link.release_channel(channel, usable)


def test_a_worker_restores_a_restarted_ps_after_the_end_of_the_chief() -> None:
    local = servers(optax.sgd(0.1), "sync", workers=2)
    chief, other, late = connected(local, 0), connected(local, 1), local.client(LEAVES, 2)
    at_once(functools.partial(chief.push, gradients(0)), functools.partial(other.push, gradients(0)))
    chief.close()
    sessions = other.conversation.sessions
    sessions[0].link = _SaysOver(sessions[0].link)
    local.restart(1)
    other.pull()
    close(other.values(), alone(optax.sgd(0.1), [gradients(0)]))
    other.push(gradients(1))  # the ps waits for no other worker
    close(other.values(), alone(optax.sgd(0.1), [gradients(0), gradients(1)]))
    other.close()
    # A worker that has read nothing from that ps has no values for it.
    local.restart(1)
    sessions = late.conversation.sessions
    sessions[0].link = _SaysOver(sessions[0].link)
    with pytest.raises(FailedPreconditionError, match=r"/job:ps/task:1 was restarted.* has connected after the end"):
        late.connect()
    late.close()
    local.stop()


def _layout(local: LocalServers) -> Layout:
    return make_layout(leaf_specs(PARAMS), len(local.hosts), FixedShardsPartitioner(2))


def test_a_worker_with_another_program_is_refused() -> None:
    local, other = servers(optax.sgd(0.1)), servers(optax.sgd(0.1), "sync")
    client = connected(local)
    stranger = ParameterClient(
        "params",
        worker="/job:worker/task:1",
        chief=False,
        layout=_layout(local),
        choice=from_text("sync", 2),
        links=[(session.task, session.link) for session in client._sessions],
        initial=LEAVES,
    )
    with pytest.raises(FailedPreconditionError, match="same program"):
        stranger.connect()
    stranger.close()
    client.close()
    local.stop()
    other.stop()


def test_a_new_chief_keeps_the_state_of_all_ps_or_restores_all_ps() -> None:
    local = servers(optax.sgd(0.1))
    first = connected(local)
    first.push(gradients(0))
    first.close()
    second = connected(local)
    assert second.joined_late
    close(second.values(), first.values())
    second.close()
    local.restart(1)
    third = connected(local)
    # The chief's backup must fill both ps: otherwise their values would be of different steps.
    assert not third.joined_late
    third.close()
    local.stop()


def test_an_old_worker_does_not_get_the_place_of_a_live_one() -> None:
    local = servers(optax.sgd(0.1), tasks=1)
    host, layout = local.hosts[0], _layout(local)
    watchdog = ProgressWatchdog(lambda _: True)

    def greeted(generation: int, started: float) -> Channel:
        ours, theirs = memory_pair(generations=(1, generation))
        known = ("params", "/job:worker/task:0", layout.signature(), without_count(host._choice))
        hello = Frame(HELLO, (*known, started, generation, 0, 0, 0, None))

        def serve() -> None:
            with contextlib.suppress(UnavailableError, CancelledError):
                host.serve(theirs, theirs.recv(), watchdog)

        threading.Thread(target=serve, daemon=True).start()
        ours.send(hello)
        return ours

    living = greeted(7, 2000.0)
    assert living.recv().kind == WELCOME
    for _ in range(2):
        stale = greeted(6, 1000.0)
        with pytest.raises(FailedPreconditionError, match=r"refuses generation 6 .* was started later, and is alive"):
            raise_error(stale.recv(), "the ps")
    following = greeted(8, 3000.0)
    assert following.recv().kind == WELCOME
    with pytest.raises(FailedPreconditionError, match=r"refuses generation 7 .* it was replaced by generation 8"):
        raise_error(greeted(7, 2000.0).recv(), "the ps")
    for channel in (living, following):
        channel.close()
    local.stop()


def test_gradients_of_another_shape_are_refused_and_the_worker_continues() -> None:
    local = servers(optax.sgd(0.1), tasks=1)
    client = connected(local)
    with pytest.raises(InvalidArgumentError, match=r"gradient of .* has shape"):
        client.push([np.zeros((2, 2), np.float32) for _ in LEAVES])
    client.push(gradients(0))
    client.close()
    local.stop()


def _wants_terabytes(updates: Any, params: Any) -> Any:
    del params
    return jax.tree.map(
        lambda leaf: leaf + jax.lax.top_k(jnp.ones([MANY, MANY]) * leaf.sum() + jnp.arange(MANY), MANY)[0].sum(),
        updates,
    )


@pytest.mark.parametrize("consistency", ["async", "sync"])
def test_an_update_without_memory_is_named_and_changes_nothing(consistency: str) -> None:
    local = servers(optax.stateless(_wants_terabytes), tasks=1, consistency=consistency)
    client = connected(local)
    before = [np.array(value) for value in client.values()]
    for number in range(2):
        with pytest.raises(ResourceExhaustedError) as raised:
            client.push(gradients(number))
        client.pull()  # the round is over for the others, too
        for part in ("/job:ps", "an update of", "['dense']['kernel']", " TiB were requested", "are free"):
            assert part in raised.value.message
    client.close()
    other = connected(local, 1)
    for value, expected in zip(other.values(), before, strict=True):
        np.testing.assert_array_equal(value, expected)
    other.close()
    local.stop()


def test_without_a_cluster_one_process_is_ps_and_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TF_CONFIG", raising=False)
    ps = headwater.ParameterServer(PARAMS, optax.sgd(0.5))
    ps.push(jax.tree.map(np.ones_like, PARAMS))
    params = ps.finish()
    np.testing.assert_allclose(params["dense"]["bias"], -0.5)
    assert jax.tree.structure(params) == jax.tree.structure(PARAMS)
    with pytest.raises(InvalidArgumentError, match="parameters are"):
        ps.push({"other": 1.0})
    assert (ps.worker, ps.workers, ps.is_chief, ps.version) == (0, 1, True, 1)


@pytest.mark.parametrize("setting", ["", "Async", "k", "k=0", "staleness=x"])
def test_a_wrong_consistency_is_named(setting: str) -> None:
    with pytest.raises(ValueError, match=r"consistency must be|k must be"):
        from_text(setting, 1)


SHAPES = jax.eval_shape(lambda: jax.tree.map(jnp.asarray, PARAMS))


@pytest.mark.parametrize(
    "optimizer",
    [
        optax.chain(optax.clip_by_global_norm(0.5), optax.adam(0.05)),
        optax.chain(optax.clip_by_global_norm(100.0), optax.sgd(0.1)),
    ],
    ids=["clipped", "not clipped"],
)
def test_a_norm_over_all_leaves_is_over_those_of_all_ps(optimizer: Any) -> None:
    assert find_sums(optimizer, SHAPES) == 1
    total = sums_of_gradients(optimizer, SHAPES)
    local = servers(optimizer, norms=True)
    client = connected(local)
    steps = [gradients(number) for number in range(5)]
    for step in steps:
        client.push(step, hyperparameters=(float(total(jax.tree.unflatten(jax.tree.structure(PARAMS), step))),))
    close(client.values(), alone(optimizer, steps))
    local.stop()


@pytest.mark.parametrize("tasks", [2, 3, 7], ids=lambda tasks: f"{tasks} ps")
def test_a_norm_of_a_mean_is_added_up_over_all_ps(tasks: int) -> None:
    optimizer = optax.chain(optax.scale(0.5), optax.clip_by_global_norm(0.5), optax.adam(0.05))
    local = servers(optimizer, "sync", tasks=tasks, workers=2, norms=True)
    clients = [connected(local, worker) for worker in range(2)]
    given = [[gradients(10 * number + worker) for worker in range(2)] for number in range(4)]
    for each in given:
        at_once(*(functools.partial(client.push, mine) for client, mine in zip(clients, each, strict=True)))
    means = [[sum(leaves) / 2 for leaves in zip(*each, strict=True)] for each in given]
    for client in clients:
        close(client.values(), alone(optimizer, means))
        client.close()
    local.stop()


def test_a_norm_needs_no_part_of_a_ps_that_has_lost_the_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.sgd(0.1))
    local = servers(optimizer, "sync", workers=2, norms=True)
    clients = [connected(local, worker) for worker in range(2)]
    clients[0].snapshot()
    at_once(*(functools.partial(client.push, gradients(0)) for client in clients))
    taken = threading.Event()
    first, add = local.hosts[1].updates.round, local.hosts[1].updates.round.add

    def noted(*args: Any) -> None:
        add(*args)
        taken.set()

    monkeypatch.setattr(first, "add", noted)
    pushes = [threading.Thread(target=client.push, args=(gradients(1),)) for client in clients]
    pushes[0].start()
    assert taken.wait(60)
    local.restart(1)  # with one worker's gradient
    pushes[1].start()
    for push in pushes:
        push.join()
    assert [host.version for host in local.hosts] == [2, 0]
    at_once(*(functools.partial(client.push, gradients(2)) for client in clients))
    assert [host.version for host in local.hosts] == [3, 1]
    for one, other in zip(clients[0].values(), clients[1].values(), strict=True):
        np.testing.assert_array_equal(one, other)
    for client in clients:
        client.close()
    local.stop()


def test_patched_norms_of_optax_are_restored_afterwards() -> None:
    assert find_sums(optax.adam(0.1), SHAPES) == 0
    assert find_sums(optax.chain(optax.clip_by_global_norm(1.0), optax.clip_by_global_norm(2.0)), SHAPES) == 2
    assert float(optax.tree.norm([jnp.float32(3.0), jnp.float32(4.0)])) == 5.0


@pytest.mark.parametrize(
    ("optimizer", "match"),
    [
        (optax.chain(optax.adam(0.1), optax.clip_by_global_norm(1.0)), "depends on more than the gradients"),
        (optax.chain(optax.clip_by_global_norm(1.0), optax.clip_by_global_norm(2.0)), "several norms"),
    ],
)
def test_norms_that_no_worker_knows_are_refused(optimizer: Any, match: str) -> None:
    with pytest.raises(SumsError, match=match):
        sums_of_gradients(optimizer, SHAPES)


def test_parameters_are_jax_arrays() -> None:
    server = headwater.ParameterServer(PARAMS, optax.sgd(0.1))
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(server.params))
    before = server.params
    assert server.params is before
    server.push(jax.tree.map(jnp.ones_like, before))
    np.testing.assert_allclose(server.params["dense"]["bias"], [-0.1] * 3)
    np.testing.assert_array_equal(before["dense"]["bias"], [0] * 3)
    server.finish()


def test_leaves_without_gradients_are_named() -> None:
    with pytest.raises(ValueError, match=r"params\['count'\] is of type int32, which has no gradient"):
        headwater.ParameterServer({**PARAMS, "count": np.int32(0)}, optax.sgd(0.1))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_gradients_that_are_not_finite_are_named(value: float) -> None:
    server = headwater.ParameterServer(PARAMS, optax.sgd(0.1))
    wrong = jax.tree.map(np.ones_like, PARAMS)
    wrong["dense"]["kernel"][1, 2] = value
    with pytest.raises(InvalidArgumentError, match=r"params\['dense'\]\['kernel'\] has 1 numbers of 12 that are not"):
        server.push(wrong)
    assert server.version == 0
    server.finish()


def test_an_optimizer_that_takes_them_gets_them() -> None:
    server = headwater.ParameterServer(PARAMS, optax.chain(optax.zero_nans(), optax.sgd(0.1)), nonfinite="push")
    wrong = jax.tree.map(np.ones_like, PARAMS)
    wrong["scale"] = np.float32(np.nan)
    server.push(wrong)
    np.testing.assert_allclose(server.params["scale"], 2.0)
    np.testing.assert_allclose(server.params["dense"]["bias"], [-0.1] * 3)
    server.finish()


def test_optimizers_are_compared_by_their_updates() -> None:
    assert update_digest(optax.adam(0.1), SHAPES) == update_digest(optax.adam(0.1), SHAPES)
    assert update_digest(optax.adam(0.1), SHAPES) != update_digest(optax.adam(0.2), SHAPES)


@pytest.mark.parametrize("optimizer", [optax.sgd(0.1), optax.adam(0.1)], ids=["sgd", "adam"])
def test_steps_of_stale_gradients_are_smaller(optimizer: Any) -> None:
    structure, layout = jax.tree.structure(PARAMS), make_layout(leaf_specs(PARAMS), 1)

    def steps(aware: bool) -> list[Any]:
        """Returns the change of the values by a gradient that is 3 updates old."""
        local = LocalServers(
            "params",
            layout,
            lambda at: OptaxUpdater(layout, at, structure, optimizer),
            from_text("async", 2),
            staleness_aware=aware,
        )
        fast, slow = connected(local), connected(local, 1)
        for number in range(3):
            fast.push(gradients(number))
        before = fast.values()
        slow.push(gradients(3))
        after = slow.values()
        fast.close()
        slow.close()
        local.stop()
        return [one - other for one, other in zip(after, before, strict=True)]

    close(steps(True), [step / 3 for step in steps(False)])
