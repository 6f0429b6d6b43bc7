"""`fit` on parameter servers applies each example of an epoch once, whatever the source of its batches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater.data.dataset import Dataset
from headwater.data.readers import TextLineDataset
from headwater.keras.parameter_server.batches import make_batches
from headwater.ps.accounting.audit import Audit, audit
from headwater.ps.accounting.ledger import Plan, Work
from tests.inproc.keras.test_parameter_server_strategy import Cluster

import keras  # isort: skip - the package before it chooses the backend

# Keras's own arrays do not support NumPy's newest keyword.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

SIZE, BATCH, EPOCHS = 22, 4, 3
STEPS = -(-SIZE // BATCH)
EYE = np.eye(SIZE, dtype=np.float32)


@pytest.fixture(autouse=True)
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADWATER_LOG_DIR", str(tmp_path / "logs"))
    return tmp_path / "logs"


def example(number: Any) -> tuple[Any, Any]:
    return EYE[number], np.float32(0.0)


class Batches(keras.utils.PyDataset):
    def __len__(self) -> int:
        return STEPS

    def __getitem__(self, index: int) -> Any:
        rows = EYE[index * BATCH : (index + 1) * BATCH]
        return rows, np.zeros(len(rows), np.float32)


class Sequence:
    """Returns batches by their numbers; a class that Keras does not know."""

    def __len__(self) -> int:
        return STEPS

    def __getitem__(self, index: int) -> Any:
        return Batches()[index]

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(STEPS))


def lines(folder: Path) -> Any:
    path = folder / "numbers"
    path.write_text("".join(f"{number}\n" for number in range(SIZE)))
    return TextLineDataset(str(path)).map(lambda line: example(int(line.item())))


SOURCES: dict[str, Callable[[Path], Any]] = {
    "arrays": lambda _: EYE,
    "PyDataset": lambda _: Batches(),
    "sequence": lambda _: Sequence(),
    "dataset": lambda _: Dataset.range(SIZE).map(example).batch(BATCH).prefetch(2),
    "shuffled": lambda _: Dataset.range(SIZE).shuffle(SIZE).map(example).batch(BATCH),
    "batches shuffled": lambda _: Dataset.range(SIZE).map(example).batch(BATCH).shuffle(3, seed=1),
    "filtered": lambda _: Dataset.range(2 * SIZE).filter(lambda n: n < SIZE).shuffle(5).map(example).batch(BATCH),
    "file": lambda folder: lines(folder).batch(BATCH),
    "flattened": lambda _: Dataset.range(2).flat_map(
        lambda n: Dataset.range(n * 9, 9 + n * 13).map(example)
    ).batch(BATCH),
}  # fmt: skip


class Total(keras.losses.Loss):
    def call(self, y_true: Any, y_pred: Any) -> Any:
        del y_true
        return keras.ops.sum(y_pred, axis=-1)


def counting() -> Any:
    """Returns a model in which each weight decreases by 1 each time an example is applied."""
    model = keras.Sequential(
        [keras.Input((SIZE,)), keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")], name="counts"
    )
    model.compile(keras.optimizers.SGD(1.0), Total(reduction="sum"))
    return model


def fit(data: Any, consistency: str, workers: int, **settings: Any) -> tuple[np.ndarray, list[Any]]:
    """Trains; returns how often each example was applied, and the histories of all workers."""
    cluster = Cluster(counting, workers=workers, consistency=consistency)
    try:
        if isinstance(data, np.ndarray):
            settings |= {"y": np.zeros(SIZE, np.float32), "batch_size": BATCH}
        settings.setdefault("epochs", EPOCHS)
        histories = cluster.fit(data, **settings)
        return -np.asarray(cluster.models[0].get_weights()[0])[:, 0], histories
    finally:
        cluster.stop()


def audited(logs: Path, epochs: int) -> Audit:
    found = audit(str(logs))
    assert found.exact, found
    (run,) = found.runs.values()
    assert [epoch.over for epoch in run.epochs.values()] == [True] * epochs
    return found


@pytest.mark.parametrize(
    ("kind", "consistency", "workers"),
    [*((kind, *how) for kind in SOURCES for how in (("async", 2), ("sync", 3))), ("dataset", "k=1", 2)],
)
def test_each_example_is_applied_once(kind: str, consistency: str, workers: int, logs: Path, tmp_path: Path) -> None:
    found, histories = fit(SOURCES[kind](tmp_path), consistency, workers)
    if consistency != "k=1":  # there, a part of a batch has the same weight as the whole batch
        np.testing.assert_allclose(found, EPOCHS, rtol=1e-5)
    audited(logs, EPOCHS)
    # Without rounds, the chief does not wait for others, and a worker that connects late has no logs of earlier epochs.
    whole = histories[:1] if consistency == "async" else histories
    assert all(len(history.history["loss"]) == EPOCHS for history in whole)


@pytest.mark.parametrize("consistency", ["async", "sync"])
def test_steps_per_epoch_go_through_the_data_in_several_epochs(consistency: str, logs: Path) -> None:
    data = Dataset.range(SIZE).map(example).batch(BATCH)
    found, _ = fit(data, consistency, 2, steps_per_epoch=4, epochs=4)  # of 4, 2, 4 and 2 batches
    np.testing.assert_allclose(found, 2, rtol=1e-5)
    (run,) = audited(logs, 4).runs.values()
    assert len({epoch.size for epoch in run.epochs.values()}) == 2


@pytest.mark.parametrize("kind", ["at once", "file"])
def test_an_infinite_dataset_continues_at_the_end_of_the_previous_epoch(kind: str, logs: Path, tmp_path: Path) -> None:
    data = Dataset.range(SIZE).map(example) if kind == "at once" else lines(tmp_path)
    found, _ = fit(data.repeat().batch(BATCH), "async", 2, steps_per_epoch=11, epochs=2)  # 88 examples
    np.testing.assert_allclose(found, 4, rtol=1e-5)
    audited(logs, 2)


def test_validation_and_class_weights_are_as_ever(logs: Path) -> None:
    data = Dataset.range(SIZE).map(lambda n: (EYE[n], np.int32(n % 2))).batch(BATCH)
    found, histories = fit(data, "async", 1, class_weight={0: 1.0, 1: 2.0}, validation_data=data, epochs=1)
    np.testing.assert_allclose(found, np.arange(SIZE) % 2 + 1, rtol=1e-5)
    assert list(histories[0].history) == ["loss", "val_loss"]
    audited(logs, 1)


def generated() -> Iterator[Any]:
    for number in range(SIZE):
        yield EYE[number], np.float32(0.0)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Dataset.from_generator(generated, (np.float32, np.float32), ((SIZE,), ())), "a generator"),
        (lambda: Dataset.range(SIZE).flat_map(lambda n: Dataset.range(n, n + 1).shuffle(2)), "whose order may change"),
        (lambda: (Batches()[index] for index in range(STEPS)), "a generator may yield different elements"),
    ],
    ids=["generator", "random interleave", "iterator"],
)
def test_unrepeatable_data_are_not_accounted_for_and_a_warning_is_logged(
    make: Callable[[], Any], reason: str, logs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = make()
    if isinstance(data, Dataset):
        data = data if "Generated" in type(data.node).__name__ else data.map(example)
        data = data.batch(BATCH)
    with caplog.at_level(logging.WARNING):
        found, _ = fit(data, "async", 1, epochs=1)
    np.testing.assert_allclose(found, 1)
    assert reason in caplog.text
    assert "are not accounted for" in caplog.text
    assert not logs.exists()


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 9])
def test_parts_of_a_batch_are_all_of_it(rows: int) -> None:
    """The parts contain all rows of a batch, also of batches that differ in size from the first."""
    sizes = [4, rows]

    class Uneven(Batches):
        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: int) -> Any:
            return np.arange(sizes[index], dtype=np.float32) + 10 * index

    batches = make_batches(Uneven(), batch_size=None, shuffle=False, class_weight=None, steps=None)
    plan = batches.plan(0, divided=True)
    assert plan == Plan(size=8, batch=4, shuffle=False, unit="parts")
    for cut in range(5, 8):
        shares = [batches.load_range(Work(0, *span), 0) for span in ((0, 4), (4, cut), (cut, 8))]
        assert [share.whole for share in shares] == [4, rows, rows]
        found = [float(value) for share in shares for value in share.data[: share.rows]]
        assert found == [*range(4), *(10 + row for row in range(rows))]


def test_each_epoch_equals_that_of_one_machine() -> None:
    """A dataset's own shuffles, with a seed, have the same order as in repeated iteration on one machine."""
    data = Dataset.range(SIZE).shuffle(SIZE, seed=3).batch(BATCH)
    expected = [[batch.tolist() for batch in data.as_numpy_iterator()] for _ in range(2)]
    assert expected[0] != expected[1]
    batches: Any = make_batches(data, batch_size=None, shuffle=True, class_weight=None, steps=None)
    batches.start_training(7)
    for epoch in (1, 0):
        assert batches.plan(epoch, divided=False).size == STEPS
        found = [batches.load_range(Work(epoch, number, number + 1), 0).data.tolist() for number in range(STEPS)]
        assert found == expected[epoch]
