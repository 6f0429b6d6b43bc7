"""Optimizers of Keras on variables of graphs. All values are TensorFlow 1.15's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from headwater import tf

optimizers = tf.keras.optimizers


@pytest.mark.parametrize(
    ("make", "expected", "slots"),
    [
        (lambda: optimizers.SGD(0.1), [0.512, 1.0239999, 1.536, 0.729], []),
        (
            lambda: optimizers.SGD(0.1, momentum=0.9, nesterov=True),
            [-0.10835195, -0.21670389, -0.32505608, 0.327321],
            ["SGD/v/momentum", "SGD/w/momentum"],
        ),
        (
            lambda: optimizers.Adam(0.1, amsgrad=True),
            [0.70158666, 1.7006236, 2.7003818, 0.7015871],
            ["Adam/v/m", "Adam/v/v", "Adam/v/vhat", "Adam/w/m", "Adam/w/v", "Adam/w/vhat"],
        ),
        (
            lambda: optimizers.RMSprop(0.1, momentum=0.5, centered=True),
            [0.020841, 0.89694256, 1.8638736, 0.02084124],
            [f"RMSprop/{name}/{slot}" for name in "vw" for slot in ("mg", "momentum", "rms")],
        ),
        (
            lambda: optimizers.Adagrad(0.1),
            [0.7822992, 1.7762966, 2.774572, 0.7875128],
            ["Adagrad/v/accumulator", "Adagrad/w/accumulator"],
        ),
        (
            lambda: optimizers.Adadelta(1.0),
            [0.99571246, 1.9957108, 2.9957101, 0.99571246],
            [f"Adadelta/{name}/{slot}" for name in "vw" for slot in ("accum_grad", "accum_var")],
        ),
        (
            lambda: optimizers.Adamax(0.1),
            [0.7154995, 1.7076483, 2.7050097, 0.7154996],
            ["Adamax/v/m", "Adamax/v/v", "Adamax/w/m", "Adamax/w/v"],
        ),
        (
            lambda: optimizers.Ftrl(0.1),
            [0.63788956, 1.6237408, 2.6198812, 0.5117015],
            [f"Ftrl/{name}/{slot}" for name in "vw" for slot in ("accumulator", "linear")],
        ),
        (lambda: optimizers.SGD(0.1, clipnorm=1.0), [0.9198216, 1.8396432, 2.7594652, 0.85], []),
        (lambda: optimizers.SGD(0.1, clipvalue=0.5), [0.85, 1.85, 2.85, 0.85], []),
        (lambda: optimizers.SGD(0.1, decay=0.5), [0.624, 1.248, 1.872, 0.798], []),
        (
            lambda: optimizers.SGD(optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)),
            [0.684, 1.368, 2.052, 0.83362496],
            [],
        ),
    ],
)
def test_updates(make: Callable[[], Any], expected: list[float], slots: list[str]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable([1.0, 2.0, 3.0], name="v", use_resource=True)
        w = tf.get_variable("w", [2, 2], initializer=tf.ones_initializer())
        optimizer = make()
        updates = optimizer.get_updates(tf.reduce_sum(tf.square(v)) + tf.reduce_sum(w * w * 0.5), [v, w])
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(updates)
        found = session.run([v, w, optimizer.iterations])
        names = {variable.op.name for variable in tf.global_variables()}
    np.testing.assert_allclose([*found[0], found[1][0, 0]], expected, rtol=2e-5)
    assert found[2] == 3
    assert {name for name in names if name.count("/") == 2} == set(slots)


def test_steps_are_counted_in_the_global_step() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable([1.0, 2.0])
        step = tf.train.get_or_create_global_step()
        optimizer = optimizers.Adam(0.1)
        optimizer.iterations = step
        gradients = tf.gradients(tf.reduce_sum(v * v), [v])
        update = optimizer.apply_gradients(zip(gradients, [v], strict=True))
        session.run(tf.global_variables_initializer())
        session.run(update)
        session.run(update)
        values, steps = session.run([v, step])
        np.testing.assert_allclose(values, [0.80041283, 1.800167], rtol=1e-5)
        assert steps == 2
        with pytest.raises(RuntimeError, match="iterations"):
            optimizer.iterations = step


def test_minimize_clips_and_apply_gradients_does_not() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable([1.0, 2.0])
        clipped = optimizers.SGD(0.1, clipvalue=0.5).minimize(lambda: tf.reduce_sum(v * v), [v])
        session.run(tf.global_variables_initializer())
        session.run(clipped)
        np.testing.assert_allclose(session.run(v), [0.95, 1.95])
        whole = optimizers.SGD(0.1, clipvalue=0.5).apply_gradients([(tf.constant([1.0, 2.0]), v)])
        session.run(tf.global_variables_initializer())
        session.run(whole)
        np.testing.assert_allclose(session.run(v), [0.9, 1.8])


@pytest.mark.parametrize(
    ("make", "rows"),
    [
        (lambda: optimizers.Adam(0.1), [0.80041, 1, 0.80041, 1]),
        (lambda: optimizers.SGD(0.1), [0.64, 1, 0.36, 1]),
        (lambda: optimizers.Adagrad(0.1), [0.83474, 1, 0.83352, 1]),
        (lambda: optimizers.RMSprop(0.1), [0.49887, 1, 0.49887, 1]),
    ],
)
def test_sparse_gradients(make: Callable[[], Any], rows: list[float]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(np.ones((4, 2), np.float32))
        looked_up = tf.nn.embedding_lookup(v, [0, 2, 2])
        updates = make().get_updates(tf.reduce_sum(tf.square(looked_up)), [v])
        session.run(tf.global_variables_initializer())
        session.run(updates)
        session.run(updates)
        np.testing.assert_allclose(session.run(v)[:, 0], rows, atol=1e-5)


def test_refused_gradients() -> None:
    with tf.Graph().as_default():
        v, w = tf.Variable(np.ones((4, 2), np.float32)), tf.Variable(1.0)
        loss = tf.reduce_sum(tf.nn.embedding_lookup(v, [0]))
        with pytest.raises(ValueError, match="has `None` for gradient"):
            optimizers.SGD(0.1).get_updates(loss, [w])
        with pytest.raises(NotImplementedError, match="updates only its rows"):
            optimizers.SGD(0.1, momentum=0.9).get_updates(loss, [v])
        with pytest.raises(ValueError, match="No gradients"):
            optimizers.SGD(0.1).apply_gradients([(None, w)])
        optimizer = optimizers.SGD(0.1)
        optimizer.get_updates(tf.square(w), [w])
        with pytest.raises(ValueError, match="other variables"):
            optimizer.get_updates(loss, [v])
