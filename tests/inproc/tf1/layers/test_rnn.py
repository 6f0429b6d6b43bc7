"""Recurrent networks, beyond the recorded results of TensorFlow."""

from __future__ import annotations

import numpy as np
import pytest

from headwater import tf
from tests.conformance.compare import same
from tests.conformance.run import outcome
from tests.conformance.stored import Case, stored_cases

X = np.random.default_rng(1).standard_normal((3, 5, 2)).astype(np.float32)


@pytest.mark.parametrize("case", stored_cases("rnn"), ids=str)
def test_as_tensorflow(case: Case) -> None:
    same(outcome(case.run, tf), case.expected)


def test_a_network_is_one_operation() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, None, 2])
        tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicLSTMCell(4), x, dtype=tf.float32)
        assert [op.type for op in graph.get_operations()].count("StatelessScan") == 1
        assert not [op for op in graph.get_operations() if "While" in op.type]


def test_dropout_differs_from_step_to_step_and_is_the_same_where_it_should_be() -> None:
    def kept(varying: bool) -> np.ndarray:
        with tf.Graph().as_default():
            tf.set_random_seed(3)
            cell = tf.nn.rnn_cell.BasicRNNCell(40, activation=tf.identity)
            wrapped = tf.nn.rnn_cell.DropoutWrapper(
                cell, output_keep_prob=0.5, variational_recurrent=not varying, dtype=tf.float32
            )
            with tf.variable_scope("v", initializer=tf.ones_initializer()):
                outputs, _ = tf.nn.dynamic_rnn(wrapped, tf.ones([1, 3, 2]), dtype=tf.float32)
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                return session.run(outputs)[0] != 0

    varying, fixed = kept(True), kept(False)
    assert not (varying[0] == varying[1]).all()
    assert (fixed[0] == fixed[1]).all()
    assert 5 < fixed[0].sum() < 35


def test_dropout_of_states_keeps_the_memory_of_an_lstm() -> None:
    with tf.Graph().as_default():
        cell = tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.BasicLSTMCell(50), state_keep_prob=0.5, seed=1)
        _, state = cell(tf.ones([1, 2]), cell.zero_state(1, tf.float32))
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            found = session.run(state)
    assert (found.c != 0).all()
    assert 5 < (found.h == 0).sum() < 45


def test_a_cell_that_runs_on_the_host() -> None:
    class Logged(tf.nn.rnn_cell.BasicRNNCell):
        def call(self, inputs, state):
            return super().call(tf.py_func(lambda x: x * 2, [inputs], tf.float32), state)

    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [3, 5, 2])
        with tf.variable_scope("v", initializer=tf.constant_initializer(0.25)):
            cell = Logged(2)
            cell.build(tf.TensorShape([3, 2]))
            cell.built = True
        with tf.variable_scope("w", initializer=tf.constant_initializer(0.25)):
            plain, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicRNNCell(2), x * 2, dtype=tf.float32)
        on_host, _ = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            found = session.run([on_host, plain], {x: X})
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)


def test_a_state_that_changes_its_size_is_refused() -> None:
    class Growing(tf.nn.rnn_cell.BasicRNNCell):
        def call(self, inputs, state):
            output, state = super().call(inputs, state)
            return output, tf.concat([state, state], 1)

    with tf.Graph().as_default(), pytest.raises(ValueError, match=r"shape .* after a step"):
        tf.nn.dynamic_rnn(Growing(2), tf.ones([3, 5, 2]), dtype=tf.float32)
