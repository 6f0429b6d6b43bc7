"""Joined shapes of TensorFlow's module of cells, which programs with their own recurrent networks import."""

from __future__ import annotations

import pytest

from headwater import tf
from headwater.tf1.rnn.sizes import _concat, _like_rnncell


def test_joined_shapes() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        rows = tf.shape(tf.placeholder_with_default([[1.0, 2.0, 3.0]], [None, 3]))
        assert _concat(4, 3, static=True) == [4, 3]
        assert _concat([None, 2], 3, static=True) == [None, 2, 3]
        assert _concat(tf.constant([4, 5]), 3, static=True) == [4, 5, 3]
        assert _concat(rows[0], 3, static=True) is None
        assert session.run(_concat(4, [3, 2])).tolist() == [4, 3, 2]
        assert session.run(_concat(rows[0], 7)).tolist() == [1, 7]
        assert session.run(_concat(tf.constant(2), rows)).tolist() == [2, 1, 3]
        with pytest.raises(ValueError, match="prefix or suffix of None"):
            _concat(None, 3)


def test_cells_by_their_interface() -> None:
    assert _like_rnncell(tf.nn.rnn_cell.GRUCell(3))
    assert not _like_rnncell(len)
