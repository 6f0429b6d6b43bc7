"""Sets of variables that workers describe to a ``ps`` whose program serves another model."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from headwater.errors import InvalidArgumentError
from headwater.keras import ParameterServerStrategy
from headwater.keras.parameter_server.described_sets import describe, described_set
from headwater.keras.parameter_server.optimizers import KerasUpdater, ServerPart
from headwater.ps.layout import VariableSpec, make_layout

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

PART = ServerPart(clips="each")


class OwnRate(keras.optimizers.schedules.LearningRateSchedule):
    """A schedule that no program has registered."""

    def __call__(self, step: Any) -> Any:
        return 0.1

    def get_config(self) -> dict[str, Any]:
        return {}


def variables() -> list[Any]:
    """Returns a kernel with a constraint, and a bias."""
    layer = keras.layers.Dense(3, kernel_constraint=keras.constraints.MaxNorm(0.5))
    layer.build((None, 4))
    return [layer.kernel, layer.bias]


def described(optimizer: Any, held: list[Any]) -> bytes:
    specs = [VariableSpec(name=each.path, shape=tuple(each.shape), dtype=each.dtype) for each in held]
    return describe(make_layout(specs, 2), held, optimizer, PART)


def decayed() -> Any:
    rate: Any = keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)
    return keras.optimizers.AdamW(rate, weight_decay=0.3, clipnorm=0.2)


def test_a_described_set_makes_the_updates_of_the_model() -> None:
    held, optimizer = variables(), decayed()
    optimizer.exclude_from_weight_decay(var_list=[held[1]])
    made = described_set(described(optimizer, held))
    random = np.random.default_rng(0)
    for index in range(2):
        theirs = KerasUpdater(made.layout, index, held, optimizer, part=PART)
        values = [random.normal(size=spec.shape).astype("float32") for spec in _specs(made.layout, index)]
        for updater in (ours := made.updater(index), theirs):
            updater.fill(values, None)
        for _ in range(3):
            gradients = [random.normal(size=value.shape).astype("float32") for value in values]
            for updater in (ours, theirs):
                updater.apply(gradients, {}, [], ())
        for one, other in zip(ours.values(None), theirs.values(None), strict=True):
            np.testing.assert_array_equal(one, other)
        assert ours.state().keys() == theirs.state().keys()


def _specs(layout: Any, index: int) -> list[VariableSpec]:
    return [layout.variables[block.variable] for block in layout.blocks[index]]


def test_a_class_that_no_program_has_registered_is_refused_by_name() -> None:
    with pytest.raises(InvalidArgumentError, match=r"cannot make 'OwnRate'.*register_keras_serializable"):
        described_set(described(keras.optimizers.SGD(OwnRate()), variables()))


def test_only_one_model_may_train_a_variable() -> None:
    x = np.ones((4, 2), np.float32)
    with ParameterServerStrategy().scope():
        shared = keras.layers.Dense(2)
        models = [keras.Sequential([keras.Input((2,)), shared, keras.layers.Dense(1)]) for _ in range(2)]
        for model in models:
            model.compile("sgd", "mse")
    models[0].train_on_batch(x, x[:, :1])
    with pytest.raises(ValueError, match=r"trains \S*kernel, \S*bias, which the ps keep with a model"):
        models[1].train_on_batch(x, x[:, :1])
