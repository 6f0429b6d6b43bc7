"""Sessions whose master does not answer: `operation_timeout_in_ms` ends the wait, as in TensorFlow."""

from __future__ import annotations

import socket

import pytest

from headwater import tf


def run(target: str, config: tf.ConfigProto) -> None:
    with tf.Graph().as_default(), tf.Session(target, config=config) as session:
        session.run(tf.constant(1))


def reset(target: str, config: tf.ConfigProto) -> None:
    tf.Session.reset(target, config=config)


@pytest.mark.parametrize("use", [run, reset])
def test_a_wait_for_a_dead_master_ends_when_the_session_says(use: object) -> None:
    assert callable(use)
    # the port does not listen: connections are refused, and no other process can take it
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        target = f"grpc://127.0.0.1:{bound.getsockname()[1]}"
        with pytest.raises(tf.errors.DeadlineExceededError, match="operation_timeout_in_ms=50"):
            use(target, tf.ConfigProto(operation_timeout_in_ms=50))
