"""Programs with unusual parts: several workers have the results of one Keras process, or refuse the program by name."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from headwater.data.dataset import Dataset
from headwater.keras.programs import updates_made
from tests.inproc.keras.test_parameter_server_strategy import Cluster
from tests.support.equality import CLASSES, DENSE, SEQUENCES, TARGETS, WEIGHTS, Largest
from tests.support.mirrored import in_threads, with_workers

import keras  # isort: skip - the package before it chooses the backend

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

ops: Any = keras.ops
layers: Any = keras.layers
optimizers: Any = keras.optimizers
callbacks: Any = keras.callbacks
ARRAYS: dict[str, Any] = {"x": DENSE, "y": TARGETS, "batch_size": 8, "shuffle": False, "verbose": 0}
PART: Any = (DENSE[:13], TARGETS[:13])
#: The results of a training by name: losses, predictions and the like.
Found = dict[str, Any]


def with_weights(model: Any) -> Any:
    """Sets weights that do not depend on random numbers that Keras has drawn before."""
    rng = np.random.default_rng(2)
    model.set_weights(
        [
            rng.normal(size=np.shape(value)).astype(np.float32) * 0.5 if np.asarray(value).dtype.kind == "f" else value
            for value in model.get_weights()
        ]
    )
    return model


def model_of(*between: Any, kind: Any = keras.Model, **settings: Any) -> Any:
    inputs = keras.Input((4,))
    outputs: Any = layers.Dense(3, activation="tanh", name="hidden")(inputs)
    for layer in between:
        outputs = layer(outputs)
    model = with_weights(kind(inputs, layers.Dense(1, name="out")(outputs)))
    settings = {"optimizer": optimizers.SGD(0.05, momentum=0.5), "loss": "mse", "metrics": ["mae"]} | settings
    model.compile(**settings)
    return model


def fit(model: Any, **settings: Any) -> Found:
    history = model.fit(**{**ARRAYS, "epochs": 2, **settings}).history
    return {**history, "evaluated": model.evaluate(*PART, batch_size=5, verbose=0)}


class Steps(keras.Model):
    """A model with custom steps, as in Keras's guide: it logs results of its metrics, and other values."""

    spread: Any = None

    def _logs(self, before: Any, y: Any, predicted: Any, loss: Any) -> Any:
        logs: dict[str, Any] = {}
        after: list[Any] = []
        for metric in self.metrics:
            values = before[len(after) : len(after) + len(metric.variables)]
            pair = (loss,) if metric.name in ("loss", "spread") else (y, predicted)
            values = metric.stateless_update_state(values, *pair)
            logs["renamed" if metric.name == "spread" else metric.name] = metric.stateless_result(values)
            after += values
        return {**logs, "constant": 3.0, "predicted": ops.mean(predicted)}, after

    def _loss(self, trainable: Any, others: Any, x: Any, y: Any) -> Any:
        predicted, others = self.stateless_call(trainable, others, x, training=True)
        return ops.mean(ops.square(y - predicted)) + 0.1 * ops.mean(ops.abs(predicted)), (predicted, others)

    def train_step(self, state: Any, data: Any) -> Any:
        trainable, others, optimizer, metrics = state
        gradient: Any = jax.value_and_grad(self._loss, has_aux=True)
        (loss, (predicted, others)), found = gradient(trainable, others, *data)
        trainable, optimizer = self.optimizer.stateless_apply(optimizer, found, trainable)
        logs, metrics = self._logs(metrics, data[1], predicted, loss)
        return logs, (trainable, others, optimizer, metrics)

    def test_step(self, state: Any, data: Any) -> Any:
        trainable, others, metrics = state
        loss, (predicted, others) = self._loss(trainable, others, *data)
        logs, metrics = self._logs(metrics, data[1], predicted, loss)
        return logs, (trainable, others, metrics)


def with_steps(**settings: Any) -> Any:
    model = model_of(kind=Steps, **settings)
    model.spread = keras.metrics.Mean(name="spread")
    model.compile(optimizers.SGD(0.05), "mse", metrics=["mae"], **settings)
    return model


