"""Layers with variables of their own."""

import threading

import pytest

from headwater import tf
from headwater.tf1.layers import naming


def _shared() -> list[str]:
    """Returns the names of the variables of two layers that are called in one variable scope."""
    with tf.Graph().as_default():
        for reuse in (False, True):
            with tf.variable_scope("s", reuse=reuse):
                tf.layers.Dense(2)(tf.ones([2, 3]))
        return [variable.name for variable in tf.global_variables()]


def test_the_switch_is_for_the_whole_process(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _shared() == ["s/dense/kernel:0", "s/dense/bias:0"]
    monkeypatch.setattr(naming._Program, "always", False)
    tf.layers.experimental.set_keras_style()
    found: list[list[str]] = []
    thread = threading.Thread(target=lambda: found.append(_shared()))
    thread.start()
    thread.join()
    own = ["s/dense_1/kernel:0", "s/dense_1/bias:0", "s_1/dense_2/kernel:0", "s_1/dense_2/bias:0"]
    assert found == [_shared()] == [own]
