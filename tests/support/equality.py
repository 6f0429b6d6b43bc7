"""Small Keras programs, drawn from a table of options, with equal results in one process and on several workers."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import keras
import numpy as np

from headwater.data.dataset import Dataset
from tests.inproc.keras.test_parameter_server_strategy import Cluster
from tests.support.mirrored import in_threads, with_workers

ops: Any = keras.ops
ROWS = 22
_random = np.random.default_rng(0)
DENSE = _random.normal(size=(ROWS, 4)).astype("float32")
SEQUENCES = _random.normal(size=(ROWS, 5, 2)).astype("float32")
for _row, _length in enumerate(np.sort(_random.integers(1, 6, ROWS))):
    SEQUENCES[_row, _length:] = 0
CLASSES = _random.integers(0, 3, ROWS).astype("int32")
TARGETS = (DENSE @ _random.normal(size=(4, 1)) + 1).astype("float32")
STEPS = (SEQUENCES.sum(2, keepdims=True) + 0.5).astype("float32")
WEIGHTS = np.where(np.arange(ROWS) % 11 < 5, 0.25, 4.0).astype("float32")


class Largest(keras.metrics.Metric):
    """The largest target so far."""

    def __init__(self, name: str = "largest") -> None:
        super().__init__(name=name)
        self.value: Any = self.add_weight(shape=(), initializer="zeros", name="value")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.value.assign(ops.maximum(self.value, ops.cast(ops.max(y_true), "float32")))

    def result(self) -> Any:
        return self.value * 1.0


class LastMean(keras.metrics.Metric):
    """The mean target of the last batch. The values of the workers are averaged."""

    def __init__(self, name: str = "last") -> None:
        super().__init__(name=name)
        self.value: Any = self.add_variable(shape=(), initializer="zeros", name="value", aggregation="mean")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.value.assign(ops.mean(ops.cast(y_true, "float32")))

    def result(self) -> Any:
        return self.value * 1.0


class Variance(keras.metrics.Metric):
    """The variance of the targets, from a mean and a sum of squares that depend on each other [Welford 1962]."""

    def __init__(self, name: str = "variance") -> None:
        super().__init__(name=name)
        self.count, self.mean, self.squares = (
            self.add_weight(shape=(), initializer="zeros", name=part) for part in ("count", "mean", "squares")
        )

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        values = ops.cast(y_true, "float32")
        number, difference = ops.cast(ops.size(values), "float32"), ops.mean(values) - self.mean
        shared = difference**2 * self.count * number / (self.count + number)
        self.squares.assign_add(ops.sum((values - ops.mean(values)) ** 2) + shared)
        self.mean.assign_add(difference * number / (self.count + number))
        self.count.assign_add(number)

    def result(self) -> Any:
        return self.squares / self.count


def batch_range(y_true: Any, y_pred: Any) -> Any:
    """Metric function that returns one number for a batch, rather than one for each row."""
    return ops.cast(ops.max(y_true), "float32")


def mean_cubed(y_true: Any, y_pred: Any) -> Any:
    """Loss function that returns one number for a batch: a mean over rows."""
    return ops.mean(ops.abs(ops.cast(y_true, y_pred.dtype) - y_pred) ** 3)


def sum_squared(y_true: Any, y_pred: Any) -> Any:
    """Loss function that returns one number for a batch: a sum over rows."""
    return ops.sum(ops.square(y_true - y_pred)) / 10


def dense(**penalty: Any) -> Any:
    """Returns a network with four inputs and one output."""
    hidden = keras.layers.Dense(3, activation="tanh", **penalty)
    return keras.Sequential([keras.Input((4,)), hidden, keras.layers.Dense(1)])


def masked(**penalty: Any) -> Any:
    """Returns a network with one output for each step of a sequence; padding is masked."""
    return keras.Sequential([keras.Input((5, 2)), keras.layers.Masking(0.0), keras.layers.Dense(1, **penalty)])


def classes(**penalty: Any) -> Any:
    """Returns a classifier: logits of three classes."""
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, **penalty)])


def outputs(**penalty: Any) -> Any:
    """Returns a network with two outputs: a number and the logits of three classes."""
    given = keras.Input((4,))
    hidden = keras.layers.Dense(3, activation="tanh", **penalty)(given)
    made = {"number": keras.layers.Dense(1, name="number")(hidden), "kind": keras.layers.Dense(3, name="kind")(hidden)}
    return keras.Model(given, made)


def recurrent(**penalty: Any) -> Any:
    """Returns a recurrent network with one output for a sequence; padding is masked."""
    layers = [keras.layers.Masking(0.0), keras.layers.GRU(3, **penalty), keras.layers.Dense(1)]
    return keras.Sequential([keras.Input((5, 2)), *layers])


def spectral(**penalty: Any) -> Any:
    """Returns a network whose kernel is divided by an estimate of its norm, which is state."""
    hidden = keras.layers.SpectralNormalization(keras.layers.Dense(3, activation="tanh", **penalty))
    return keras.Sequential([keras.Input((4,)), hidden, keras.layers.Dense(1)])


class Measures(keras.layers.Layer):
    """Returns its inputs; measures them by metrics and by state, in training and in evaluation."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = keras.metrics.Mean(name="mean input")
        self.sum = keras.metrics.Sum(name="sum of inputs")
        self.mean_of_sums = keras.metrics.Mean(name="mean sum of inputs")
        self.largest = Largest("largest input")
        self.steps: Any = self.add_weight(shape=(), initializer="zeros", trainable=False, name="steps")
        self.rows: Any = self.add_weight(shape=(), initializer="zeros", trainable=False, name="rows")
        self.average: Any = self.add_weight(shape=(4,), initializer="zeros", trainable=False, name="average")
        self.calls: Any = self.add_weight(shape=(), initializer="zeros", dtype="int32", trainable=False, name="calls")

    def call(self, inputs: Any) -> Any:
        self.mean.update_state(inputs)
        self.sum.update_state(ops.sum(inputs))
        self.mean_of_sums.update_state(ops.sum(inputs))
        self.largest.update_state(inputs, inputs)
        self.steps.assign_add(1.0)
        self.rows.assign_add(ops.cast(ops.shape(inputs)[0], "float32"))
        self.average.assign(0.9 * self.average + 0.1 * ops.mean(inputs, axis=0))
        self.calls.assign(self.calls + 1)
        return inputs


