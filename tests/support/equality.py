"""Small Keras programs, drawn from a table of options, with equal results in one process and on several workers."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass, fields
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


def batch_range(y_true: Any, y_pred: Any) -> Any:
    """Metric function that returns one number for a batch, rather than one for each row."""
    return ops.cast(ops.max(y_true), "float32")


def mean_cubed(y_true: Any, y_pred: Any) -> Any:
    """Loss function that returns one number for a batch: a mean over rows."""
    return ops.mean(ops.abs(ops.cast(y_true, y_pred.dtype) - y_pred) ** 3)


def sum_squared(y_true: Any, y_pred: Any) -> Any:
    """Loss function that returns one number for a batch: a sum over rows."""
    return ops.sum(ops.square(y_true - y_pred)) / 10


def dense(regularizer: Any, activity: Any) -> Any:
    """Returns the layers of a network with four inputs and one output."""
    return [
        keras.Input((4,)),
        keras.layers.Dense(3, activation="tanh", kernel_regularizer=regularizer, activity_regularizer=activity),
        keras.layers.Dense(1),
    ]


def masked(regularizer: Any, activity: Any) -> Any:
    """Returns the layers of a network with one output for each step of a sequence; padding is masked."""
    return [
        keras.Input((5, 2)),
        keras.layers.Masking(0.0),
        keras.layers.Dense(1, kernel_regularizer=regularizer, activity_regularizer=activity),
    ]


def classes(regularizer: Any, activity: Any) -> Any:
    """Returns the layers of a classifier: logits of three classes."""
    return [
        keras.Input((4,)),
        keras.layers.Dense(3, kernel_regularizer=regularizer, activity_regularizer=activity),
    ]


_losses: Any = keras.losses
_optimizers: Any = keras.optimizers

MODELS: dict[str, Any] = {"dense": dense, "masked": masked, "classes": classes}
LOSSES: dict[str, Callable[[str], Any]] = {
    "mse": lambda reduction: _losses.MeanSquaredError(reduction=reduction),
    "huber": lambda reduction: _losses.Huber(reduction=reduction),
    "mean function": lambda _: mean_cubed,
    "sum function": lambda _: sum_squared,
}
REDUCTIONS = ("sum_over_batch_size", "sum", "mean_with_sample_weight")
EXAMPLE_WEIGHTS = ("none", "sample", "class")
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
    "averaged": lambda: _optimizers.Adam(0.02, use_ema=True, ema_momentum=0.8),
    "scaled": lambda: _optimizers.LossScaleOptimizer(_optimizers.SGD(0.01)),
}
VALIDATION = (False, True)
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
    validation: bool = False
    callbacks: str = "none"
    first_epoch: int = 0

    @property
    def possible(self) -> bool:
        """Whether Keras supports this combination."""
        of_classes = self.model == "classes"
        if self.loss.endswith("function") and (self.weights != "none" or self.model != "dense"):
            return False
        if self.metrics == "of a batch" and self.model == "masked":  # Keras's metrics need a value for each row then
            return False
        if self.weights == "class" and (not of_classes or self.data.endswith("generator")):
            return False
        # Keras multiplies the mask, which has a value for each step, by the weights, which have one for each row.
        if self.model == "masked" and self.weights == "sample":
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
    "validation": VALIDATION,
    "callbacks": tuple(CALLBACKS),
    "first_epoch": FIRST_EPOCHS,
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
    penalty: Any = keras.regularizers.L2(0.05)
    regularizer = penalty if program.penalty == "kernel" else None
    activity = penalty if program.penalty == "activity" else None
    model = keras.Sequential(MODELS[program.model](regularizer, activity), name="program")
    # The initial weights must be the same in each process, whatever random numbers Keras has drawn before.
    values = np.random.default_rng(2)
    model.set_weights([values.normal(size=weight.shape).astype("float32") * 0.5 for weight in model.get_weights()])
    loss = LOSSES[program.loss](program.reduction)
    if program.model == "classes":
        loss = _losses.SparseCategoricalCrossentropy(from_logits=True, reduction=program.reduction, ignore_class=0)
    metrics = METRICS[program.metrics]()
    weighted = program.metrics == "weighted"
    optimizer = OPTIMIZERS[program.optimizer]()
    model.compile(
        optimizer, loss, metrics=None if weighted else metrics, weighted_metrics=metrics if weighted else None
    )
    return model


def arrays(program: Program) -> tuple[Any, ...]:
    """Returns the examples of a program: x, y and, where it uses weights of examples, these weights."""
    x, y = {"dense": (DENSE, TARGETS), "masked": (SEQUENCES, STEPS), "classes": (DENSE, CLASSES)}[program.model]
    return (x, y, WEIGHTS) if program.weights == "sample" else (x, y)


class Batches(keras.utils.PyDataset):
    """Batches of examples; with ``endless``, the same batches repeat, with increasing indices."""

    def __init__(self, data: tuple[Any, ...], *, endless: bool) -> None:
        super().__init__()
        self._data = data
        self._endless = endless

    @property
    def num_batches(self) -> int | None:  # type: ignore[bad-override]  # Keras documents None
        return None if self._endless else -(-ROWS // 8)

    def __getitem__(self, index: int) -> Any:
        start = 8 * index % ROWS
        return tuple(leaf[start : start + 8] for leaf in self._data)


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
        case "endless pydataset":
            found |= {"x": Batches(held, endless=True), "steps_per_epoch": 2}
        case "generator":
            found |= {"x": (whole[index] for index in itertools.count()), "steps_per_epoch": 2}
        case "finite generator":
            found |= {"x": (whole[index] for index in range(3))}
        case _:  # it ends within the second epoch
            found |= {"x": (whole[index] for index in range(3)), "steps_per_epoch": 2}
    if program.weights == "class":
        found |= {"class_weight": {0: 0.5, 1: 1.0, 2: 3.0}}
    if program.validation:
        found |= {"validation_data": tuple(leaf[:13] for leaf in held), "validation_batch_size": 5}
    return found


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of training and evaluating a program."""

    history: dict[str, list[Any]]
    evaluated: dict[str, Any]
    weights: list[Any]
    updates: int