class Lowest(keras.metrics.Metric):
    """A metric with several kinds of state, and two results."""

    def __init__(self) -> None:
        super().__init__(name="lowest")
        self.sum: Any = self.add_weight(shape=(), initializer="zeros", name="sum")
        self.count: Any = self.add_weight(shape=(), initializer="zeros", dtype="int32", name="count")
        self.low: Any = self.add_weight(shape=(), initializer=keras.initializers.Constant(99.0), name="low")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.sum.assign_add(ops.sum(y_true))
        self.count.assign_add(ops.shape(y_true)[0])
        self.low.assign(ops.minimum(self.low, ops.min(y_true)))

    def result(self) -> Any:
        return {"mean": self.sum / ops.cast(self.count, "float32"), "low": self.low + 0.0}


def two_outputs() -> Any:
    inputs = keras.Input((4,))
    hidden = layers.Dense(3, activation="tanh")(inputs)
    model = with_weights(keras.Model(inputs, [layers.Dense(1, name="a")(hidden), layers.Dense(3, name="b")(hidden)]))
    entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")
    model.compile(optimizers.Adam(0.02), ["mse", entropy], loss_weights=[0.3, 0.2], metrics=[["mae"], ["accuracy"]])
    return model


def scaled() -> Any:
    return model_of(optimizer=optimizers.LossScaleOptimizer(optimizers.Adam(0.02), 2.0**24, 3))


def averaged() -> Any:
    return model_of(optimizer=optimizers.SGD(0.05, use_ema=True, ema_overwrite_frequency=2))


class ByBatch(keras.callbacks.Callback):
    """Sets the learning rate in every step, and ends the training within an epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.batches = 0

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        assert self.model is not None
        self.model.optimizer.learning_rate = 0.05 / (1 + batch)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.batches += 1
        assert self.model is not None
        self.model.stop_training = self.batches == 5


def compiled_again(model: Any) -> Found:
    """Compiles the model with another loss and other metrics, then with a new optimizer of the same kind."""
    found = [fit(model)]
    model.compile(model.optimizer, "mae", metrics=[keras.metrics.MeanSquaredError(), "mape"])
    found.append(fit(model, epochs=1))
    model.compile(optimizers.SGD(0.05, momentum=0.5), "mse")
    found.append(fit(model, epochs=1))
    return {f"{number} {name}": value for number, part in enumerate(found) for name, value in part.items()}


def several_fits(model: Any) -> Found:
    found = fit(model)
    model.optimizer.learning_rate = 0.001
    second = model.fit(**ARRAYS | {"x": DENSE[:16], "y": TARGETS[:16]}, epochs=4, initial_epoch=2).history
    model.set_weights([value * 0.5 for value in model.get_weights()])
    return {**found, "second": second["loss"], "third": model.fit(**ARRAYS).history["loss"]}


def by_hand(model: Any) -> Found:
    found = [model.train_on_batch(DENSE[at : at + 8], TARGETS[at : at + 8]) for at in (0, 8, 16)]
    weights = model.get_weights()
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model.keras")
        saved: Any = keras.models.load_model(f"{folder}/model.keras")
    return {
        "found": found,
        "weights": weights,
        "saved": updates_made(saved.optimizer),
        "weights again": saved.get_weights(),
    }


class Counts(keras.layers.Layer):
    """Multiplies its inputs by a number that grows in each call, also in inference."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Any = self.add_weight(shape=(), initializer="zeros", trainable=False, name="calls")

    def call(self, inputs: Any) -> Any:
        self.calls.assign_add(1.0)
        return inputs * (1 + 0.1 * self.calls)


def changed_between_steps(model: Any) -> Found:
    """Changes variables between steps in all ways, and reads them directly."""
    found: list[Any] = []
    for step in range(6):
        part = slice(step % 2 * 8, step % 2 * 8 + 8)
        found.append(model.train_on_batch(DENSE[part], TARGETS[part]))
        match step:
            case 0:
                found.append(model.evaluate(*PART, batch_size=5, verbose=0))
            case 1:
                model.set_weights([value * 0.5 for value in model.get_weights()])
                found.append(model.predict(DENSE, batch_size=5, verbose=0))
            case 2:
                model.layers[-1].bias.assign(model.layers[-1].bias * 0.25)
            case 3:
                for slot in model.optimizer.variables[2:]:
                    slot.assign(slot * 0.1)
            case _:
                model.optimizer.learning_rate = 0.01
        found += [model(DENSE[:3]), model.layers[-1].get_weights(), int(model.optimizer.iterations)]
    return {"found": found, **fit(model)}