class Outer(keras.layers.Layer):
    """A layer that calls `Measures`."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Measures()

    def call(self, inputs: Any) -> Any:
        return self.inner(inputs)


def measured(**penalty: Any) -> Any:
    """Returns a network with metrics and state that a layer within a layer updates."""
    layers = [Outer(), keras.layers.Dense(3, activation="tanh", **penalty), keras.layers.Dense(1)]
    return keras.Sequential([keras.Input((4,)), *layers])


def normalized(**penalty: Any) -> Any:
    """Returns a network that normalizes by the statistics of the whole batch."""
    # The normalization cancels a bias, so that its gradient would be rounding errors, which Adam would enlarge.
    layers = [keras.layers.Dense(3, use_bias=False, **penalty), keras.layers.BatchNormalization(synchronized=True)]
    return keras.Sequential([keras.Input((4,)), *layers, keras.layers.Dense(1)])


class Anchored(keras.optimizers.SGD):
    """Pulls variables towards their initial values, which are state."""

    def build(self, variables: Any) -> None:
        if not self.built:
            super().build(variables)
            made: Any = self.add_optimizer_variables(variables, "anchor")
            for anchor, variable in zip(made, variables, strict=True):
                anchor.assign(ops.copy(variable))
            self.anchors = made

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        pull = variable - self.anchors[self._get_variable_index(variable)]
        super().update_step(gradient + pull, variable, learning_rate)


class Warming(keras.optimizers.schedules.LearningRateSchedule):
    """A schedule of a program, which is not registered and has no configuration."""

    def __call__(self, step: Any) -> Any:
        return 0.01 * ops.minimum(1.0, (ops.cast(step, "float32") + 1) / 4)


_losses: Any = keras.losses
_optimizers: Any = keras.optimizers

MODELS: dict[str, Any] = {
    made.__name__: made for made in (dense, masked, classes, outputs, recurrent, spectral, measured, normalized)
}
LOSSES: dict[str, Callable[[str], Any]] = {
    "mse": lambda reduction: _losses.MeanSquaredError(reduction=reduction),
    "huber": lambda reduction: _losses.Huber(reduction=reduction),
    "mean function": lambda _: mean_cubed,
    "sum function": lambda _: sum_squared,
}
REDUCTIONS = ("sum_over_batch_size", "sum", "mean_with_sample_weight")
EXAMPLE_WEIGHTS = ("none", "sample", "class", "step")
PENALTIES = ("none", "kernel", "activity")
METRICS: dict[str, Callable[[], list[Any]]] = {
    "none": list,
    "means": lambda: ["mae", keras.metrics.RootMeanSquaredError(name="rmse")],
    "weighted": lambda: ["mse"],
    "largest": lambda: [Largest()],
    "last": lambda: [LastMean()],
    "of a batch": lambda: [batch_range],
}
DATA = (
    "arrays",
    "shorter epochs",
    "dataset",
    "pydataset",
    "endless pydataset",
    "threaded pydataset",
    "finite threaded pydataset",
    "generator",
    "finite generator",
    "ending generator",
)
OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: _optimizers.SGD(0.01, momentum=0.5),
    "adam": lambda: _optimizers.Adam(0.02),
    "clipnorm": lambda: _optimizers.SGD(0.01, clipnorm=0.1),
    "global_clipnorm": lambda: _optimizers.SGD(0.01, global_clipnorm=0.1),
    "accumulated": lambda: _optimizers.SGD(0.01, clipnorm=0.3, gradient_accumulation_steps=2),
    "both clipped and averaged": lambda: _optimizers.SGD(
        0.01, momentum=0.3, global_clipnorm=0.3, use_ema=True, ema_overwrite_frequency=2, gradient_accumulation_steps=2
    ),
    "decayed": lambda: _optimizers.AdamW(_optimizers.schedules.ExponentialDecay(0.02, 2, 0.5), weight_decay=0.1),
    "warming": lambda: _optimizers.SGD(Warming(), momentum=0.5),
    "scaled and accumulated": lambda: _optimizers.LossScaleOptimizer(
        _optimizers.Adam(0.02, gradient_accumulation_steps=2), initial_scale=64.0, dynamic_growth_steps=3
    ),
    "anchored": lambda: Anchored(0.05),
    "averaged": lambda: _optimizers.Adam(0.02, use_ema=True, ema_momentum=0.8),
    "scaled": lambda: _optimizers.LossScaleOptimizer(_optimizers.SGD(0.01)),
}
VALIDATION: dict[str, Callable[[Any], dict[str, Any]]] = {
    "none": lambda held: {},
    "data": lambda held: {"validation_data": part(held, 0, 13), "validation_batch_size": 5},
    "rarely": lambda held: {"validation_data": part(held, 0, 13), "validation_batch_size": 5, "validation_freq": 2},
    "steps": lambda held: {"validation_data": Dataset.from_tensor_slices(held).batch(5), "validation_steps": 3},
    "steps of arrays": lambda held: {
        "validation_data": part(held, 0, 13),
        "validation_batch_size": 5,
        "validation_steps": 2,
    },
    "generator": lambda held: {
        "validation_data": (Batches(held, endless=False)[index % 3] for index in itertools.count()),
        "validation_steps": 2,
    },
    "pydataset": lambda held: {"validation_data": Batches(held, endless=False)},
    "threaded pydataset": lambda held: {"validation_data": Batches(held, endless=False, workers=2)},
    "split": lambda held: {"validation_split": 0.3},
}
EXECUTED_STEPS = (1, 3)
_callbacks: Any = keras.callbacks


class Stops(keras.callbacks.Callback):
    """Stops the training within the second epoch, after its first batch."""

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        self.stops = epoch == 1

    def on_train_batch_end(self, batch: int, logs: object = None) -> None:
        assert self.model is not None
        self.model.stop_training = self.stops


class Rates(keras.callbacks.Callback):
    """Sets the learning rate at the boundaries of batches."""

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        assert self.model is not None
        self.model.optimizer.learning_rate = 0.02 / (1 + batch)


class BatchLogs(keras.callbacks.Callback):
    """Records the logs of batches."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[dict[str, float]] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.batches.append(dict(logs or {}))


