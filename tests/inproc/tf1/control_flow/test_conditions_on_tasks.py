"""Conditions with branches that change variables of several tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headwater.tf1.compat import tf
from tests.inproc.conftest import StartCluster


@pytest.mark.parametrize("optimizer", ["GradientDescent", "Adam"])
def test_an_update_of_variables_on_two_ps(start_cluster: StartCluster, optimizer: str) -> None:
    def values(target: str, devices: list[str]) -> list[Any]:
        with tf.Graph().as_default():
            ready = tf.placeholder(tf.bool, [])
            variables: list[Any] = []
            for number, device in enumerate(devices):
                with tf.device(device):
                    variables.append(tf.Variable([1.0 + number, 2.0], name=f"v{number}"))
            step = tf.train.get_or_create_global_step()
            loss = tf.add_n([tf.reduce_sum(tf.square(v)) for v in variables]) * tf.reduce_sum(variables[0])
            opt = getattr(tf.train, f"{optimizer}Optimizer")(0.1)
            pairs = opt.compute_gradients(loss, variables)
            train = tf.cond(ready, lambda: opt.apply_gradients(pairs, global_step=step), tf.no_op)
            with tf.Session(target) as session:
                session.run(tf.global_variables_initializer())
                found: list[Any] = []
                for now in (True, False, True):
                    session.run(train, {ready: now})
                    found.append([value.tolist() for value in session.run([*variables, step])])
                return found

    cluster = start_cluster(ps=2, worker=1)
    tasks = ["/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:0"]
    np.testing.assert_equal(values(cluster.targets["worker:0"], tasks), values("", [""] * 3))


def test_stages_use_results_of_others(start_cluster: StartCluster) -> None:
    cluster = start_cluster(ps=1, worker=1)
    with tf.Graph().as_default(), tf.device("/job:worker/task:0"):
        ready = tf.placeholder(tf.bool, [])
        with tf.device("/job:ps/task:0"):
            center = tf.Variable([1.0, 2.0])
        local = tf.Variable([5.0, 5.0])

        def exchange() -> Any:
            with tf.control_dependencies([local.assign(center.read_value())]):
                difference = local.read_value() * 2.0
            return center.assign_add(difference) + 1.0

        result = tf.cond(ready, exchange, lambda: tf.constant([7.0, 7.0]))
        with tf.Session(cluster.targets["worker:0"]) as session:
            session.run(tf.global_variables_initializer())
            found = [session.run(result, {ready: now}).tolist() for now in (False, True, True)]
            assert found == [[7.0, 7.0], [4.0, 7.0], [10.0, 19.0]]
            assert session.run([local, center])[0].tolist() == [3.0, 6.0]
            assert session.run(center).tolist() == [9.0, 18.0]
