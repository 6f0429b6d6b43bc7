"""`BatchNormalization(synchronized=True)` normalizes by the rows of all workers, as one process does by its batch."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from headwater.keras.strategy import Strategy
from tests.inproc.keras.test_parameter_server_strategy import Cluster
from tests.support.equality import Outcome, require_equal
from tests.support.mirrored import with_workers

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

_random = np.random.default_rng(0)
#: The last batch has one row, so that a worker has none.
SEQUENCES = (
    _random.normal(size=(17, 4, 3)).astype("float32") * 3 + np.linspace(-4, 4, 17, dtype="float32")[:, None, None]
)
for _row in range(17):
    SEQUENCES[_row, 1 + _row % 4 :] = 0
ROWS = SEQUENCES[:, 0]
TARGETS = _random.normal(size=(17, 1)).astype("float32")
WEIGHTS = _random.uniform(0.2, 3, 17).astype("float32")


def plain(**options: Any) -> list[Any]:
    """Builds a model with two normalizations: of the data, and of activations that depend on weights."""
    return [
        keras.Input((3,)),
        keras.layers.BatchNormalization(**options),
        keras.layers.Dense(4, activation="tanh", activity_regularizer=keras.regularizers.L2(0.05)),
        keras.layers.BatchNormalization(momentum=0.5, renorm=True, **options),
        keras.layers.Dense(1),
    ]


def masked(**options: Any) -> list[Any]:
    """Builds a model that normalizes the steps that are not padding; the workers' shares have different numbers of
    these.
    """
    return [
        keras.Input((4, 3)),
        keras.layers.Masking(0.0),
        keras.layers.Dense(2, use_bias=False),
        keras.layers.BatchNormalization(**options),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(1),
    ]


def make(layers: Any, reduction: str, *, eager: bool = False, **options: Any) -> Any:
    model = keras.Sequential(layers(**options))
    values = np.random.default_rng(2)
    model.set_weights([values.uniform(0.3, 1, size=weight.shape).astype("float32") for weight in model.get_weights()])
    loss: Any = keras.losses.MeanSquaredError(reduction=reduction)
    model.compile(keras.optimizers.Adam(0.05), loss, metrics=["mae"], run_eagerly=eager)
    return model


def train(model: Any, x: Any) -> Outcome:
    history = model.fit(x, TARGETS, 8, 2, sample_weight=WEIGHTS, shuffle=False, verbose=0).history
    evaluated = model.evaluate(x, TARGETS, batch_size=8, verbose=0, return_dict=True)
    return Outcome(
        history=history,
        batches=[],
        evaluated=evaluated,
        predicted=[model.predict(x, batch_size=8, verbose=0)],
        weights=model.get_weights(),
        updates=int(model.optimizer.iterations),
    )


@pytest.mark.parametrize(
    ("layers", "x", "reduction", "workers", "eager"),
    [
        pytest.param(plain, ROWS, "sum_over_batch_size", 2, False, marks=pytest.mark.long),
        pytest.param(plain, ROWS, "sum_over_batch_size", 3, True, marks=pytest.mark.long),
        (masked, SEQUENCES, "mean_with_sample_weight", 2, False),
    ],
)
def test_mirrored_workers_equal_one_process(layers: Any, x: Any, reduction: str, workers: int, eager: bool) -> None:
    expected = train(make(layers, reduction), x)

    def work(_: int, mirror: Any) -> Outcome:
        return train(mirror(make(layers, reduction, eager=eager, synchronized=True)), x)

    for found in with_workers(workers, work):
        require_equal(found, expected, f"{workers} workers")


def test_parameter_servers_refuse_parts_of_a_batch() -> None:
    cluster = Cluster(lambda: make(plain, "sum", synchronized=True), workers=2, servers=1, consistency="sync")
    try:
        with pytest.raises(ValueError, match=r"layer 'batch_normalization\w*' cannot be synchronized"):
            cluster.fit(ROWS, TARGETS, batch_size=8)
    finally:
        cluster.stop()


class TwoReplicas(Strategy):
    """A strategy with two replicas in one step."""

    num_replicas_in_sync = 2


def test_a_custom_loop_refuses_them() -> None:
    layer = keras.layers.BatchNormalization(synchronized=True)
    layer.build((None, 3))
    Strategy().run(lambda: layer(ROWS, training=True))  # one replica has the whole batch
    with pytest.raises(NotImplementedError, match="a custom training loop normalizes by the rows of each replica"):
        TwoReplicas().run(lambda: layer(ROWS, training=True))


def test_a_saved_layer_is_synchronized() -> None:
    layer: Any = keras.layers.BatchNormalization(synchronized=True)
    assert keras.layers.BatchNormalization.from_config(layer.get_config()).synchronized