CALLBACKS: dict[str, Callable[[], list[Any]]] = {
    "none": list,
    "early": lambda: [_callbacks.EarlyStopping(monitor="loss", mode="max", restore_best_weights=True)],
    "plateau": lambda: [_callbacks.ReduceLROnPlateau(monitor="loss", mode="max", factor=0.5, patience=1)],
    "schedule": lambda: [_callbacks.LearningRateScheduler(lambda epoch, rate: rate / (1 + epoch))],
    "stops": lambda: [Stops()],
    "rates": lambda: [Rates()],
}
FIRST_EPOCHS = (0, 1)


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program: one option from each column of the table (`COLUMNS`)."""

    model: str = "dense"
    loss: str = "mse"
    reduction: str = "sum_over_batch_size"
    weights: str = "none"
    penalty: str = "none"
    metrics: str = "means"
    data: str = "arrays"
    optimizer: str = "sgd"
    validation: str = "none"
    callbacks: str = "none"
    first_epoch: int = 0
    executed_steps: int = 1

    @property
    def possible(self) -> bool:
        """Whether Keras supports this combination."""
        of_classes = self.model == "classes"
        if self.loss.endswith("function") and (self.weights != "none" or self.model in ("masked", "classes")):
            return False
        if self.metrics == "of a batch" and self.model == "masked":  # Keras's metrics need a value for each row then
            return False
        if self.weights == "class" and (not of_classes or self.data.endswith("generator")):
            return False
        # Keras multiplies the mask, which has a value for each step, by the weights, which must have a value for each
        # step as well.
        if (self.model == "masked" and self.weights == "sample") or (self.model != "masked" and self.weights == "step"):
            return False
        if self.validation == "split" and self.data not in ("arrays", "shorter epochs"):
            return False
        # The rate of a schedule cannot be set.
        if self.optimizer in ("decayed", "warming") and self.callbacks in ("plateau", "schedule", "rates"):
            return False
        # Keras 3.15 fails, or makes no updates, in executions of several steps after the end of a generator.
        if self.executed_steps > 1 and self.data == "ending generator":
            return False
        # Callbacks are called between executions, so that they act after other batches.
        if self.executed_steps > 1 and self.callbacks in ("stops", "rates"):
            return False
        return not (of_classes and (self.loss != "mse" or self.metrics in ("means", "weighted")))


COLUMNS: dict[str, tuple[Any, ...]] = {
    "model": tuple(MODELS),
    "loss": tuple(LOSSES),
    "reduction": REDUCTIONS,
    "weights": EXAMPLE_WEIGHTS,
    "penalty": PENALTIES,
    "metrics": tuple(METRICS),
    "data": DATA,
    "optimizer": tuple(OPTIMIZERS),
    "validation": tuple(VALIDATION),
    "callbacks": tuple(CALLBACKS),
    "first_epoch": FIRST_EPOCHS,
    "executed_steps": EXECUTED_STEPS,
}
assert list(COLUMNS) == [field.name for field in fields(Program)]


def draw(rng: np.random.Generator) -> Program:
    """Returns a random program, which Keras may not support; see `Program.possible`."""
    return Program(**{name: choices[rng.integers(len(choices))] for name, choices in COLUMNS.items()})


def every_pair() -> list[Program]:
    """Returns programs that cover every possible pair of options of two columns. Each call returns the same ones."""
    # All combinations would be too many to train. Take the candidate that covers most pairs that are still missing.
    rng = np.random.default_rng(1)

    def pairs(program: Program) -> set[Any]:
        chosen = [(name, getattr(program, name)) for name in COLUMNS]
        return set(itertools.combinations(chosen, 2))

    left = [program for program in (draw(rng) for _ in range(4000)) if program.possible]
    wanted = set[Any]().union(*map(pairs, left))
    found: list[Program] = []
    while wanted:
        best = max(left, key=lambda program: len(pairs(program) & wanted))
        found.append(best)
        wanted -= pairs(best)
    return found


def make(program: Program) -> Any:
    """Returns the compiled model of a program."""
    penalty = {} if program.penalty == "none" else {f"{program.penalty}_regularizer": keras.regularizers.L2(0.05)}
    model = MODELS[program.model](**penalty)
    model.name = "program"
    # The initial weights must be the same in each process, whatever random numbers Keras has drawn before.
    values = np.random.default_rng(2)
    for variable in model.weights:
        if np.issubdtype(variable.dtype, np.floating) and not variable.path.endswith("variance"):
            variable.assign(values.normal(size=variable.shape).astype("float32") * 0.5)
    loss: Any = LOSSES[program.loss](program.reduction)
    of_classes = _losses.SparseCategoricalCrossentropy(from_logits=True, reduction=program.reduction, ignore_class=0)
    metrics: Any = METRICS[program.metrics]()
    loss_weights = None
    if program.model == "classes":
        loss = of_classes
    elif program.model == "outputs":
        loss, loss_weights = {"number": loss, "kind": of_classes}, {"number": 0.7, "kind": 1.5}
        metrics = {"number": metrics, "kind": [keras.metrics.SparseCategoricalAccuracy(name="right")]}
    weighted = program.metrics == "weighted"
    model.compile(
        OPTIMIZERS[program.optimizer](),
        loss,
        loss_weights=loss_weights,
        metrics=None if weighted else metrics,
        weighted_metrics=metrics if weighted else None,
        steps_per_execution=program.executed_steps,
    )
    return model


def arrays(program: Program) -> tuple[Any, ...]:
    """Returns the examples of a program: x, y and, if it uses weights of examples, these weights."""
    x = SEQUENCES if program.model in ("masked", "recurrent") else DENSE
    both = {"number": TARGETS, "kind": CLASSES}
    y: Any = {"masked": STEPS, "classes": CLASSES, "outputs": both}.get(program.model, TARGETS)
    match program.weights:
        case "sample":
            return x, y, {"number": WEIGHTS, "kind": WEIGHTS[::-1].copy()} if y is both else WEIGHTS
        case "step":
            return x, y, np.tile(WEIGHTS[:, None], 5) * np.arange(1, 6, dtype="float32")
        case _:
            return x, y


def part(data: tuple[Any, ...], start: int, stop: int) -> tuple[Any, ...]:
    """Returns some rows of all arrays of ``data``."""
    return keras.tree.map_structure(lambda leaf: leaf[start:stop], data)


class Batches(keras.utils.PyDataset):
    """Batches of examples; with ``endless``, the same batches repeat, with increasing indices."""

    def __init__(self, data: tuple[Any, ...], *, endless: bool, workers: int = 1) -> None:
        super().__init__(workers=workers)
        self._data = data
        self._endless = endless

    @property
    def num_batches(self) -> int | None:  # type: ignore[bad-override]  # Keras documents None
        return None if self._endless else -(-ROWS // 8)

    def __getitem__(self, index: int) -> Any:
        start = 8 * index % ROWS
        return part(self._data, start, start + 8)


def data_of(program: Program) -> dict[str, Any]:
    """Returns the arguments of `fit` for the data of a program."""
    held = arrays(program)
    whole = Batches(held, endless=False)
    found: dict[str, Any] = {"shuffle": False, "epochs": 3, "initial_epoch": program.first_epoch}
    found |= {"callbacks": CALLBACKS[program.callbacks]()}
    match program.data:
        case "arrays" | "shorter epochs":
            found |= dict(zip(("x", "y", "sample_weight"), held, strict=False)) | {"batch_size": 8}
            if program.data == "shorter epochs":
                found |= {"steps_per_epoch": 2}
        case "dataset":
            found |= {"x": Dataset.from_tensor_slices(held).batch(8)}
        case "pydataset":
            found |= {"x": whole}
        case "finite threaded pydataset":
            found |= {"x": Batches(held, endless=False, workers=2)}
        case "endless pydataset" | "threaded pydataset":
            threads = 2 if program.data == "threaded pydataset" else 1
            found |= {"x": Batches(held, endless=True, workers=threads), "steps_per_epoch": 2}
        case "generator":
            found |= {"x": (whole[index] for index in itertools.count()), "steps_per_epoch": 2}
        case "finite generator":
            found |= {"x": (whole[index] for index in range(3))}
        case _:  # a generator that ends within the second epoch
            found |= {"x": (whole[index] for index in range(3)), "steps_per_epoch": 2}
    if program.weights == "class":
        found |= {"class_weight": {0: 0.5, 1: 1.0, 2: 3.0}}
    return found | VALIDATION[program.validation](held)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of training and evaluating a program.

    Attributes:
      history: logs of epochs, by name.
      batches: logs of the last batch of each execution.
      evaluated: results of `evaluate`.
      predicted: results of `predict`, which follows.
      weights: values of the model's variables at the end.
      updates: number of updates that the optimizer has made.
    """

    history: dict[str, list[Any]]
    batches: list[dict[str, float]]
    evaluated: dict[str, Any]
    predicted: list[Any]
    weights: list[Any]
    updates: int


