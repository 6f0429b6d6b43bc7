"""Fixed tables of Keras models that exist only on the ps: their initial values, and their saves and restores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater.keras import ParameterServerStrategy

import keras  # isort: skip - the package before it chooses the backend

from headwater.keras.embeddings.initial import initial_rows
from headwater.keras.embeddings.variables import TableVariable

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning")

NUMBERS = np.random.default_rng(1).integers(0, 50, (96, 4), np.int32)
Y = (NUMBERS.sum(1) % 3).astype(np.int32)
SETTINGS: dict[str, Any] = {"batch_size": 16, "shuffle": False, "verbose": 0}

INITIALIZERS: dict[str, Any] = {
    "uniform": keras.initializers.RandomUniform(seed=3),
    "normal": keras.initializers.RandomNormal(seed=2),
    "truncated": keras.initializers.TruncatedNormal(seed=3),
    "glorot": keras.initializers.GlorotUniform(seed=1),
    "he": keras.initializers.HeNormal(seed=1),
    "constant": keras.initializers.Constant(0.3),
    "orthogonal": keras.initializers.Orthogonal(seed=1),
    "identity": keras.initializers.Identity(),
    "function": lambda shape, dtype: np.arange(np.prod(shape), dtype=dtype).reshape(shape),
}


# Keras makes no orthogonal matrix in float16.
@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, "float32") for name in INITIALIZERS), ("uniform", "float16"), ("constant", "float16")]
)
def test_some_rows_are_bit_for_bit_those_of_the_whole_table(name: str, dtype: str) -> None:
    whole = np.asarray(INITIALIZERS[name]((1000, 16), dtype=dtype))
    rows = initial_rows(INITIALIZERS[name], (1000, 16), dtype)
    for start, stop in ((0, 1000), (3, 17), (990, 1000)):
        np.testing.assert_array_equal(rows(start, stop), whole[start:stop])


def make(optimizer: Any = "adagrad") -> Any:
    keras.utils.set_random_seed(3)
    numbers = keras.Input((4,), dtype="int32")
    found = keras.layers.Embedding(50, 5, name="table")(numbers)
    model = keras.Model(numbers, keras.layers.Dense(3)(keras.layers.Flatten()(found)), name="numbers")
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def made(optimizer: Any = "adagrad") -> tuple[ParameterServerStrategy, Any]:
    strategy = ParameterServerStrategy(table_bytes=0)
    with strategy.scope():
        return strategy, make(optimizer)


def tables(model: Any) -> list[TableVariable]:
    every = (*model.variables, *model.optimizer.variables)
    return list({id(variable): variable for variable in every if isinstance(variable, TableVariable)}.values())


def assert_same(model: Any, alone: Any) -> None:
    pairs = [(model.variables, alone.variables), (model.optimizer.variables, alone.optimizer.variables)]
    for found, expected in pairs:
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(one.value), np.asarray(other.value), rtol=2e-5, atol=2e-6)


def test_a_table_is_never_in_the_model_and_has_the_values_of_one_process() -> None:
    alone = make()
    alone.fit(NUMBERS, Y, epochs=2, **SETTINGS)
    strategy, model = made()
    (table,) = tables(model)
    assert table.local_values is None
    model.fit(NUMBERS, Y, epochs=2, **SETTINGS)
    assert [variable.local_values for variable in tables(model)] == [None, None]
    assert_same(model, alone)
    assert [variable.local_values for variable in tables(model)] == [None, None]
    assert strategy.traffic(model).rows > 0


def test_values_that_the_program_gives_a_table_are_trained_further(tmp_path: Path) -> None:
    alone = make()
    alone.fit(NUMBERS, Y, epochs=1, **SETTINGS)
    alone.save(tmp_path / "one.keras")
    alone.fit(NUMBERS, Y, epochs=2, **SETTINGS)
    strategy = ParameterServerStrategy(table_bytes=0)
    with strategy.scope():
        model: Any = keras.saving.load_model(tmp_path / "one.keras")
    model.fit(NUMBERS, Y, epochs=1, **SETTINGS)
    rows = model.get_layer("table").get_weights()
    model.save(tmp_path / "two.keras")
    model.fit(NUMBERS, Y, epochs=1, **SETTINGS)
    assert_same(model, alone)
    # Restore the saved state, and train again.
    two: Any = keras.saving.load_model(tmp_path / "two.keras", compile=False)
    np.testing.assert_array_equal(two.get_layer("table").get_weights(), rows)
    model.load_weights(tmp_path / "two.keras")
    model.fit(NUMBERS, Y, epochs=1, **SETTINGS)
    assert_same(model, alone)


def test_a_table_is_read_before_training_and_is_whole_for_a_train_step_of_the_models_own() -> None:
    _, model = made()
    np.testing.assert_array_equal(model.get_layer("table").get_weights(), make().get_layer("table").get_weights())

    class Own(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.table = keras.layers.Embedding(50, 3)

        def call(self, x: Any) -> Any:
            return keras.ops.sum(self.table(x), axis=1)

        def train_step(self, state: Any, data: Any) -> Any:
            return super().train_step(state, data)

    strategy = ParameterServerStrategy(table_bytes=0)
    with strategy.scope():
        own: Any = Own()
        own.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    own.fit(NUMBERS, Y, **SETTINGS)
    assert not tables(own)


def few_of_many(optimizer: str, *, tied: bool = False, **settings: Any) -> tuple[ParameterServerStrategy, Any]:
    """Returns a model of which a batch of 16 uses few rows of one table and most of another, both much below 1 MiB."""
    keras.utils.set_random_seed(3)
    strategy = ParameterServerStrategy(**settings)
    with strategy.scope():
        numbers = keras.Input((2,), dtype="int32")
        many = keras.layers.Embedding(4000, 5, name="many")
        few = keras.layers.Embedding(20, 5, name="few")
        both = keras.ops.concatenate([many(numbers[:, 0]), few(numbers[:, 1])], axis=1)
        model: Any = keras.Model(numbers, keras.layers.Dense(3)(both), name="few_of_many")

        def loss(y: Any, found: Any) -> Any:
            every = keras.losses.sparse_categorical_crossentropy(y, found, from_logits=True)
            return every + 0.01 * keras.ops.mean(keras.ops.square(many.embeddings)) if tied else every

        model.compile(optimizer, loss)
    return strategy, model


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad", "adam"])
def test_a_small_table_travels_in_rows_where_these_are_fewer_and_trains_as_the_whole_does(optimizer: str) -> None:
    numbers = np.stack([np.arange(96) * 41 % 4000, np.arange(96) % 20], axis=1)
    strategy, model = few_of_many(optimizer)
    whole_strategy, whole = few_of_many(optimizer, table_bytes=1 << 20)
    sent: list[int] = []
    for served, one in ((strategy, model), (whole_strategy, whole)):
        one.fit(numbers, Y, epochs=1, **SETTINGS)
        before = served.traffic(one).sent_bytes
        one.fit(numbers, Y, epochs=1, **SETTINGS)
        sent.append(served.traffic(one).sent_bytes - before)
    assert {table.path.partition("/")[0] for table in tables(model) if table.path.startswith(("many", "few"))} == {
        "many"
    }
    for one, other in zip(model.get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert sent[0] < sent[1] / 40
    assert not tables(whole)


def test_a_small_table_stays_whole_where_a_loss_reads_it_or_its_rows_are_no_fewer_or_batches_may_differ() -> None:
    numbers = np.stack([np.arange(96) * 41 % 4000, np.arange(96) % 20], axis=1)
    _, tied = few_of_many("adam", tied=True)
    tied.fit(numbers, Y, **SETTINGS)
    assert not tables(tied)
    _, model = few_of_many("adam")
    model.fit(np.tile(numbers, (50, 1)), np.tile(Y, 50), **(SETTINGS | {"batch_size": 4000}))
    assert not tables(model)
    _, model = few_of_many("adam")
    model.fit(((numbers[at : at + 16], Y[at : at + 16]) for at in range(0, 96, 16)), verbose=0)
    assert not tables(model)


@pytest.mark.parametrize(("wire", "error"), [("bfloat16", 2**-8), ("int8", 1 / 254)])
def test_rows_travel_in_fewer_bytes_with_a_small_error(wire: Any, error: float) -> None:
    numbers = np.stack([np.arange(96) * 41 % 4000, np.arange(96) % 20], axis=1)
    strategy, model = few_of_many("sgd", wire=wire, table_bytes=0)
    plain_strategy, plain = few_of_many("sgd", table_bytes=0)
    begun = plain.get_layer("many").get_weights()[0]
    for one in (model, plain):
        one.fit(numbers, Y, epochs=1, **SETTINGS)
    found, exact = (one.get_layer("many").get_weights()[0] for one in (model, plain))
    changed = np.abs(exact - begun).max()
    assert 0 < np.abs(found - exact).max() < 4 * error * changed
    # Values on the ps are not rounded: rows that no batch used are unchanged.
    unused = np.setdiff1d(np.arange(4000), numbers[:, 0])
    np.testing.assert_array_equal(found[unused], begun[unused])
    traffic, whole = strategy.traffic(model), plain_strategy.traffic(plain)
    assert traffic.sent_bytes < whole.sent_bytes
    assert traffic.received_bytes < whole.received_bytes


def test_rows_do_not_travel_in_a_form_that_does_not_exist() -> None:
    wire: Any = "int4"
    with pytest.raises(ValueError, match="wire is 'int4', not one of float32, bfloat16, int8"):
        ParameterServerStrategy(wire=wire)
