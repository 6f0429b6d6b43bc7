"""Several workers have the results of one Keras process, for programs from the table of `tests.support.equality`."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.support import equality
from tests.support.equality import COLUMNS, Program, alone, every_pair, mirrored, require_equal, served

import keras  # isort: skip - the package before it chooses the backend

pytestmark = [
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
    # Keras warns of data that end within an epoch of ``steps_per_epoch``, with one process as well.
    pytest.mark.filterwarnings("ignore:Your input ran out of data"),
]

#: Programs that failed before a fix, and one for each kind of data.
FEW = (
    Program(reduction="mean_with_sample_weight", weights="sample", metrics="of a batch", data="dataset"),
    Program(model="masked", penalty="kernel", metrics="largest", data="shorter epochs"),
    Program(model="classes", weights="class", penalty="activity", metrics="last", data="pydataset"),
    Program(reduction="sum", penalty="kernel", optimizer="accumulated", data="threaded pydataset"),
    Program(model="classes", data="finite generator", metrics="largest", callbacks="rates"),
    Program(data="ending generator", callbacks="stops", validation="data"),
    Program(data="generator", executed_steps=3),
    Program(model="outputs", weights="sample", metrics="weighted", data="dataset", validation="steps"),
    Program(model="recurrent", optimizer="scaled and accumulated", data="pydataset", executed_steps=2),
)


def check(program: Program) -> None:
    expected = alone(program)
    for found in mirrored(program):
        require_equal(found, expected, f"mirrored {program}")
    if program.model != "normalized":  # parameter servers refuse it
        first, *_ = served(program)
        require_equal(first, expected, f"sync {program}")
    (only,) = served(program, workers=1, consistency="async")
    require_equal(only, expected, f"async {program}")


@pytest.mark.parametrize("program", FEW, ids=lambda program: f"{program.model}, {program.data}")
def test_workers_train_like_one_process(program: Program) -> None:
    check(program)


@pytest.mark.long
@pytest.mark.parametrize("program", every_pair(), ids=str)
def test_every_pair_of_choices_is_equal_to_one_process(program: Program) -> None:
    check(program)


@pytest.mark.parametrize("examples", [2, pytest.param(60, marks=pytest.mark.long)])
def test_any_choice_is_equal_to_one_process(examples: int) -> None:
    @settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.fixed_dictionaries({name: st.sampled_from(choices) for name, choices in COLUMNS.items()}))
    def draw(choices: dict[str, Any]) -> None:
        program = Program(**choices)
        assume(program.possible)
        check(program)

    draw()


class NeverReset(keras.metrics.Mean):
    """The mean target since the model was compiled."""

    def update_state(  # pyrefly: ignore[bad-override]
        self, y_true: Any, y_pred: Any, sample_weight: Any = None
    ) -> None:
        super().update_state(y_true)

    def reset_state(self) -> None:
        pass


def test_logs_of_batches_cover_all_workers_and_earlier_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(equality.METRICS, "never reset", lambda: [NeverReset(name="mean")])
    program = Program(metrics="never reset")
    expected = alone(program)
    assert len(expected.batches) == 9
    for found in [*mirrored(program), *served(program, workers=3)]:
        require_equal(found, expected, "batches")


@pytest.mark.parametrize("data", ["arrays", "generator"])
def test_a_stop_by_one_worker_stops_all_after_the_same_update(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only one worker has the row in whose loss `TerminateOnNaN` finds a NaN."""
    targets = equality.TARGETS.copy()
    targets[10] = np.nan  # in the second batch of eight
    monkeypatch.setattr(equality, "TARGETS", targets)
    monkeypatch.setitem(equality.CALLBACKS, "none", lambda: [keras.callbacks.TerminateOnNaN()])
    program = Program(metrics="none", data=data)
    assert alone(program).updates == 2
    assert [found.updates for found in served(program, workers=3)] == [2, 2, 2]


