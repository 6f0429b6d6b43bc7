"""Sessions with their own state on all tasks."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.graph.master.master import SessionOptions
from headwater.graph.master.session_config import session_options
from headwater.tf1.compat import tf
from tests.inproc.conftest import StartCluster


@pytest.mark.parametrize("local", [False, True], ids=["of another task", "of the master"])
def test_variables_and_queues_are_the_session_s_own(start_cluster: StartCluster, local: bool) -> None:
    target = start_cluster(ps=1, worker=1).targets["worker:0"]
    isolated = tf.ConfigProto(isolate_session_state=True)
    with tf.Graph().as_default(), tf.device("/job:worker/task:0" if local else "/job:ps/task:0"):
        v = tf.Variable(1.0, name="v")
        more = tf.assign_add(v, 1.0)
        queue = tf.FIFOQueue(5, [tf.float32], shared_name="queue")
        put, size = queue.enqueue([1.0]), queue.size()
        with tf.Session(target) as shared:
            shared.run([v.initializer, put])
            shared.run(more)
            with tf.Session(target, config=isolated) as own, tf.Session(target, config=isolated) as another:
                with pytest.raises(tf.errors.FailedPreconditionError):
                    own.run(v)
                for session in (own, another):
                    session.run(v.initializer)
                own.run(more)
                own.run(more)
                assert [session.run([v, size]) for session in (shared, own, another)] == [[2, 1], [3, 0], [1, 0]]
            with tf.Session(target) as late:
                assert late.run([v, size]) == [2, 1]


def test_a_worker_s_end_of_session_frees_its_state(start_cluster: StartCluster) -> None:
    target = start_cluster(ps=1, worker=1).targets["worker:0"]
    isolated = tf.ConfigProto(isolate_session_state=True)
    with tf.Graph().as_default(), tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(5, [tf.float32], shared_name="queue")
        put, size = queue.enqueue([1.0]), queue.size()
        for _ in range(2):
            with tf.Session(target, config=isolated) as session:
                session.run(put)
                assert session.run(size) == 1


def test_the_option_reaches_a_master_elsewhere() -> None:
    options: Any = session_options(tf.ConfigProto(isolate_session_state=True))
    assert SessionOptions.decode(options.encode()).isolated
    assert not session_options(tf.ConfigProto()).isolated