def run(model: Any, program: Program) -> Outcome:
    """Trains and evaluates a model, and predicts; returns the result."""
    return _outcome(model, program, fit(model, program))


def fit(model: Any, program: Program) -> Outcome:
    """Trains a model; returns a part of the result."""
    options, logs = data_of(program), BatchLogs()
    options["callbacks"].append(logs)
    history = model.fit(verbose=0, **options).history
    return Outcome(history=history, batches=logs.batches, evaluated={}, predicted=[], weights=[], updates=0)


def _outcome(model: Any, program: Program, trained: Outcome) -> Outcome:
    x, y, *weight = arrays(program)
    evaluated = model.evaluate(
        x, y, sample_weight=weight[0] if weight else None, batch_size=9, verbose=0, return_dict=True
    )
    predicted = keras.tree.flatten(model.predict(x, batch_size=9, verbose=0))
    made = model.optimizer.iterations
    return replace(
        trained,
        evaluated=evaluated,
        predicted=predicted,
        weights=model.get_weights(),
        updates=int(ops.convert_to_numpy(getattr(made, "value", made))),
    )


def alone(program: Program) -> Outcome:
    """Returns the result of Keras in one process."""
    return run(make(program), program)


def mirrored(program: Program, workers: int = 2) -> list[Outcome]:
    """Returns the result of each of several mirrored workers."""
    return with_workers(workers, lambda _, mirror: run(mirror(make(program)), program))


