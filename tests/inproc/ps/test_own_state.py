"""A parameter server that is lost restores its own saved state; the others keep theirs."""

from __future__ import annotations

import errno
import logging
import os
import threading
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
import pytest

from headwater import ParameterServer
from headwater.cluster.task.metrics import metrics_of
from headwater.cluster.telemetry.snapshot import Snapshot
from headwater.data.io.disk import mounted
from headwater.data.io.state_files import numbered
from headwater.errors import FailedPreconditionError
from headwater.keras import ParameterServerStrategy
from headwater.ps.block_values import BlockValues
from headwater.ps.client import ParameterClient
from headwater.ps.consistency import from_text
from headwater.ps.layout import FixedShardsPartitioner, Layout, make_layout
from headwater.ps.local_servers import LocalServers
from headwater.ps.optax_updates import OptaxUpdater, leaf_specs
from headwater.state.state_saver import Saves
from tests.inproc.keras.test_parameter_server import PARAMS, alone, close, connected, gradients
from tests.inproc.ps.accounted import SIZE, exact, train, worker
from tests.inproc.ps.accounted import gradients as ones
from tests.inproc.ps.accounted import servers as counting
from tests.inproc.ps.accounted import stop as stop_counting
from tests.support.faulty_disk import FaultyDisk

LAYOUT: Layout = make_layout(leaf_specs(PARAMS), 2, FixedShardsPartitioner(2))


def servers(folder: Path, optimizer: Any = None, consistency: str = "async") -> LocalServers:
    structure = jax.tree.structure(PARAMS)
    return LocalServers(
        "params",
        LAYOUT,
        lambda index: OptaxUpdater(LAYOUT, index, structure, optimizer or optax.adam(0.1)),
        from_text(consistency, 2),
        saves=Saves(folder=str(folder)),
    )


def save(local: LocalServers) -> None:
    for saver in local.savers.values():
        assert saver.save()


def push(client: ParameterClient, *numbers: int) -> None:
    for number in numbers:
        assert client.push(gradients(number))[1]


def stop(local: LocalServers, *clients: ParameterClient) -> None:
    for client in clients:
        client.close()
    local.stop()


