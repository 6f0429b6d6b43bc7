"""Resources that sessions share by name have one signature."""

from __future__ import annotations

import pytest

from headwater import tf


def test_an_accumulator_of_another_signature_is_refused() -> None:
    server = tf.train.Server.create_local_server()

    def count(dtype: tf.DType, shape: list[int], kind: str = "MEAN") -> int:
        with tf.Graph().as_default() as graph:
            accumulator = tf.ConditionalAccumulator(dtype, shape, shared_name="gradients", reduction_type=kind)
            number = accumulator.num_accumulated()
        with tf.Session(server.target, graph=graph) as session:
            return int(session.run(number))

    assert count(tf.float32, [2]) == 0
    for what, other in (
        ("element type", (tf.float64, [2])),
        ("shape", (tf.float32, [3])),
        ("reduction_type", (tf.float32, [2], "SUM")),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"Shared accumulator 'gradients' has {what}"):
            count(*other)  # type: ignore[bad-argument-type]
    assert count(tf.float32, [2]) == 0