def served(program: Program, workers: int = 2, consistency: str = "sync", servers: int = 1) -> list[Outcome]:
    """Returns the result of each of several workers that train with parameter servers."""
    cluster = Cluster(functools.partial(make, program), workers=workers, servers=servers, consistency=consistency)
    try:
        trained = in_threads([functools.partial(fit, model, program) for model in cluster.models])
        return [_outcome(*pair) for pair in zip(cluster.models, itertools.repeat(program), trained, strict=False)]
    finally:
        cluster.stop()


def require_equal(found: Outcome, expected: Outcome, what: str) -> None:
    """Raises AssertionError if two results differ by more than rounding errors; the message begins with ``what``."""
    assert found.history.keys() >= {name for name in expected.history if not name.startswith("val_")}, what
    for name in found.history.keys() & expected.history.keys():
        _close(found.history[name], expected.history[name], f"{what}: {name}")
    assert len(found.batches) == len(expected.batches), what
    for number, (ours, theirs) in enumerate(zip(found.batches, expected.batches, strict=True)):
        for name in ours.keys() & theirs.keys():
            _close(ours[name], theirs[name], f"{what}: {name} of batch {number}")
    for name, value in expected.evaluated.items():
        _close(found.evaluated[name], value, f"{what}: evaluated {name}")
    assert found.updates == expected.updates, what
    for ours, theirs in zip(found.predicted, expected.predicted, strict=True):
        _close(ours, theirs, f"{what}: predictions")
    for ours, theirs in zip(found.weights, expected.weights, strict=True):
        _close(ours, theirs, f"{what}: weights")


def _close(found: Any, expected: Any, what: str) -> None:
    # The rounding of a sum is relative to its summands, which can be as large as the largest result.
    rounding = 1e-7 * float(np.max(np.abs(expected), initial=0))
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=max(5e-6, rounding), err_msg=what)
