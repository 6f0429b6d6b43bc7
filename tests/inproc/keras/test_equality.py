"""Several workers have the results of one Keras process, for programs from the table of `tests.support.equality`."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.support import equality
from tests.support.equality import COLUMNS, Program, alone, every_pair, mirrored, require_equal, served
from tests.support.mirrored import with_workers

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
    Program(data="ending generator", callbacks="stops", validation="data", optimizer="warming"),
    Program(data="generator", executed_steps=3, validation="generator"),
    Program(model="outputs", weights="sample", metrics="weighted", data="dataset", validation="steps"),
    Program(model="recurrent", optimizer="scaled and accumulated", data="pydataset", executed_steps=2),
    Program(model="measured", metrics="largest", validation="data"),
    Program(optimizer="anchored", data="finite threaded pydataset", validation="threaded pydataset"),
    Program(model="measured", penalty="activity", data="dataset", optimizer="adam", executed_steps=3),
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


class OwnMetrics(keras.Model):
    """A model that updates metrics of its own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.largest = equality.Largest("largest output")
        self.mean = keras.metrics.Mean(name="mean of means")
        self.sums = keras.metrics.Mean(name="mean of sums")

    def measure(self, predicted: Any) -> None:
        self.largest.update_state(predicted, predicted)
        self.mean.update_state(equality.ops.mean(predicted))
        self.sums.update_state(equality.ops.sum(predicted))


class InCall(OwnMetrics):
    def call(self, *args: Any, **kwargs: Any) -> Any:
        outputs = super().call(*args, **kwargs)
        self.measure(outputs)
        return outputs


class InLoss(OwnMetrics):
    def compute_loss(self, x: Any = None, y: Any = None, y_pred: Any = None, *args: Any, **kwargs: Any) -> Any:
        self.measure(y_pred)
        return super().compute_loss(x, y, y_pred, *args, **kwargs)


class InLossOfLayer(OwnMetrics):
    """Calls a layer in its loss."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.teacher = keras.layers.Dense(1, kernel_initializer="ones", trainable=False)
        self.teacher.build((None, 4))

    def compute_loss(self, x: Any = None, y: Any = None, y_pred: Any = None, *args: Any, **kwargs: Any) -> Any:
        self.measure(y_pred)
        difference = equality.ops.mean((self.teacher(x) - y_pred) ** 2)
        return super().compute_loss(x, y, y_pred, *args, **kwargs) + 0.1 * difference


class InMetrics(OwnMetrics):
    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        self.measure(y_pred)
        return super().compute_metrics(x, y, y_pred, sample_weight)


class InStep(InCall):
    """Updates its metrics in its own training step, and in `call`."""

    def train_step(self, state: Any, data: Any) -> Any:
        trainable, others, slots, metrics = state
        gradient = jax.value_and_grad(self.compute_loss_and_updates, has_aux=True)
        (_, (loss, y_pred, others, metrics)), gradients = gradient(
            trainable, others, metrics, *data, None, training=True, optimizer_variables=slots
        )
        trainable, slots = self.optimizer.stateless_apply(slots, gradients, trainable)
        with keras.StatelessScope(list(zip(self.metrics_variables, metrics, strict=True))) as scope:
            self.metrics[0].update_state(loss, sample_weight=len(data[0]))
            self.measure(y_pred)
            logs = self.get_metrics_result()
        metrics = [scope.get_current_value(variable) for variable in self.metrics_variables]
        return logs, (trainable, others, slots, metrics)


class Loses(InCall):
    """Calls itself in a way that loses the changes of metrics."""

    def train_step(self, state: Any, data: Any) -> Any:
        trainable, others, slots, metrics = state

        def loss_of(trainable: Any) -> Any:
            return equality.ops.mean((self.stateless_call(trainable, others, data[0])[0] - data[1]) ** 2)

        loss, gradients = jax.value_and_grad(loss_of)(trainable)
        trainable, slots = self.optimizer.stateless_apply(slots, gradients, trainable)
        return {"loss": loss}, (trainable, others, slots, metrics)


def of_class(kind: Any) -> Any:
    def build(**_: Any) -> Any:
        given = keras.Input((4,))
        return kind(given, keras.layers.Dense(1)(keras.layers.Dense(3, activation="tanh")(given)))

    return build


@pytest.mark.parametrize("kind", [InCall, InLoss, InLossOfLayer, InMetrics, InStep])
def test_metrics_of_a_model_are_equal_wherever_it_updates_them(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(equality.MODELS, "dense", of_class(kind))
    check(Program(metrics="none", validation="data"))


@pytest.mark.parametrize("run", [mirrored, served])
def test_an_update_of_a_metric_that_a_step_loses_is_refused_by_name(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(equality.MODELS, "dense", of_class(Loses))
    with pytest.raises(ValueError, match="metric 'largest output' is updated in the call of Loses, but its train_step"):
        run(Program(metrics="none"))


class Clips(InStep):
    """Clips its weights after each update."""

    def train_step(self, state: Any, data: Any) -> Any:
        logs, (trainable, *others) = super().train_step(state, data)
        return logs, ([equality.ops.clip(value, -0.5, 0.5) for value in trainable], *others)


@pytest.mark.parametrize("run", [mirrored, served])
def test_a_step_that_changes_weights_without_the_optimizer_is_refused_by_name(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(equality.MODELS, "dense", of_class(Clips))
    with pytest.raises(ValueError, match=r"train_step of Clips changes .*kernel, .* other than by self.optimizer"):
        run(Program(metrics="none"))


class Counts(keras.layers.Layer):
    """Counts rows, as an integer."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: Any = self.add_weight(shape=(), initializer="zeros", dtype="int32", trainable=False, name="rows")

    def call(self, inputs: Any) -> Any:
        self.rows.assign(self.rows + equality.ops.shape(inputs)[0])
        return inputs


