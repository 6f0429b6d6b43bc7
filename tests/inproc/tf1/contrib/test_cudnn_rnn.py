"""Layers of ``tf.contrib.cudnn_rnn`` compute the same as their compatible cells, and share checkpoints with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater.tf1.compat import tf

X = np.sin(np.arange(5 * 3 * 4, dtype=np.float32)).reshape(5, 3, 4)
LENGTHS = np.array([5, 2, 1], np.int32)
UNITS, LAYERS = 3, 2


def _tanh(units: int) -> Any:
    return tf.nn.rnn_cell.BasicRNNCell(units)


def _relu(units: int) -> Any:
    return tf.nn.rnn_cell.BasicRNNCell(units, activation=tf.nn.relu, name="basic_rnn_cell")


KINDS = {
    "LSTM": tf.contrib.cudnn_rnn.CudnnCompatibleLSTMCell,
    "GRU": tf.contrib.cudnn_rnn.CudnnCompatibleGRUCell,
    "RNNTanh": _tanh,
    "RNNRelu": _relu,
}


def _cells(new_cell: Callable[[int], Any], direction: str) -> list[Any]:
    """Returns the outputs [time, batch, size] and h of the last layer, computed by cells."""
    x = tf.constant(X)
    cells = [[new_cell(UNITS) for _ in range(LAYERS)] for _ in range(2)]
    if direction == "unidirectional":
        cell = tf.nn.rnn_cell.MultiRNNCell(cells[0])
        outputs, states = tf.nn.dynamic_rnn(cell, x, LENGTHS, dtype=tf.float32, time_major=True)
        last = [states[-1]]
    else:
        outputs, *both = tf.contrib.rnn.stack_bidirectional_dynamic_rnn(
            cells[0], cells[1], x, dtype=tf.float32, sequence_length=LENGTHS, time_major=True
        )
        last = [states[-1] for states in both]
    return [outputs, tf.stack([getattr(state, "h", state) for state in last])]


def _layer(kind: str, direction: str) -> tuple[Any, list[Any]]:
    layer = getattr(tf.contrib.cudnn_rnn, f"Cudnn{kind}")(LAYERS, UNITS, direction=direction)
    layer.build(X.shape)
    outputs, states = layer(tf.constant(X), sequence_lengths=LENGTHS)
    return layer, [outputs, states[0][-layer.num_dirs :]]


@pytest.mark.parametrize("direction", ["unidirectional", "bidirectional"])
@pytest.mark.parametrize("kind", KINDS)
def test_cells_restore_a_layers_checkpoint(kind: str, direction: str, tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        layer, found = _layer(kind, direction)
        tf.random.set_random_seed(2)
        session.run(tf.global_variables_initializer())
        # Biases are initially 0, so a wrong order of biases would not be noticed.
        session.run(tf.assign_add(layer.kernel, tf.random_uniform(layer.kernel.shape, -0.3, 0.3)))
        path = tf.train.Saver().save(session, str(tmp_path / "layer"))
        expected = session.run(found)
    with tf.Graph().as_default(), tf.Session() as session:
        found = _cells(KINDS[kind], direction)
        tf.train.Saver().restore(session, path)
        for value, other in zip(session.run(found), expected, strict=True):
            np.testing.assert_allclose(value, other, atol=2e-6)


@pytest.mark.parametrize("direction", ["unidirectional", "bidirectional"])
@pytest.mark.parametrize("kind", KINDS)
def test_layer_restores_a_checkpoint_of_cells(kind: str, direction: str, tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.variable_scope("", initializer=tf.random_uniform_initializer(-0.5, 0.5, seed=4)):
            found = _cells(KINDS[kind], direction)
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "cells"))
        loss = tf.reduce_sum(tf.sin(found[0]))
        gradients = tf.gradients(loss, tf.trainable_variables())
        expected = session.run(found)
        named = dict(zip([v.op.name for v in tf.trainable_variables()], session.run(gradients), strict=True))
    with tf.Graph().as_default(), tf.Session() as session:
        layer, found = _layer(kind, direction)
        tf.train.Saver([layer.saveable]).restore(session, path)
        for value, other in zip(session.run(found), expected, strict=True):
            np.testing.assert_allclose(value, other, atol=2e-6)
        # A gradient in the buffer's layout is converted like the buffer; a cell's bias is the sum of two biases.
        (gradient,) = tf.gradients(tf.reduce_sum(tf.sin(found[0])), [layer.kernel])
        weights, _ = layer.saveable.format_converter.opaque_to_tf_canonical(gradient)
        for spec, value in zip(layer.saveable.specs, session.run(weights), strict=False):
            np.testing.assert_allclose(value, named[spec.name], atol=1e-5)


def test_batch_major_equals_time_major() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        layer, (outputs, _) = _layer("LSTM", "bidirectional")
        turned, states = layer(tf.constant(X.swapaxes(0, 1)), sequence_lengths=LENGTHS, time_major=False)
        session.run(tf.global_variables_initializer())
        first, second = session.run([outputs, turned])
        np.testing.assert_allclose(first.swapaxes(0, 1), second, atol=1e-6)
        assert [state.shape.as_list() for state in states] == [[3, 4, UNITS]] * 2


def test_outputs_are_dropped_between_layers_in_training_only() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        layer = tf.contrib.cudnn_rnn.CudnnGRU(2, 64, dropout=0.5, seed=1)
        layer.build(X.shape)
        x = tf.constant(X)
        trained, served = layer(x)[0], layer(x, training=False)[0]
        session.run(tf.global_variables_initializer())
        again = session.run(served)
        np.testing.assert_array_equal(session.run(served), again)
        assert np.abs(session.run(trained) - again).max() > 0.01


def test_modes_without_first_matrices_are_refused() -> None:
    with pytest.raises(ValueError, match="skip_input"):
        tf.contrib.cudnn_rnn.CudnnLSTM(1, 4, input_mode="skip_input")
