"""Updates of small variables run in the thread of the request, with the same results as one by one."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from headwater import tf
from headwater.graph.runtime import small_updates

#: Prints how often the requesting thread waits during a step, in a task with one thread for its kernels.
WAITS = """
import resource, sys
import numpy as np
import headwater.tables.row_loops  # otherwise they would be imported in the background of these steps
from headwater import tf
from headwater.graph.runtime.devices import share_machine

share_machine(beside=64, sparing=0)
count = int(sys.argv[1])
variables = [tf.Variable(np.zeros((300, 300), np.float32)) for _ in range(count)]
gradients = [tf.constant(np.ones((300, 300), np.float32)) for _ in range(count)]
step = tf.train.AdamOptimizer(0.1).apply_gradients(zip(gradients, variables))
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    run = session.make_callable(step)
    run()
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
    for _ in range(100):
        run()
    print((resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before) / 100)
"""


@pytest.mark.parametrize("jit", ["off", "on"])
@pytest.mark.parametrize("count", [9, 20])
def test_no_other_thread_is_awaited(count: int, jit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # While a part is compiled in the background, the compiling thread and this one alternate in holding the interpreter
    # lock.
    monkeypatch.setenv("HEADWATER_JIT", jit)
    done = subprocess.run([sys.executable, "-c", WAITS, str(count)], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 0.5


def _trained(count: int) -> list[np.ndarray]:
    """Returns the values of variables after steps of Adam."""
    with tf.Graph().as_default(), tf.Session() as session:
        variables = [tf.Variable(np.full((40, 10), i, np.float32)) for i in range(count)]
        gradients = [tf.constant(np.full((40, 10), 1 + i, np.float32)) for i in range(count)]
        step = tf.train.AdamOptimizer(0.1).apply_gradients(zip(gradients, variables, strict=True))
        session.run(tf.global_variables_initializer())
        for _ in range(5):
            session.run(step)
        return session.run(variables)


@pytest.mark.parametrize("count", [1, 2, 3, 17])
def test_values_are_those_of_updates_one_by_one(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    together = _trained(count)
    monkeypatch.setattr(small_updates, "LARGE", 0)
    for one, other in zip(together, _trained(count), strict=True):
        np.testing.assert_array_equal(one, other)


def test_operations_that_use_an_update_run_after_it() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        a, b, c, d = (tf.Variable(np.full([3], float(i)), name=name) for i, name in enumerate("abcd"))
        first = [a.assign_add([1.0] * 3), b.assign_sub([2.0] * 3), c.assign_add([5.0] * 3)]
        with tf.control_dependencies(first):
            again = a.assign_add(b.read_value() + c.read_value())
        with tf.control_dependencies([again]):
            total = d.assign(a.read_value() * 10.0)
        session.run(tf.global_variables_initializer())
        assert session.run(total).tolist() == [((0 + 1) + (1 - 2) + (2 + 5)) * 10.0] * 3
        assert session.run([a, b, c])[0].tolist() == [7.0] * 3


def test_variables_fetched_with_computed_tensors() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        variables = [tf.Variable(np.full([3], float(i))) for i in range(5)]
        twice = tf.Variable(10.0) * 2.0
        session.run(tf.global_variables_initializer())
        *found, number = session.run([*variables, twice])
        assert [value.tolist() for value in found] == [[float(i)] * 3 for i in range(5)]
        assert number == 20.0


def test_large_variables_and_updates_of_rows() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        large = [tf.Variable(tf.zeros([600, 500])) for _ in range(2)]
        rows = [tf.Variable(tf.zeros([6, 2])) for _ in range(4)]
        updates = [v.assign_add(tf.ones([600, 500])) for v in large]
        updates += [tf.scatter_add(v, [0, 5, 5], tf.ones([3, 2])) for v in rows]
        session.run(tf.global_variables_initializer())
        session.run(updates)
        assert all((value == 1).all() for value in session.run(large))
        assert all(value[:, 0].tolist() == [1, 0, 0, 0, 0, 2] for value in session.run(rows))