class Rows(keras.metrics.Metric):
    """The number of examples."""

    def __init__(self) -> None:
        super().__init__(name="rows")
        self.rows: Any = self.add_weight(shape=(), initializer="zeros", name="rows")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.rows.assign_add(ops.cast(ops.shape(y_true)[0], "float32"))

    def result(self) -> Any:
        return self.rows * 1.0


class Reads(keras.callbacks.Callback):
    """Uses the model within epochs, and evaluates it between them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Any] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        assert self.model is not None
        self.found += [self.model.predict(DENSE, verbose=0), self.model(DENSE[:3]), self.model.get_weights()]

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        assert self.model is not None
        self.found.append(self.model.evaluate(*PART, batch_size=5, verbose=0))


def read_by_callbacks(model: Any) -> Found:
    reads = Reads()
    return {**fit(model, callbacks=[reads]), "found": reads.found}


def evaluated_between_epochs(model: Any) -> Found:
    """Evaluations change state, on which the next steps depend."""

    class Evaluates(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            logs["again"] = model.evaluate(*PART, batch_size=5, verbose=0)[0]

    return {**fit(model, validation_data=PART, callbacks=[Evaluates()]), **model.fit(**ARRAYS, epochs=1).history}


def overflows() -> Any:
    """Returns a model with gradients of 16 bits, which overflow in some steps, in some rows of a batch."""
    inputs = keras.Input((4,))
    hidden = layers.Dense(8, activation="tanh", dtype="mixed_float16")(Counts()(inputs))
    model = with_weights(keras.Model(inputs, layers.Dense(1)(layers.Dense(8, "relu", dtype="mixed_float16")(hidden))))
    scaling = optimizers.LossScaleOptimizer(optimizers.SGD(0.01), initial_scale=2.0**20, dynamic_growth_steps=2)
    model.compile(scaling, "mse")
    return model


class Scales(keras.callbacks.Callback):
    """Records the loss scale and the number of updates after each epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Any] = []

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        assert self.model is not None
        self.found.append((float(self.model.optimizer.dynamic_scale), int(self.model.optimizer.iterations)))


def scaled_in_epochs(model: Any) -> Found:
    scales = Scales()
    # All shares have the same number of rows, so that their gradients are rounded alike.
    history = model.fit(DENSE[:16], TARGETS[:16], batch_size=8, epochs=6, shuffle=False, verbose=0, callbacks=[scales])
    return {"scales": scales.found, "weights": model.get_weights(), "losses": history.history["loss"]}


def uneven() -> Iterator[Any]:
    while True:
        at = 0
        for rows in (5, 3, 8, 1, 5):
            yield DENSE[at : at + rows], TARGETS[at : at + rows], WEIGHTS[at : at + rows]
            at += rows


def generated(model: Any) -> Found:
    history = model.fit(uneven(), epochs=3, steps_per_epoch=4, shuffle=False, verbose=0).history
    return {**history, "predicted": model.predict(DENSE, batch_size=5, verbose=0)}


def repeated(model: Any) -> Found:
    data = Dataset.from_tensor_slices((DENSE, TARGETS)).batch(8).repeat()
    return model.fit(data, epochs=3, steps_per_epoch=4, validation_data=data, validation_steps=2, verbose=0).history


def validated(model: Any) -> Found:
    stopping = callbacks.EarlyStopping(monitor="val_loss", mode="max", patience=1, restore_best_weights=True)
    return fit(
        model,
        epochs=5,
        validation_split=0.25,
        validation_freq=[1, 2, 4],
        validation_batch_size=3,
        sample_weight=WEIGHTS,
        callbacks=[stopping, callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5)],
    )


