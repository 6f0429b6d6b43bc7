"""Blocks of devices and control dependencies that each thread has for itself."""

from __future__ import annotations

import threading

from headwater import tf


def test_a_thread_begins_with_the_open_blocks_and_keeps_its_own() -> None:
    graph = tf.Graph()
    entered, looked = threading.Event(), threading.Event()
    found: dict[str, tf.Operation] = {}

    def build() -> None:
        with graph.as_default():
            found["begin"] = tf.no_op()
            with tf.device("/cpu:1"), tf.control_dependencies([found["begin"]]):
                found["inner"] = tf.no_op()
                entered.set()
                looked.wait()

    with graph.as_default():
        before = tf.no_op(name="before")
        with tf.device("/cpu:0"), tf.control_dependencies([before]):
            graph.switch_to_thread_local()
            graph.switch_to_thread_local()
            thread = threading.Thread(target=build)
            thread.start()
            entered.wait()
            meanwhile = tf.no_op()
            looked.set()
            thread.join()
        after = tf.no_op()
    assert [op.device for op in (found["begin"], found["inner"], meanwhile, after)] == [
        "/device:CPU:0",
        "/device:CPU:1",
        "/device:CPU:0",
        "",
    ]
    assert set(found["inner"].control_inputs) == {before, found["begin"]}
    assert meanwhile.control_inputs == [before]
    assert after.control_inputs == []