@pytest.mark.parametrize("lost", [0, 1])
def test_ps_restores_its_own_state_and_reports_the_loss(
    lost: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    local = servers(tmp_path)
    client = connected(local)
    push(client, 0, 1)
    save(local)
    push(client, 2, 3, 4)
    caplog.set_level(logging.WARNING, "headwater")
    local.restart(lost)
    push(client, 5)
    assert [host.version for host in local.hosts] == ([3, 6] if lost == 0 else [6, 3])
    # Its values and Adam's moments equal those of a ps that never got gradients 2 to 4.
    close(LAYOUT.split(client.values(), lost), LAYOUT.split(alone_of(0, 1, 5), lost))
    close(LAYOUT.split(client.values(), 1 - lost), LAYOUT.split(alone_of(0, 1, 2, 3, 4, 5), 1 - lost))
    told = caplog.text
    names = local.hosts[lost]._names
    assert f"/job:ps/task:{lost} continues with its own state of version 2" in told
    lost_updates = f"updates 3 to 5 of {len(names)} variables ({', '.join(names)}) are lost"
    assert f"{lost_updates}; they were applied after the save of " in told
    assert "; /job:worker/task:0 had read version 5" in told
    group = local.group(lost)
    assert group.lost_updates == 3
    assert group.saved == f"no state saved yet; {local.hosts[lost].recovery_report}"
    assert local.group(1 - lost).lost_updates == 0
    metrics = {
        (sample.name, sample.labels["group"]): sample.value
        for metric in metrics_of("ps", Snapshot(at=0.0, groups=(group,)))
        for sample in metric.samples
        if "group" in sample.labels
    }
    assert metrics["headwater_lost_updates", "params"] == 3
    stop(local, client)


def alone_of(*numbers: int) -> list[Any]:
    return alone(optax.adam(0.1), [gradients(number) for number in numbers])


def test_all_tasks_are_lost_and_resume_from_their_own_state(tmp_path: Path) -> None:
    local = servers(tmp_path)
    client = connected(local)
    push(client, 0, 1)
    save(local)
    stop(local, client)
    local = servers(tmp_path)
    client = connected(local)
    assert client.joined_late
    push(client, 2)
    close(client.values(), alone_of(0, 1, 2))
    assert [host.version for host in local.hosts] == [3, 3]
    stop(local, client)


@pytest.mark.parametrize("saved_before", [False, True])
def test_a_repeated_push_is_applied_only_where_it_was_lost(saved_before: bool, tmp_path: Path) -> None:
    """The answer to a push was lost with a ``ps``, whose saved state may or may not include the push."""
    local = servers(tmp_path)
    client = connected(local)
    push(client, 0)
    if saved_before:
        save(local)
    push(client, 1)
    if not saved_before:
        save(local)
    local.restart(1)
    client._number -= 1  # the worker retries, since it got no answer
    push(client, 1)
    assert [host.version for host in local.hosts] == [2, 2]
    close(client.values(), alone_of(0, 1))
    stop(local, client)


def test_workers_that_did_not_ask_wait_for_the_ps_only(tmp_path: Path) -> None:
    """Two workers continue to train while a ``ps`` is down, until they need that ``ps``; neither needs the chief."""
    local = servers(tmp_path, optax.sgd(0.1), "staleness=100")
    chief, other = connected(local, 0), connected(local, 1)
    push(other, 0)
    save(local)
    chief.close()
    local.restart(1)
    push(other, 1)
    assert [host.version for host in local.hosts] == [2, 2]
    stop(local, other)


def test_a_save_copies_nothing_and_has_the_state_at_its_start(tmp_path: Path) -> None:
    local = servers(tmp_path)
    client = connected(local)
    push(client, 0)
    host = local.hosts[0]
    updater = host._updater
    assert isinstance(updater, OptaxUpdater)
    blocks: BlockValues = updater._blocks
    state = host.memory.state()
    assert state is not None
    for held, array in zip(blocks.optimized, state.values, strict=True):
        assert array.ctypes.data == held.unsafe_buffer_pointer()
    before = [array.copy() for array in state.values]
    push(client, 1, 2)
    close(list(state.values), before)
    assert any(not np.array_equal(now, then) for now, then in zip(updater.values(None), before, strict=True))
    stop(local, client)


def only_the_bias(big: np.ndarray) -> tuple[Layout, Any, Any]:
    params = {"bias": np.zeros(8, np.float32), "frozen": big}
    layout = make_layout(leaf_specs(params), 1)
    optimizer = optax.multi_transform(
        {"on": optax.adam(0.1), "off": optax.set_to_zero()}, {"bias": "on", "frozen": "off"}
    )
    return layout, jax.tree.structure(params), optimizer


def test_unchanged_pieces_are_not_written_again(tmp_path: Path) -> None:
    big = np.random.default_rng(0).normal(size=1 << 20).astype(np.float32)
    layout, structure, optimizer = only_the_bias(big)
    local = LocalServers(
        "params",
        layout,
        lambda index: OptaxUpdater(layout, index, structure, optimizer),
        from_text("async", 1),
        saves=Saves(folder=str(tmp_path)),
    )
    client = local.client([np.zeros(8, np.float32), big])
    client.connect()
    client.pull()
    saver = local.savers[0]
    written: list[int] = []
    for _ in range(3):
        client.push([np.ones(8, np.float32), np.ones_like(big)])
        save(local)
        written.append(saver.written_bytes)
    assert written[0] > big.nbytes
    assert written[2] - written[0] < 5000
    assert not saver.save()  # nothing has changed
    assert [name for _, name in numbered(saver.folder)] == ["00000001.full", "00000002.delta", "00000003.delta"]
    before = [np.array(value) for value in client.values()]
    local.restart(0)
    client.pull()
    for now, then in zip(client.values(), before, strict=True):
        np.testing.assert_array_equal(now, then)
    stop(local, client)


def test_only_changed_parts_of_a_large_variable_are_written(tmp_path: Path) -> None:
    rows = np.zeros((1 << 18, 4), np.float32)
    layout = make_layout(leaf_specs({"rows": rows}), 1)
    structure = jax.tree.structure({"rows": rows})
    local = LocalServers(
        "params",
        layout,
        lambda index: OptaxUpdater(layout, index, structure, optax.sgd(1.0)),
        from_text("async", 1),
        saves=Saves(folder=str(tmp_path)),
    )
    client = local.client([rows])
    client.connect()
    save(local)
    whole = local.savers[0].written_bytes
    gradient = np.zeros_like(rows)
    gradient[1000] = -1
    client.push([gradient])
    save(local)
    assert local.savers[0].written_bytes - whole < (256 << 10) + 2000
    local.restart(0)
    client.pull()
    (found,) = client.values()
    np.testing.assert_array_equal(np.flatnonzero(found.any(axis=1)), [1000])
    stop(local, client)


def test_files_that_a_newer_whole_state_replaces_are_removed(tmp_path: Path) -> None:
    local = servers(tmp_path)
    client = connected(local)
    for number in range(6):
        push(client, number)
        save(local)
    # All of the state changes in each step, so each save is full, and the last two are kept.
    assert [name for _, name in numbered(local.savers[0].folder)] == ["00000005.full", "00000006.full"]
    stop(local, client)


@pytest.mark.parametrize("damaged", ["newest", "all"])
def test_a_damaged_state_falls_back_to_the_previous_one_and_then_to_the_chiefs_copy(
    damaged: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    local = servers(tmp_path)
    client = connected(local)
    push(client, 0)
    save(local)
    client.snapshot()
    push(client, 1)
    save(local)
    push(client, 2)
    folder = Path(local.savers[1].folder)
    for _, name in numbered(str(folder))[-1 if damaged == "newest" else 0 :]:
        packed = bytearray((folder / name).read_bytes())
        packed[len(packed) // 2] ^= 1
        (folder / name).write_bytes(packed)
    caplog.set_level(logging.WARNING, "headwater")
    local.restart(1)
    # A gradient in transit to a ps that the chief must fill is dropped there.
    assert client.push(gradients(3))[1] == (damaged == "newest")
    assert "cannot use a state that it has saved" in caplog.text
    assert "00000002.full: the checksum of" in caplog.text
    assert local.hosts[0].version == 4
    assert local.hosts[1].version == (2 if damaged == "newest" else 1)
    wanted = alone_of(0, 3) if damaged == "newest" else alone_of(0)
    close(LAYOUT.split(client.values(), 1), LAYOUT.split(wanted, 1))
    assert ("sends /job:ps/task:1 the values of version 1" in caplog.text) == (damaged == "all")
    stop(local, client)


def test_a_full_disk_is_reported_and_the_next_save_is_whole(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    local = servers(tmp_path)
    client = connected(local)
    push(client, 0)
    save(local)
    push(client, 1)
    with mounted(str(tmp_path), FaultyDisk(room=10)):
        assert not local.savers[1].save()
    assert os.strerror(errno.ENOSPC) in caplog.text
    assert "the state of /job:ps/task:1 in" in caplog.text
    push(client, 2)
    save(local)
    assert numbered(local.savers[1].folder)[-1][1].endswith(".full")
    local.restart(1)
    client.pull()
    close(client.values(), alone_of(0, 1, 2))
    stop(local, client)


def test_stopped_ps_saves_last(tmp_path: Path) -> None:
    local = servers(tmp_path)
    client = connected(local)
    push(client, 0, 1)
    local.savers[1].close()
    waiting = threading.Thread(target=push, args=(client, 2))
    waiting.start()
    local.restart(1)
    waiting.join()
    assert [host.version for host in local.hosts] == [3, 3]
    close(client.values(), alone_of(0, 1, 2))
    assert local.group(1).lost_updates == 0
    assert "restored version 2" in local.group(1).saved
    stop(local, client)


def test_states_go_when_the_job_is_over(tmp_path: Path) -> None:
    local = servers(tmp_path)
    client = connected(local)
    push(client, 0)
    save(local)
    local.hosts[1].job_over()
    local.savers[1].close()
    assert numbered(local.savers[1].folder) == []
    assert numbered(local.savers[0].folder)
    stop(local, client)


def test_the_state_of_another_program_is_refused(tmp_path: Path) -> None:
    local = servers(tmp_path)
    client = connected(local)
    push(client, 0)
    save(local)
    with pytest.raises(FailedPreconditionError, match="does not fit this program, whose optimizer may have changed"):
        servers(tmp_path, optax.sgd(0.1))
    other = make_layout(leaf_specs({"other": np.zeros(3, np.float32)}), 2)
    with pytest.raises(
        FailedPreconditionError, match=r"of other variables, .* has changed.*Remove it, or name another"
    ):
        LocalServers(
            "params",
            other,
            lambda index: OptaxUpdater(other, index, jax.tree.structure({"other": 0}), optax.sgd(0.1)),
            from_text("async", 1),
            saves=Saves(folder=str(tmp_path)),
        )
    three = make_layout(leaf_specs(PARAMS), 3, FixedShardsPartitioner(2))
    with pytest.raises(FailedPreconditionError, match=r"holds the state of ps-0000\d-of-00002, and there are 3 ps now"):
        LocalServers(
            "params",
            three,
            lambda index: OptaxUpdater(three, index, jax.tree.structure(PARAMS), optax.adam(0.1)),
            from_text("async", 1),
            saves=Saves(folder=str(tmp_path)),
        )
    stop(local, client)


def test_the_first_ps_restores_its_ledger_and_counts_each_example_once(tmp_path: Path) -> None:
    saves = Saves(folder=str(tmp_path / "states"))
    local = counting(tmp_path / "logs", saves=saves)
    ps = worker(local)
    batches = ps.batches(np.arange(SIZE), batch_size=3)
    for number, batch in enumerate(batches):
        if number == 4:
            assert local.savers[0].save()
        ps.push(ones(batch))
        if number == 7:
            local.restart(0)
    found = ps.finish()["counts"]
    exact(tmp_path / "logs", 1)
    half = SIZE // 2
    assert set(np.asarray(found[:half]).ravel().tolist()) == {-1.0}  # the first ps
    again = np.asarray(found[half:]).ravel()
    assert again.min() == -2.0  # on the other ps, examples that were assigned again count twice
    assert again.max() == -1.0
    stop_counting(local, ps)


def test_a_save_between_two_trainings_belongs_to_the_next(tmp_path: Path) -> None:
    saves = Saves(folder=str(tmp_path / "states"))
    local = counting(tmp_path / "logs", saves=saves)
    ps = worker(local)
    train(ps)
    assert local.savers[0].save()
    local.restart(0)
    assert all(train(ps))
    exact(tmp_path / "logs", 2)
    stop_counting(local, ps)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"recovery": "own"}, "recovery='own' needs saves="),
        ({"recovery": "copy", "saves": "x"}, "requires recovery='own'"),
        ({"recovery": "none"}, "recovery must be 'copy' or 'own', not 'none'"),
        ({"saves": "x", "save_every_s": 0.0}, "save_every_s must be more than 0 seconds, not 0.0"),
        ({"saves": "x", "consistency": "sync"}, "supports consistency 'async' and 'staleness=...', not 'sync"),
        ({"saves": "x", "consistency": "k=1"}, "supports consistency 'async' and 'staleness=...', not '1 of n'"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ParameterServer(PARAMS, optax.sgd(0.1), **settings)
    with pytest.raises(ValueError, match=message):
        ParameterServerStrategy(**settings)