def test_sums_of_integers_are_equal_or_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        equality.MODELS, "dense", lambda: keras.Sequential([keras.Input((4,)), Counts(), keras.layers.Dense(1)])
    )
    program = Program(metrics="none", validation="data")
    expected = alone(program)
    for found in mirrored(program):
        require_equal(found, expected, "mirrored")
    require_equal(served(program, workers=1)[0], expected, "sync")
    with pytest.raises(ValueError, match=r"variable .*/rows' cannot be kept on parameter servers: .* is the sum"):
        served(program)


def absolute_sum(y_true: Any, y_pred: Any) -> Any:
    """Metric function that returns one number for a batch: a sum over rows."""
    return equality.ops.sum(equality.ops.abs(y_true - y_pred))


def test_a_metric_function_that_sums_is_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(equality.METRICS, "sum", lambda: [absolute_sum])
    check(Program(metrics="sum"))


@pytest.mark.parametrize("run", [mirrored, served])
def test_a_loss_of_a_whole_batch_is_refused_by_name(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:

    def largest_error(y_true: Any, y_pred: Any) -> Any:
        return equality.ops.max(equality.ops.abs(y_true - y_pred))

    monkeypatch.setitem(equality.LOSSES, "mse", lambda _: largest_error)
    with pytest.raises(ValueError, match="loss 'largest_error' cannot be computed by several workers"):
        run(Program(metrics="none"))


def test_state_of_variables_that_depend_on_each_other_is_equal_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(equality.METRICS, "variance", lambda: [equality.Variance()])
    program = Program(metrics="variance", validation="data")
    expected = alone(program)
    for consistency in ("sync", "async"):
        require_equal(served(program, workers=1, consistency=consistency)[0], expected, consistency)
    for run in (mirrored, served):
        with pytest.raises(ValueError, match="metric 'variance' cannot be computed by several workers"):
            run(program)


@pytest.mark.parametrize("run", [mirrored, served])
@pytest.mark.parametrize(
    ("column", "option", "made", "text"),
    [
        ("LOSSES", "mse", lambda _: keras.losses.CosineSimilarity(axis=0), "loss 'cosine_similarity'"),
        ("METRICS", "none", lambda: [keras.metrics.CosineSimilarity(axis=0)], "metric 'cosine_similarity'"),
    ],
)
def test_losses_and_metrics_along_rows_are_refused_by_name(
    column: str, option: str, made: Any, text: str, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(getattr(equality, column), option, made)
    with pytest.raises(ValueError, match=f"{text} cannot be computed by several workers"):
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


class Declares(keras.layers.Layer):
    """Declares how the values of workers are merged."""

    def __init__(self) -> None:
        super().__init__()
        declared = {"sum": "sum", "mean": "mean", "first": "only_first_replica"}
        self.states: Any = {
            name: self.add_weight(shape=(4,), initializer="zeros", trainable=False, name=name, aggregation=aggregation)
            for name, aggregation in declared.items()
        }

    def call(self, inputs: Any) -> Any:
        self.states["sum"].assign_add(equality.ops.sum(inputs, axis=0))
        self.states["mean"].assign(equality.ops.mean(inputs, axis=0))
        self.states["first"].assign(inputs[0])
        return inputs


def test_state_of_layers_is_merged_as_it_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        equality.MODELS, "dense", lambda: keras.Sequential([keras.Input((4,)), Declares(), keras.layers.Dense(1)])
    )
    check(Program(metrics="none", validation="data"))


def test_a_shuffled_pydataset_with_threads_is_refused_by_name() -> None:
    def run(model: Any) -> None:
        model.fit(equality.Batches((equality.DENSE, equality.TARGETS), endless=False, workers=2), verbose=0)

    with pytest.raises(ValueError, match="Batches with workers or use_multiprocessing cannot be shuffled equally"):
        with_workers(2, lambda _, mirror: run(mirror(equality.make(Program()))))
