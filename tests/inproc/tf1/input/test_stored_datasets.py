"""A dataset cached in files, in graphs."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater import tf


def test_a_graph_uses_a_cache_of_another_graph(tmp_path: Path) -> None:
    for last in (4, 100):  # the second time, the cache replaces the range
        with tf.Graph().as_default(), tf.Session() as session:
            name = tf.placeholder(tf.string, [])
            dataset = tf.data.Dataset.range(last).map(lambda x: (x, tf.as_string(x * x))).cache(name).batch(3)
            iterator = dataset.make_initializable_iterator()
            following = iterator.get_next()
            session.run(iterator.initializer, {name: str(tmp_path / "kept")})
            assert [part.tolist() for part in session.run(following)] == [[0, 1, 2], [b"0", b"1", b"4"]]
            assert [part.tolist() for part in session.run(following)] == [[3], [b"9"]]
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(following)
