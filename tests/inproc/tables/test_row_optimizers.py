"""Row optimizers compared with Keras's optimizers on a dense table."""

import keras
import numpy as np
import pytest

from headwater.tables import FTRL, SGD, Adagrad, Adam, Initializer, Momentum, RMSProp, Table, TableConfig

ROWS, DIM = 12, 3
optimizers = keras.optimizers


def dense(optimizer, start, steps):
    variable = keras.Variable(start)
    for ids, gradients in steps:
        whole = np.zeros_like(start)
        np.add.at(whole, ids, gradients)
        optimizer.apply_gradients([(keras.ops.convert_to_tensor(whole), variable)])
    return np.asarray(variable.value)


def steps_of(count, few, seed=0):
    rng = np.random.default_rng(seed)
    return [
        (rng.integers(0, ROWS, few) if few < ROWS else np.arange(ROWS), rng.normal(size=(few, DIM)).astype(np.float32))
        for _ in range(count)
    ]


def trained(optimizer, steps, start):
    table = Table("t", TableConfig(dim=DIM, optimizer=optimizer, shards=2))
    table.assign(np.arange(ROWS), start)
    for ids, gradients in steps:
        table.look_up(ids)
        table.update(ids, gradients)
    return table


START = np.random.default_rng(7).normal(size=(ROWS, DIM)).astype(np.float32)

PAIRS = {
    "sgd": (SGD(0.1), lambda: optimizers.SGD(0.1)),
    "momentum": (Momentum(0.1, 0.8, exact=True), lambda: optimizers.SGD(0.1, momentum=0.8)),
    "nesterov": (
        Momentum(0.1, 0.8, nesterov=True, exact=True),
        lambda: optimizers.SGD(0.1, momentum=0.8, nesterov=True),
    ),
    "adagrad": (Adagrad(0.1), lambda: optimizers.Adagrad(0.1)),
    "rmsprop": (RMSProp(0.01, 0.8, exact=True), lambda: optimizers.RMSprop(0.01, rho=0.8)),
    "rmsprop with momentum": (
        RMSProp(0.01, 0.8, 0.7, exact=True),
        lambda: optimizers.RMSprop(0.01, rho=0.8, momentum=0.7),
    ),
    "adam": (Adam(0.01, exact=True), lambda: optimizers.Adam(0.01)),
    "ftrl": (
        FTRL(0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.02, beta=0.1),
        lambda: optimizers.Ftrl(0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.02, beta=0.1),
    ),
    "ftrl with another power": (
        FTRL(0.1, learning_rate_power=-0.7),
        lambda: optimizers.Ftrl(0.1, learning_rate_power=-0.7),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_where_every_row_has_a_gradient(name):
    mine, theirs = PAIRS[name]
    steps = steps_of(20, ROWS)
    table = trained(mine, steps, START)
    np.testing.assert_allclose(
        table.look_up(np.arange(ROWS), training=False), dense(theirs(), START, steps), rtol=2e-4, atol=2e-6
    )


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("training", [False, True])
def test_where_few_rows_have_one(name, training):
    mine, theirs = PAIRS[name]
    # A dense FTRL changes all rows in its first step.
    steps = [*steps_of(1, ROWS, seed=2), *steps_of(120, 2)]
    table = trained(mine, steps, START)
    np.testing.assert_allclose(
        table.look_up(np.arange(ROWS), training=training), dense(theirs(), START, steps), rtol=5e-4, atol=5e-6
    )


@pytest.mark.parametrize("optimizer", [Adam(0.01), Momentum(0.1), RMSProp(0.01)])
def test_lazily_a_row_waits_for_its_next_gradient(optimizer):
    steps = [(np.arange(ROWS), np.ones((ROWS, DIM), np.float32)), *[(np.array([1]), np.ones((1, DIM), np.float32))] * 5]
    table = trained(optimizer, steps[:1], START)
    before = table.look_up([0])
    for ids, gradients in steps[1:]:
        table.update(ids, gradients)
    assert np.array_equal(table.look_up([0]), before)


def test_exact_adam_after_a_long_time():
    # The momentum of the first steps has decayed, and so have its effects on later values.
    steps = [*steps_of(3, ROWS), *[(np.array([0]), np.full((1, DIM), 0.1, np.float32))] * 700, *steps_of(1, ROWS, 5)]
    table = trained(Adam(0.01, exact=True), steps, START)
    np.testing.assert_allclose(
        table.look_up(np.arange(ROWS)), dense(optimizers.Adam(0.01), START, steps), rtol=2e-3, atol=2e-5
    )


def test_exact_adam_knows_the_learning_rates_of_the_steps_that_a_row_missed():
    table = trained(Adam(0.01, exact=True), [], START)
    theirs = optimizers.Adam(0.01)
    variable = keras.Variable(START)
    for at, (ids, gradients) in enumerate([*steps_of(1, ROWS), *steps_of(30, 1)]):
        table.learning_rate = theirs.learning_rate = 0.01 / (at + 1)
        whole = np.zeros_like(START)
        np.add.at(whole, ids, gradients)
        theirs.apply_gradients([(keras.ops.convert_to_tensor(whole), variable)])
        table.update(ids, gradients)
    np.testing.assert_allclose(table.look_up(np.arange(ROWS)), np.asarray(variable.value), rtol=5e-4, atol=5e-6)


def test_exact_adam_continues_after_a_restore(tmp_path):
    from headwater.tables.snapshots import restore, save

    steps = [*steps_of(1, ROWS), *steps_of(20, 1)]
    table = trained(Adam(0.01, exact=True), steps, START)
    save(table, tmp_path)
    other = Table("t", TableConfig(dim=DIM, optimizer=Adam(0.01, exact=True), initializer=Initializer(), shards=5))
    restore(other, tmp_path)
    assert np.array_equal(other.look_up(np.arange(ROWS)), table.look_up(np.arange(ROWS)))


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Adam(beta_1=1.0), "beta_1"),
        (lambda: Momentum(momentum=-1), "momentum"),
        (lambda: RMSProp(rho=2), "rho"),
        (lambda: SGD(float("nan")), "learning_rate"),
        (lambda: FTRL(0.0), "learning_rate"),
    ],
)
def test_numbers_that_an_optimizer_cannot_have(make, named):
    with pytest.raises(ValueError, match=named):
        make()