def saved_averages(model: Any) -> Found:
    """Saves averages of the weights at the end of each epoch; only the first mirrored worker has files."""
    with tempfile.TemporaryDirectory() as folder:
        swapping = callbacks.SwapEMAWeights(swap_on_epoch=True)
        saving = callbacks.ModelCheckpoint(f"{folder}/{{epoch}}.keras")
        found = fit(model, callbacks=[swapping, saving])
        for path in sorted(Path(folder).iterdir()):
            saved: Any = keras.models.load_model(path)
            found[path.name] = saved.get_weights()
    return found


def outputs(model: Any) -> Found:
    weights = [WEIGHTS, WEIGHTS[::-1].copy()]
    return model.fit(
        **ARRAYS | {"y": [TARGETS, CLASSES]}, sample_weight=weights, epochs=2, validation_split=0.3
    ).history


def large(model: Any) -> Found:
    return model.fit(**ARRAYS | {"x": DENSE * 1e4, "y": TARGETS * 1e10}, epochs=4).history


def frozen_normalization() -> Any:
    return model_of(layers.BatchNormalization(trainable=False))


LONG = pytest.mark.long
PROGRAMS: dict[str, tuple[Callable[[], Any], Callable[[Any], Found]]] = {
    "steps of its own": (with_steps, fit),
    "several kinds of state": (lambda: model_of(metrics=[Lowest()]), fit),
    "compiled again": (model_of, compiled_again),
    "by hand": (model_of, by_hand),
    "saved averages": (lambda: model_of(optimizer=optimizers.SGD(0.05, use_ema=True)), saved_averages),
    "read by callbacks": (lambda: model_of(metrics=[Rows()]), read_by_callbacks),
    "evaluated between epochs": (lambda: model_of(Counts()), evaluated_between_epochs),
}
MORE: dict[str, tuple[Callable[[], Any], Callable[[Any], Found]]] = {
    "eager steps": (lambda: with_steps(run_eagerly=True), fit),
    "several outputs": (two_outputs, outputs),
    "scaled losses": (scaled, large),
    "averaged weights": (averaged, fit),
    "by batch": (model_of, lambda model: fit(model, epochs=3, callbacks=[ByBatch()])),
    "several fits": (model_of, several_fits),
    "frozen normalization": (frozen_normalization, fit),
    "generated": (model_of, generated),
    "repeated": (model_of, repeated),
    "validated": (model_of, validated),
    "several steps": (lambda: model_of(steps_per_execution=2), fit),
}


def served(make: Callable[[], Any], run: Callable[[Any], Any], workers: int, consistency: str = "sync") -> Any:
    """Returns the chief's result of a program on parameter servers."""
    cluster = Cluster(make, workers=workers, consistency=consistency)
    try:
        return in_threads([functools.partial(run, model) for model in cluster.models])[0]
    finally:
        cluster.stop()


def mirrored(make: Callable[[], Any], run: Callable[[Any], Any]) -> Any:
    return with_workers(2, lambda _, mirror: run(mirror(make())))[0]


@pytest.mark.parametrize("name", [*PROGRAMS, *(pytest.param(name, marks=LONG) for name in MORE)])
def test_programs_give_what_one_process_gives(name: str) -> None:
    make, run = {**PROGRAMS, **MORE}[name]

    def both(model: Any) -> Found:
        return {**run(model), "weights": model.get_weights(), "updates": updates_made(model.optimizer)}

    expected = both(make())
    found = {
        "mirrored": mirrored(make, both),
        "sync": served(make, both, 2),
        "async": served(make, both, 1, "async"),
    }
    for how, results in found.items():
        assert results.keys() == expected.keys(), how
        for key, value in expected.items():
            for ours, theirs in zip(keras.tree.flatten(results[key]), keras.tree.flatten(value), strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=3e-4, atol=1e-5, err_msg=f"{how}: {key}")


def test_losses_of_16_bits_overflow_in_the_steps_of_one_process() -> None:
    expected = scaled_in_epochs(overflows())
    scales = [scale for scale, _ in expected["scales"]]
    assert max(np.diff(scales)) > 0 > min(np.diff(scales))
    for found in (
        mirrored(overflows, scaled_in_epochs),
        served(overflows, scaled_in_epochs, 2),
        served(overflows, scaled_in_epochs, 1, "async"),
    ):
        assert found["scales"] == expected["scales"]
        for name in ("losses", "weights"):
            for ours, theirs in zip(found[name], expected[name], strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=5e-3, atol=2e-3)