def run(model: Any, program: Program) -> Outcome:
    """Trains and evaluates a model; returns the result."""
    history = model.fit(verbose=0, **data_of(program)).history
    return _outcome(model, program, history)


def _outcome(model: Any, program: Program, history: Any) -> Outcome:
    x, y, *weight = arrays(program)
    evaluated = model.evaluate(
        x, y, sample_weight=weight[0] if weight else None, batch_size=9, verbose=0, return_dict=True
    )
    made = model.optimizer.iterations
    return Outcome(
        history=history,
        evaluated=evaluated,
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

        def train(model: Any) -> Any:
            return model.fit(verbose=0, **data_of(program)).history

        histories = in_threads([functools.partial(train, model) for model in cluster.models])
        return [_outcome(*pair) for pair in zip(cluster.models, itertools.repeat(program), histories, strict=False)]
    finally:
        cluster.stop()


def require_equal(found: Outcome, expected: Outcome, what: str) -> None:
    """Raises AssertionError where two results differ by more than rounding errors; ``what`` begins the message."""
    assert found.history.keys() >= {name for name in expected.history if not name.startswith("val_")}, what
    for name in found.history.keys() & expected.history.keys():
        _close(found.history[name], expected.history[name], f"{what}: {name}")
    for name, value in expected.evaluated.items():
        _close(found.evaluated[name], value, f"{what}: evaluated {name}")
    assert found.updates == expected.updates, what
    for ours, theirs in zip(found.weights, expected.weights, strict=True):
        _close(ours, theirs, f"{what}: weights")


def _close(found: Any, expected: Any, what: str) -> None:
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=5e-6, err_msg=what)