class Calls(keras.callbacks.Callback):
    """Records the calls at the boundaries of executions."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, int]] = []

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        self.calls.append(("begins", batch))

    def on_train_batch_end(self, batch: int, logs: object = None) -> None:
        self.calls.append(("ends", batch))


def test_an_execution_that_the_end_of_the_data_cuts_short_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Calls] = []
    monkeypatch.setitem(equality.CALLBACKS, "none", lambda: [found.append(Calls()) or found[-1]])
    program = Program(data="finite generator", executed_steps=2)  # of three batches
    alone(program)
    served(program, workers=1, consistency="async")
    # Keras itself begins another execution before it finds that no data are left.
    ends, expected = ([call for call in each.calls if call[0] == "ends"] for each in (found[1], found[0]))
    assert ends == expected
    assert found[1].calls[:4] == [("begins", 0), ("ends", 1), ("begins", 2), ("ends", 3)]
    assert len(found[1].calls) == 2 * len(ends)


class Halves(keras.callbacks.Callback):
    """Halves the last bias after each epoch."""

    def on_epoch_end(self, epoch: int, logs: object = None) -> None:
        assert self.model is not None
        self.model.layers[-1].bias.assign(self.model.layers[-1].bias * 0.5)


class Restarts(keras.callbacks.Callback):
    """Sets the momentum of the optimizer to zero before each batch."""

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        assert self.model is not None
        self.model.optimizer.variables[2].assign(self.model.optimizer.variables[2] * 0.0)


class Validates(keras.callbacks.Callback):
    """Sets the last bias to zero in a validation."""

    def on_test_batch_end(self, batch: int, logs: object = None) -> None:
        assert self.model is not None
        self.model.layers[-1].bias.assign(self.model.layers[-1].bias * 0.0)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Validates, "on_test_batch_end of callback Validates assigns .*bias"),
        (Halves, "on_epoch_end of callback Halves assigns .*bias"),
        (Restarts, "on_train_batch_begin of callback Restarts assigns .*momentum"),
    ],
)
def test_assignments_by_callbacks_are_equal_or_refused_by_name(
    kind: Any, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(equality.CALLBACKS, "none", lambda: [kind()])
    program = Program(metrics="none", validation="data")
    require_equal(mirrored(program)[0], alone(program), "mirrored")
    with pytest.raises(ValueError, match=text):
        served(program, workers=1)  # only the chief validates, so another worker would wait for it


class Evaluates(keras.callbacks.Callback):
    """Evaluates the model after each epoch."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        assert self.model is not None
        logs["by callback"] = self.model.evaluate(equality.DENSE, equality.TARGETS, verbose=0)


def test_callbacks_may_evaluate_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(equality.CALLBACKS, "none", lambda: [Evaluates()])
    program = Program(metrics="none")
    expected = alone(program)
    assert len(expected.history["by callback"]) == 3
    for found in served(program):
        require_equal(found, expected, "sync")


@pytest.mark.filterwarnings("ignore:Limiting")
def test_limits_of_epochs_and_steps_apply(request: pytest.FixtureRequest) -> None:
    for set_limit in (keras.config.set_max_epochs, keras.config.set_max_steps_per_epoch):
        set_limit(2)
        request.addfinalizer(functools.partial(set_limit, None))
    program = Program(metrics="none")
    expected = alone(program)
    assert len(expected.history["loss"]) == 2
    for found in served(program):
        require_equal(found, expected, "sync")


@pytest.mark.parametrize("run", [mirrored, served])
def test_a_loss_of_a_whole_batch_is_refused_by_name(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:

    def largest_error(y_true: Any, y_pred: Any) -> Any:
        return equality.ops.max(equality.ops.abs(y_true - y_pred))

    monkeypatch.setitem(equality.LOSSES, "mse", lambda _: largest_error)
    with pytest.raises(ValueError, match="loss 'largest_error' cannot be computed by several workers"):
        run(Program(metrics="none"))


@pytest.mark.parametrize("run", [mirrored, served])
def test_a_metric_of_flags_of_whole_batches_is_refused_by_name(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The flag of the larger part of a batch often equals the flag of the batch, but that is not a merge."""

    class Seen(keras.metrics.Metric):
        def __init__(self) -> None:
            super().__init__(name="seen")
            self.flags: Any = self.add_weight(shape=(4,), initializer="zeros", dtype="bool", name="flags")

        def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
            largest = equality.ops.cast(equality.ops.max(y_true) % 4, "int32")
            self.flags.assign(equality.ops.logical_or(self.flags, equality.ops.arange(4) == largest))

        def result(self) -> Any:
            return equality.ops.sum(equality.ops.cast(self.flags, "float32"))

    monkeypatch.setattr(equality, "TARGETS", np.arange(1, equality.ROWS + 1, dtype=np.float32)[:, None])
    monkeypatch.setitem(equality.METRICS, "seen", lambda: [Seen()])
    with pytest.raises(ValueError, match="metric 'seen' cannot be computed by several workers"):
        run(Program(metrics="seen"))