def test_changes_between_steps_reach_the_ps_or_are_refused_by_name() -> None:
    expected = changed_between_steps(model_of(Counts()))
    for run in (mirrored, functools.partial(served, workers=1, consistency="async")):
        found = run(lambda: model_of(Counts()), changed_between_steps)
        for ours, theirs in zip(keras.tree.flatten(found), keras.tree.flatten(expected), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=3e-4, atol=1e-5)
    with pytest.raises(
        ValueError, match=r"changed .*calls of model .* between calls of train_on_batch, and several work"
    ):
        served(lambda: model_of(Counts()), changed_between_steps, workers=2)


def test_a_log_that_is_computed_from_metrics_is_refused_by_name() -> None:
    class Derived(Steps):
        def _logs(self, before: Any, y: Any, predicted: Any, loss: Any) -> Any:
            logs, after = super()._logs(before, y, predicted, loss)
            return {"root": ops.sqrt(logs["loss"])}, after

    # Keras changes the bases of a class at its first model, which fails if two threads do so at once.
    model_of(kind=Derived)
    for run in (mirrored, functools.partial(served, workers=1, consistency="async")):
        with pytest.raises(ValueError, match="log 'root' of Derived cannot be computed by several workers"):
            run(lambda: model_of(kind=Derived), fit)


def test_a_layer_with_a_state_for_each_row_is_refused_by_name() -> None:
    def make() -> Any:
        model = keras.Sequential(
            [keras.Input(batch_shape=(8, 5, 2)), layers.GRU(3, stateful=True, name="memory"), layers.Dense(1)]
        )
        model.compile("sgd", "mse")
        return model

    def run(model: Any) -> Any:
        return model.fit(SEQUENCES[:16], TARGETS[:16], batch_size=8, shuffle=False, verbose=0).history

    for several in (mirrored, functools.partial(served, workers=2)):
        with pytest.raises(ValueError, match="layer 'memory' is stateful"):
            several(make, run)
    np.testing.assert_allclose(served(make, run, 1, "async")["loss"], run(make())["loss"], rtol=0.5)


def test_a_metric_whose_merge_the_examples_do_not_show_is_refused_by_name() -> None:
    """A share has one row, and all examples have one target, so the largest value equals the smallest."""

    def run(model: Any) -> Any:
        return model.fit(DENSE[:2], np.ones(2, np.int32), batch_size=2, verbose=0)

    with pytest.raises(ValueError, match="metric 'largest' cannot be computed by several workers"):
        mirrored(lambda: model_of(metrics=[Largest()]), run)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("freeze", "hidden/bias, hidden/kernel of model .* cannot be frozen or unfrozen between trainings"),
        ("compile", "cannot be compiled with another optimizer between trainings"),
    ],
)
def test_changes_that_the_ps_cannot_follow_are_refused(change: str, message: str) -> None:
    def run(model: Any) -> None:
        fit(model, epochs=1)
        if change == "freeze":
            model.get_layer("hidden").trainable = False
        model.compile("adam" if change == "compile" else model.optimizer, "mse")
        fit(model, epochs=1)

    with pytest.raises(ValueError, match=message):
        served(model_of, run, 1, "async")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"x": DENSE, "y": CLASSES, "sample_weight": WEIGHTS}, "class_weight and sample_weight"),
        ({"x": ((DENSE[:4], CLASSES[:4]) for _ in range(3))}, "class_weight is not supported for generators"),
    ],
    ids=["with sample weights", "generator"],
)
def test_class_weights_are_refused_where_keras_refuses_them(settings: Any, message: str) -> None:
    def run(model: Any) -> None:
        model.fit(**settings, class_weight={0: 1.0, 1: 2.0, 2: 3.0}, verbose=0)

    with pytest.raises(ValueError, match="class_weight"):
        run(model_of())
    with pytest.raises(ValueError, match=message):
        served(model_of, run, 1, "async")
