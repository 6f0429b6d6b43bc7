"""`StagingArea`. The expected results are those of TensorFlow 1.15."""

from __future__ import annotations

import numpy as np

from headwater import tf


def test_elements_are_read_removed_and_counted() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        area = tf.contrib.staging.StagingArea([tf.float32], shapes=[[]])
        x = tf.placeholder(tf.float32, [])
        put, get, second = area.put([x]), area.get(), area.get()
        size, peek, clear = area.size(), area.peek(1), area.clear()
        for value in (1, 2, 3):
            session.run(put, {x: value})
        assert (session.run(size), session.run(peek), session.run(get), session.run(size)) == (3, [2], [1], 2)
        session.run(put, {x: 4})
        assert sorted(np.ravel(session.run([get, second]))) == [2, 3]
        assert session.run(size) == 1
        session.run(clear)
        assert session.run(size) == 0
        session.run(put, {x: 5})
        session.run(put, {x: 6})
        assert (session.run(peek), session.run(get)) == ([6], [5])


def test_named_components_of_any_shape_are_read() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        area = tf.contrib.staging.StagingArea([tf.float32, tf.string], names=["a", "b"])
        session.run(area.put({"a": tf.constant([1.0, 2.0]), "b": tf.constant("x")}))
        for found in (session.run(area.peek(0)), session.run(area.get())):
            assert (found["a"].tolist(), found["b"]) == ([1, 2], b"x")
