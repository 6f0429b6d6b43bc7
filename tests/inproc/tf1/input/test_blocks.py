"""Blocks of elements in input pipelines: which pipelines use blocks, and that results do not change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater.graph.collections import GraphKeys
from headwater.graph.graph import Graph
from headwater.graph.passes.block_plan import BlockPlan, in_blocks
from headwater.graph.passes.partition import partition
from headwater.graph.passes.place import place
from headwater.graph.passes.prune import RunRequest, prune
from headwater.graph.passes.schedule import schedule
from headwater.graph.runtime.task import TaskRuntime
from headwater.tf1.compat import tf


def _blocks_of(build: Callable[[Any], Any]) -> BlockPlan | None:
    """Returns the plan that the pass makes of the step that fills the queue of a batch of ``build(number)``."""
    with Graph().as_default() as graph:
        number = tf.train.range_input_producer(10, shuffle=False).dequeue()
        tf.train.batch(build(number), 2)
        (enqueue,) = graph.get_collection(GraphKeys.QUEUE_RUNNERS)[1].enqueue_ops
        (plan,) = schedule(partition(place(prune(RunRequest((), (), (enqueue,))), TaskRuntime().devices()))).values()
        return in_blocks(plan)


def test_functions_of_the_element_go_in_blocks() -> None:
    block = _blocks_of(lambda number: [tf.cast(number, tf.float32) * 2.0, tf.constant(1)])
    assert block is not None
    assert block.source.type == "QueueDequeueV2"
    assert len(block.body) == 1


def test_random_numbers_go_in_blocks() -> None:
    assert _blocks_of(lambda number: [tf.random_shuffle(tf.stack([number, number + 1]))]) is not None


def test_variables_do_not() -> None:
    assert _blocks_of(lambda number: [number + tf.Variable(1, trainable=False)]) is None


def test_python_functions_do_not() -> None:
    assert _blocks_of(lambda number: [tf.reshape(tf.py_func(lambda x: x, [number], tf.int32), [])]) is None


def _all_of(tensor: Any) -> tuple[list[Any], str]:
    """Returns all values until the end, and the class of the error that ended them."""
    values: list[Any] = []
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        try:
            while True:
                values += session.run(tensor).tolist()
        except tf.errors.OutOfRangeError:
            pass
        try:
            coordinator.request_stop()
            coordinator.join(threads)
        except tf.errors.OpError as error:
            return values, type(error).__name__
    return values, ""


def test_elements_before_a_bad_one_arrive(tmp_path: Path) -> None:
    path = tmp_path / "numbers.csv"
    path.write_text("".join(f"{i}\n" for i in range(50)) + "bad\n60\n")
    with Graph().as_default():
        queue = tf.train.string_input_producer([str(path)], num_epochs=1)
        (number,) = tf.decode_csv(tf.TextLineReader().read(queue)[1], [[0]])
        values, error = _all_of(tf.train.batch([number], 5, capacity=200))
    assert values == list(range(50))
    assert error == "InvalidArgumentError"


@pytest.mark.parametrize("capacity", [2, 30, 1000])
def test_elements_of_different_shapes_go_one_by_one(tmp_path: Path, capacity: int) -> None:
    path = tmp_path / "words.txt"
    path.write_text("".join("x" * (1 + i % 7) + "\n" for i in range(60)))
    with Graph().as_default():
        queue = tf.train.string_input_producer([str(path)], num_epochs=1)
        letters = tf.decode_raw(tf.TextLineReader().read(queue)[1], tf.uint8)
        batch = tf.train.batch([letters], 4, capacity=capacity, dynamic_pad=True)
        values, error = _all_of(tf.count_nonzero(batch, axis=1))
    assert (values, error) == ([1 + i % 7 for i in range(60)], "")
