"""Statistics of compilations, by part."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest

from headwater import tf
from headwater.graph.runtime import compilations


def test_a_part_is_counted_once_for_each_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    # Earlier tests of this process compiled many parts that took longer.
    monkeypatch.setattr(compilations, "_MAX_NAMED", sys.maxsize)
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None])
        y = tf.tanh(x * 2.0, name="counted_by_shape")
        options = tf.OptimizerOptions(global_jit_level=tf.OptimizerOptions.ON_1)
        config = tf.ConfigProto(graph_options=tf.GraphOptions(optimizer_options=options))
        with tf.Session(config=config) as session:
            for length in (3, 5, 3, 5):
                session.run(y, {x: np.ones(length, np.float32)})
    found = re.search(r"counted_by_shape \((\d+) shapes, (\d+\.\d+) s\)", compilations.statistics.summary())
    assert found
    assert int(found[1]) == 2
    assert float(found[2]) > 0
