"""Tensors that the program feeds need not have the properties that the graph would guarantee."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pytest

from headwater.graph.runtime.mode_choice import VARIABLE
from headwater.tf1.compat import tf

_OPTIMIZERS: Final[Mapping[str, Callable[[], Any]]] = {
    "Adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "Momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "Adam": lambda: tf.train.AdamOptimizer(0.1),
    "Ftrl": lambda: tf.train.FtrlOptimizer(0.1),
    "GradientDescent": lambda: tf.train.GradientDescentOptimizer(0.1),
}
#: Rows 1 and 3 after three steps, as TensorFlow 1.15 computes them.
_TRAINED: Final = {
    "Adagrad": [[0.7806637, 0.7805082], [0.7822992, 0.7809222]],
    "Momentum": [[-0.854, -0.548], [0.062, -0.54]],
    "Adam": [[0.7015873, 0.7015873], [0.7015873, 0.7015873]],
    "Ftrl": [[0.7316588, 0.7559406], [0.6378896, 0.7076641]],
    "GradientDescent": [[0.064, -0.008], [0.512, 0.216]],
}


@pytest.mark.parametrize("jit", ["off", "on"])
@pytest.mark.parametrize("place", ["unique", "reshaped", "same"])
@pytest.mark.parametrize("optimizer", list(_OPTIMIZERS))
def test_rows_of_repeated_fed_indices_add_up(
    monkeypatch: pytest.MonkeyPatch, optimizer: str, place: str, jit: str
) -> None:
    monkeypatch.setenv(VARIABLE, jit)
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.get_variable("table", initializer=np.ones((5, 2), np.float32))
        unique = tf.unique(tf.placeholder(tf.int64, [None])).y
        reshaped = tf.reshape(unique, [-1])
        same = tf.identity(reshaped)
        loss = tf.reduce_sum(tf.square(tf.gather(table, same)) * [[1.0, 2.0]])
        train = _OPTIMIZERS[optimizer]().minimize(loss)
        session.run(tf.global_variables_initializer())
        fed = {"unique": unique, "reshaped": reshaped, "same": same}[place]
        for _ in range(3):
            session.run(train, {fed: [1, 3, 1, 1]})
        np.testing.assert_allclose(session.run(table)[[1, 3]], _TRAINED[optimizer], rtol=1e-5)


@pytest.mark.parametrize("jit", ["off", "on"])
def test_fed_labels_in_place_of_an_argmax_are_checked(monkeypatch: pytest.MonkeyPatch, jit: str) -> None:
    monkeypatch.setenv(VARIABLE, jit)
    with tf.Graph().as_default(), tf.Session() as session:
        labels = tf.argmax(tf.placeholder(tf.float32, [None, 3]), axis=1)
        logits = tf.placeholder(tf.float32, [None, 3])
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        with pytest.raises(tf.errors.InvalidArgumentError, match="label"):
            session.run(loss, {labels: [3], logits: np.zeros((1, 3))})
