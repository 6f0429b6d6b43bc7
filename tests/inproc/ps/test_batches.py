"""Each example of an epoch is applied once, although workers, connections and parameter servers are lost."""

from __future__ import annotations

import functools
import logging
from pathlib import Path
from typing import Any

import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater import ParameterServer
from headwater.cluster.transport.channel import Channel
from headwater.data.dataset import Dataset
from headwater.data.io.disk import mounted
from headwater.data.readers import TextLineDataset
from headwater.errors import DataLossError, FailedPreconditionError, InvalidArgumentError
from headwater.ps.accounting.audit import audit
from headwater.ps.local_servers import LocalServers
from tests.inproc.ps.accounted import (
    BATCH,
    PARAMS,
    SIZE,
    counts,
    exact,
    gradients,
    ledger_text,
    servers,
    stop,
    together,
    train,
    worker,
)
from tests.support.cuts import Cuts
from tests.support.faulty_disk import FaultyDisk

BATCHES = -(-SIZE // BATCH)


def cut(local: LocalServers, cuts: Cuts) -> None:
    open_channel = local._open_pair

    def open_pair(index: int) -> tuple[Channel, Channel]:
        return cuts.between(*open_channel(index))

    local._open_pair = open_pair


def let_go(local: LocalServers, ps: ParameterServer) -> None:
    """Both parameter servers consider a worker lost, although it is alive."""
    for session in ps._client._sessions:
        assert session.channel is not None
        session.channel.break_off("the test has cut it")


@pytest.mark.parametrize("consistency", ["async", "sync", "k=2", "k=1", "staleness=1"])
def test_workers_share_the_epochs(consistency: str, tmp_path: Path) -> None:
    local = servers(tmp_path, consistency, workers=3)
    workers = [worker(local, number) for number in range(3)]
    together([lambda ps=ps: train(ps, epochs=3) for ps in workers])
    exact(tmp_path, 3)
    assert counts(local, 0) == [3] * (SIZE // 2)
    if not consistency.startswith("k"):  # each ps decides independently which gradients are late
        assert counts(local, 1) == [3] * (SIZE // 2)
    stop(local, *workers)


@pytest.mark.parametrize("consistency", ["sync", "k=3", "async"])
def test_there_are_more_workers_than_batches(consistency: str, tmp_path: Path) -> None:
    local = servers(tmp_path, consistency, workers=3)
    workers = [worker(local, number) for number in range(3)]

    def take_one(ps: ParameterServer) -> None:
        for batch in ps.batches(np.arange(SIZE), batch_size=SIZE):
            ps.push(gradients(batch))
        ps.finish()

    together([lambda ps=ps: take_one(ps) for ps in workers])
    exact(tmp_path, 1)
    assert [counts(local, index) for index in range(2)] == [[1] * (SIZE // 2)] * 2
    stop(local, *workers)


@pytest.mark.parametrize("consistency", ["async", "sync", "k=1", "staleness=2"])
def test_examples_of_a_lost_worker_are_reassigned(consistency: str, tmp_path: Path) -> None:
    local = servers(tmp_path, consistency, workers=2)
    incarnations, dies = worker(local, 0), worker(local, 1)
    batches = [iter(ps.batches(np.arange(SIZE), batch_size=BATCH)) for ps in (incarnations, dies)]
    seconds: list[Any] = [None, None]

    def begin(number: int, ps: ParameterServer) -> None:
        ps.push(gradients(next(batches[number])))
        seconds[number] = next(batches[number])

    together([lambda one=one: begin(*one) for one in enumerate((incarnations, dies))])

    def live() -> None:
        incarnations.push(gradients(seconds[0]))
        for batch in batches[0]:
            incarnations.push(gradients(batch))
        incarnations.finish()

    together([live, dies._client.close])
    found = exact(tmp_path, 1)
    (run,) = found.runs.values()
    assert run.epochs[0, 0].back >= len(seconds[1])
    assert counts(local, 0) == [1] * (SIZE // 2)
    stop(local, incarnations)


def test_a_gradient_of_reassigned_examples_is_dropped_by_all_ps(tmp_path: Path) -> None:
    local = servers(tmp_path, workers=2)
    incarnations, stands_still = worker(local, 0), worker(local, 1)
    batches = iter(stands_still.batches(np.arange(SIZE), batch_size=BATCH, epochs=1))
    first = next(batches)
    assert stands_still.push(gradients(first))
    second = next(batches)
    let_go(local, stands_still)
    train(incarnations)
    assert not stands_still.push(gradients(second))
    assert list(batches) == []
    exact(tmp_path, 1)
    assert [counts(local, index) for index in range(2)] == [[1] * (SIZE // 2)] * 2
    stop(local, incarnations, stands_still)


def test_a_worker_that_reconnects_in_time_keeps_its_examples(tmp_path: Path) -> None:
    local = servers(tmp_path, workers=2)
    ps = worker(local)
    batches = iter(ps.batches(np.arange(SIZE), batch_size=BATCH))
    first = next(batches)
    let_go(local, ps)
    assert ps.push(gradients(first))
    for batch in batches:
        assert ps.push(gradients(batch))
    exact(tmp_path, 1)
    stop(local, ps)


@pytest.mark.parametrize("arrives", [False, True])
@pytest.mark.parametrize("frame", range(0, 24, 1))
def test_a_cut_at_every_frame(frame: int, arrives: bool, tmp_path: Path) -> None:
    cuts = Cuts()
    local = servers(tmp_path)
    cut(local, cuts)
    ps = worker(local)
    cuts.plan(before=() if arrives else {frame}, after={frame} if arrives else ())
    assert all(train(ps))
    assert cuts.made == 1
    exact(tmp_path, 1)
    assert [counts(local, index) for index in range(2)] == [[1] * (SIZE // 2)] * 2
    stop(local, ps)


@pytest.mark.parametrize("consistency", ["async", "sync", "k=1", "staleness=1"])
@settings(max_examples=10, deadline=None)
@given(st.sets(st.integers(0, 90), max_size=10), st.sets(st.integers(0, 90), max_size=10))
def test_two_workers_and_cuts_anywhere(
    tmp_path_factory: pytest.TempPathFactory, consistency: str, before: set[int], after: set[int]
) -> None:
    folder = tmp_path_factory.mktemp("journal")
    cuts = Cuts()
    local = servers(folder, consistency, workers=2)
    cut(local, cuts)
    workers = [worker(local, number) for number in range(2)]
    cuts.plan(before=before, after=after)
    together([lambda ps=ps: train(ps, tries=100) for ps in workers])
    cuts.plan()
    exact(folder, 1)
    assert counts(local, 0) == [1] * (SIZE // 2)
    stop(local, *workers)


@pytest.mark.parametrize("snapshots", [None, 4])
def test_the_first_ps_is_lost_and_the_ledger_is_as_old_as_the_parameters(snapshots: int | None, tmp_path: Path) -> None:
    local = servers(tmp_path)
    ps = worker(local, snapshot_steps=snapshots)
    for done, batch in enumerate(ps.batches(np.arange(SIZE), batch_size=BATCH, epochs=2), 1):
        ps.push(gradients(batch))
        if done in (6, 15):
            local.restart(0)
    found = exact(tmp_path, 2)
    (run,) = found.runs.values()
    lost = 0 if snapshots is None else 2
    assert [back.updates for back in run.rollbacks] == ([0, 0] if snapshots is None else [2, 3]), run.rollbacks
    assert run.rollbacks[0].update == 6 - lost
    # The parameters agree with their ledger: each example counts twice, also on the ps that was lost.
    np.testing.assert_array_equal(ps.pull()["counts"][: SIZE // 2], -2)
    stop(local, ps)


def test_a_worker_joins_and_one_leaves(tmp_path: Path) -> None:
    local = servers(tmp_path, "sync", workers=1)
    first = worker(local, 0)
    batches = iter(first.batches(np.arange(SIZE), batch_size=BATCH))
    first.push(gradients(next(batches)))
    taken = next(batches)
    joins = worker(local, 1)
    others = iter(joins.batches(np.arange(SIZE), batch_size=BATCH))
    begun = next(others)

    def leave() -> None:
        first.push(gradients(taken))
        first.finish()

    def go_on() -> None:
        joins.push(gradients(begun))
        for batch in others:
            joins.push(gradients(batch))
        joins.finish()

    together([leave, go_on])
    exact(tmp_path, 1)
    stop(local, first, joins)


def test_gradients_of_several_batches_are_one_update(tmp_path: Path) -> None:
    local = servers(tmp_path, workers=2)
    workers = [worker(local, number) for number in range(2)]

    def train_by_threes(ps: ParameterServer) -> None:
        held: list[int] = []
        for number, batch in enumerate(ps.batches(np.arange(SIZE), batch_size=BATCH), 1):
            held += batch.tolist()
            if number % 3 == 0:
                ps.push(gradients(held))
                held = []
        if held:
            ps.push(gradients(held))
        ps.finish()

    together([lambda ps=ps: train_by_threes(ps) for ps in workers])
    exact(tmp_path, 1)
    assert counts(local, 0) == [1] * (SIZE // 2)
    assert local.hosts[0].updates.made <= BATCHES // 3 + 2
    stop(local, *workers)


def test_epochs_of_several_calls_follow_each_other(tmp_path: Path) -> None:
    local = servers(tmp_path)
    ps = worker(local)
    seen: list[int] = []
    for _ in range(3):
        for batch in ps.batches(np.arange(SIZE), batch_size=SIZE):
            ps.push(gradients(batch))
            seen.append(ps.epoch)
    assert seen == [0, 1, 2]
    ps.finish()
    exact(tmp_path, 3)
    stop(local, ps)


def test_a_loop_that_is_left_gives_its_batch_back(tmp_path: Path) -> None:
    local = servers(tmp_path, workers=2)
    stays, leaves = worker(local, 0), worker(local, 1)
    others = iter(stays.batches(np.arange(SIZE), batch_size=BATCH))
    stays.push(gradients(next(others)))
    for batch in leaves.batches(np.arange(SIZE), batch_size=BATCH):
        leaves.push(gradients(batch))
        break

    def stay() -> None:
        for batch in others:
            stays.push(gradients(batch))
        stays.finish()

    together([leaves.finish, stay])
    exact(tmp_path, 1)
    stop(local, leaves, stays)


def test_a_program_restarted_after_the_training_repeats_nothing(tmp_path: Path) -> None:
    local = servers(tmp_path)
    ps = worker(local)
    assert train(ps, epochs=2)
    ps._client.close()
    again = worker(local)
    assert train(again, epochs=2) == []
    assert train(again)  # the second training
    exact(tmp_path, 3)
    stop(local, again)


class Reads:
    """Examples, some of which cannot be read."""

    def __init__(self, broken: set[int], times: int = 1_000_000) -> None:
        self._broken = broken
        self._times = times

    def __len__(self) -> int:
        return SIZE

    def __getitem__(self, places: Any) -> Any:
        if self._times and self._broken & set(np.arange(SIZE)[places].tolist()):
            self._times -= 1
            raise OSError("the disk is gone")
        return np.arange(SIZE)[places]


def test_a_range_that_keeps_failing_is_named_at_the_end_of_the_epoch(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    local = servers(tmp_path)
    ps = worker(local)
    batches = ps.batches(Reads({7}), batch_size=BATCH, epochs=2, shuffle=False, tries=2)

    def go() -> None:
        for batch in batches:
            ps.push(gradients(batch))

    with (
        caplog.at_level(logging.ERROR, "headwater"),
        pytest.raises(DataLossError, match=r"set aside: \[6, 9\) of epoch 0: source raised OSError: the disk is gone"),
    ):
        go()
    assert ps.epoch == 0 or counts(local, 0)[7] == 0
    assert "[6, 9) of epoch 0 is set aside after 2 tries" in caplog.text
    assert "3 set aside" in ledger_text(local)
    ps.finish()
    found = audit(str(tmp_path))
    (run,) = found.runs.values()
    assert run.epochs[0, 0].missing() == [(6, 9)]
    assert list(run.epochs[0, 0].aside) == [(6, 9)]
    stop(local, ps)


def test_a_range_that_fails_once_is_done_later(tmp_path: Path) -> None:
    local = servers(tmp_path)
    ps = worker(local)
    for batch in ps.batches(Reads({7}, times=2), batch_size=BATCH, tries=3):
        ps.push(gradients(batch))
    exact(tmp_path, 1)
    stop(local, ps)


def test_a_gradient_that_is_not_finite_counts_for_nothing(tmp_path: Path) -> None:
    local = servers(tmp_path)
    ps = worker(local)
    refused = 0
    for batch in ps.batches(np.arange(SIZE), batch_size=BATCH):
        if refused < 2 and 7 in batch:
            refused += 1
            with pytest.raises(InvalidArgumentError, match="not finite"):
                ps.push({"counts": np.full((SIZE, 2), np.nan, np.float32)})
            continue
        ps.push(gradients(batch))
    assert refused == 2
    exact(tmp_path, 1)
    assert counts(local, 0) == [1] * (SIZE // 2)
    stop(local, ps)


def test_workers_with_other_data_are_reported(tmp_path: Path) -> None:
    local = servers(tmp_path, workers=2)
    one, other = worker(local, 0), worker(local, 1)
    next(iter(one.batches(np.arange(SIZE), batch_size=BATCH)))
    with pytest.raises(FailedPreconditionError, match=r"task:1 goes through epoch 0 with batch=4 instead of 3"):
        next(iter(other.batches(np.arange(SIZE), batch_size=4)))
    stop(local, one, other)


@pytest.mark.parametrize(
    ("settings", "error", "match"),
    [
        ({"batch_size": 0}, ValueError, "batch must be at least 1"),
        ({"batch_size": 4, "epochs": 0}, ValueError, "epochs must be at least 1"),
        ({"batch_size": 4, "tries": 0}, ValueError, "tries must be at least 1"),
        ({"batch_size": 4, "shuffle": "no"}, TypeError, "shuffle must be True or False"),
        ({"batch_size": 4, "source": {}}, ValueError, "source has no examples"),
        ({"batch_size": 4, "source": {"x": 3}}, TypeError, r"source\['x'\] has no examples: it is int"),
        ({"batch_size": 4, "source": (np.zeros(3), np.zeros(4))}, ValueError, r"equally many examples, not \[3, 4\]"),
    ],
)
def test_arguments_that_cannot_be(settings: dict[str, Any], error: type[Exception], match: str) -> None:
    ps = ParameterServer(PARAMS, optax.sgd(1.0))
    with pytest.raises(error, match=match):
        ps.batches(settings.pop("source", np.zeros(4)), **settings)
    ps.finish()


def test_structures_of_arrays_and_orders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEADWATER_LOG_DIR", str(tmp_path))
    ps = ParameterServer(PARAMS, optax.sgd(1.0))
    source = {"x": np.arange(SIZE) * 10, "y": (np.arange(SIZE),)}

    def order(**settings: Any) -> list[int]:
        found: list[int] = []
        for batch in ps.batches(source, batch_size=BATCH, **settings):
            np.testing.assert_array_equal(batch["x"], batch["y"][0] * 10)
            found += batch["y"][0].tolist()
            ps.push(gradients(batch["y"][0]))
        return found

    assert order(shuffle=False) == list(range(SIZE))
    first, second, third, fourth = order(), order(), order(seed=3), order(seed=3)
    for one, other in ((first, second), (first, third), (third, fourth)):
        assert sorted(one) == list(range(SIZE))
        assert one != other
    ps.finish()
    assert order(shuffle=False) == list(range(SIZE))  # another training
    ps.finish()
    found = exact(tmp_path, 6)
    (run,) = found.runs.values()
    assert list(run.epochs) == [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 0)]
    place = run.epochs[0, 3].place_of(17)
    assert third[place] == 17


@pytest.mark.parametrize("kind", ["at once", "file"])
def test_the_examples_of_a_dataset(kind: str, tmp_path: Path) -> None:
    if kind == "file":
        path = tmp_path / "numbers"
        path.write_text("".join(f"{number}\n" for number in range(SIZE)))
        data = TextLineDataset(str(path)).map(lambda line: {"x": int(line.item()) * 10, "y": int(line.item())})
    else:
        data = Dataset.range(SIZE).map(lambda number: {"x": number * 10, "y": number})
    local = servers(tmp_path, workers=2)
    workers = [worker(local, number) for number in range(2)]

    def run(ps: ParameterServer) -> None:
        for batch in ps.batches(data, batch_size=BATCH, epochs=2, shuffle=kind != "file"):
            np.testing.assert_array_equal(batch["x"], batch["y"] * 10)
            ps.push(gradients(batch["y"]))
        ps.finish()

    together([functools.partial(run, ps) for ps in workers])
    assert counts(local, 0) + counts(local, 1) == [2] * SIZE
    stop(local, *workers)
    exact(tmp_path, 2)


@pytest.mark.parametrize(
    ("data", "shuffle", "match"),
    [
        (Dataset.range(9).shuffle(3, seed=1), True, r"has a shuffle\(\)"),
        (Dataset.range(9).repeat(), True, r"has a repeat\(\)"),
        (Dataset.range(9).filter(lambda x: x > 2), True, "Filter can only be iterated"),
        (Dataset.from_generator(lambda: iter(range(9)), np.int64, ()), False, "a generator, which may yield different"),
        (Dataset.range(9).filter(lambda x: x > 9), False, "no examples"),
    ],
)
def test_datasets_that_cannot_be_accounted_for(data: Dataset, shuffle: bool, match: str) -> None:
    ps = ParameterServer(PARAMS, optax.sgd(1.0))
    with pytest.raises(ValueError, match=match):
        ps.batches(data, batch_size=2, shuffle=shuffle)
    ps.finish()


def test_an_update_that_cannot_be_made_stops_no_worker(tmp_path: Path) -> None:
    local = servers(tmp_path, "sync", tasks=1, workers=2)
    workers = [worker(local, number) for number in range(2)]
    failures: list[InvalidArgumentError] = []

    def go(ps: ParameterServer, wrong: bool) -> None:
        for batch in ps.batches(np.arange(SIZE), batch_size=BATCH):
            shape = (SIZE, 3) if wrong and not failures else (SIZE, 2)
            found = np.zeros(shape, np.float32)
            found[batch] = 1
            try:
                ps.push({"counts": found})
            except InvalidArgumentError as error:
                failures.append(error)
        ps.finish()

    together([lambda: go(workers[0], False), lambda: go(workers[1], True)])
    assert len(failures) <= 2
    exact(tmp_path, 1)
    stop(local, *workers)


def test_an_update_takes_one_call_of_the_system_for_the_journal(tmp_path: Path) -> None:
    disk = FaultyDisk()
    with mounted(tmp_path, disk):
        local = servers(tmp_path, tasks=1)
        ps = worker(local)
        batches = iter(ps.batches(np.arange(SIZE), batch_size=BATCH))
        ps.push(gradients(next(batches)))
        before = disk.steps
        for batch in batches:
            ps.push(gradients(batch))
        assert disk.steps - before == local.hosts[0].updates.made - 1 == BATCHES - 1
        stop(local, ps)
    (journal,) = tmp_path.iterdir()
    assert journal.stat().st_size / BATCHES < 140


def test_a_step_is_one_round_trip(tmp_path: Path) -> None:
    local = servers(tmp_path)
    ps = worker(local)
    batches = iter(ps.batches(np.arange(SIZE), batch_size=BATCH, epochs=2))
    first = next(batches)
    before, steps = ps.traffic().round_trips, 1
    ps.push(gradients(first))
    for batch in batches:
        ps.push(gradients(batch))
        steps += 1
    assert steps == 2 * BATCHES
    assert ps.traffic().round_trips - before == steps
    stop(local, ps)


def test_examples_of_a_slow_worker_are_reassigned(tmp_path: Path) -> None:
    local = servers(tmp_path, "async patience=0.01", workers=2)
    active, stands_still = worker(local, 0), worker(local, 1)
    slow = iter(stands_still.batches(np.arange(SIZE), batch_size=BATCH))
    held = next(slow)
    for batch in active.batches(np.arange(SIZE), batch_size=BATCH):
        active.push(gradients(batch))
    assert not stands_still.push(gradients(held))
    assert list(slow) == []
    exact(tmp_path, 1)
    assert [counts(local, index) for index in range(2)] == [[1] * (SIZE // 2)] * 2
    stop(local, active, stands_still)
