"""Histories of training a graph with accounting of examples.

Each example adds 1 at its position of two variables on every parameter server: gathered gradients are added up, not
averaged. So the first server's variables count how often each example was applied.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

from headwater.errors import AbortedError, OutOfRangeError, UnavailableError
from headwater.graph.resources.accumulators import DenseSum
from headwater.tf1.compat import tf
from headwater.tf1.training.accounted import accounted
from headwater.tf1.training.consistency import ConsistentOptimizer
from tests.simulation.graphs import GraphHistory, Setting, saver_of
from tests.simulation.scheduler import HistoryError, Simulation, running

SIZE, BATCH = 9, 2

_reduce = DenseSum.reduce


def _sums(self: DenseSum, count: int, mean: bool) -> Any:
    del mean
    return _reduce(self, count, False)


class GraphExamplesHistory(GraphHistory):
    """A history of training a graph with accounting of examples.

    Attributes:
      epochs: number of epochs.
    """

    epochs: int = 3
    _under_way = False

    def run(self) -> None:
        with mock.patch.object(DenseSum, "reduce", _sums):
            super().run()

    def _optimizer(self) -> Any:
        mode, workers = self.setting.mode, self.setting.workers
        inner = tf.train.GradientDescentOptimizer(1.0)
        match mode:
            case "asynchronous":
                return inner
            case "synchronous":
                return tf.train.SyncReplicasOptimizer(inner, workers, workers)
            case "k of n":
                return tf.train.SyncReplicasOptimizer(inner, max(1, workers - 1), workers)
            case _:
                kind = f"sync={workers}" if self.simulation.seed % 2 else f"k={max(1, workers - 1)} of {workers}"
                return ConsistentOptimizer(inner, kind)

    def _train(self, index: int) -> None:
        over: list[int] = []
        try:
            self._apply_all(index, over)
        except (AbortedError, UnavailableError) as error:
            if not over:
                raise
            # The training was over when the last checkpoint or a hook failed. Such an error has to reach the program.
            running().note(f"worker{index} ends with an error after the training: {error.message}")
            self._ends_unchecked = True
            self.cluster.changed()

    def _apply_all(self, index: int, over: list[int]) -> None:
        setting = self.setting
        server = tf.train.Server(self._spec, job_name="worker", task_index=index)
        with tf.Graph().as_default() as graph:
            worker = f"/job:worker/task:{index}"
            variables: dict[str, Any] = {}
            with tf.device("/job:ps/task:0"):
                step = tf.train.get_or_create_global_step()
            with tf.device(worker):
                # The number of tries is so large that the ledger never sets a range aside because of faults.
                dataset = tf.data.Dataset.range(SIZE)
                taken = accounted(
                    dataset, batch_size=BATCH, epochs=self.epochs, tries=1000, patience_s=20.0, device="/job:ps/task:0"
                )
                batch = taken.make_one_shot_iterator().get_next()
                rows = tf.reduce_sum(tf.one_hot(batch, SIZE), 0)
            for task in range(setting.servers):
                for name in ("a", "b"):
                    with tf.device(f"/job:ps/task:{task}"):
                        variables[f"{name}_ps{task}"] = tf.get_variable(
                            f"{name}_ps{task}", [SIZE], initializer=tf.zeros_initializer()
                        )
            with tf.device(worker):
                loss = -tf.add_n([tf.reduce_sum(variable * rows) for variable in variables.values()])
                optimizer = self._optimizer()
                train = optimizer.minimize(loss, global_step=step)
            gathers = setting.mode != "asynchronous"
            kind = self.simulation.seed % 2, setting.workers
            vars(graph)["same_as"] = "examples", self.epochs, setting.mode, kind, setting.servers, index, setting.saves
            chiefs = gathers and index == 0

            def begun(scaffold: Any, sess: Any) -> None:
                del scaffold, sess
                self._record_new_state()

            with tf.train.MonitoredTrainingSession(
                master=server.target,
                is_chief=index == 0,
                hooks=[optimizer.make_session_run_hook(index == 0)] if gathers else None,
                scaffold=tf.train.Scaffold(init_fn=begun, saver=saver_of(self._record_new_state)) if chiefs else None,
                checkpoint_dir=self.folder if index == 0 else None,
                save_checkpoint_steps=2 if self.folder else None,
                save_checkpoint_secs=None,
                save_summaries_steps=None,
                save_summaries_secs=None,
                log_step_count_steps=None,
            ) as sess:
                while not sess.should_stop():
                    self._look(sess.run(variables))
                    running().sleep(running().random.expovariate(1.0) * setting.work_s)
                    try:
                        numbers, _ = sess.run([batch, train])
                    except OutOfRangeError:
                        over.append(index)
                        running().note(f"worker{index} hears that all is applied")
                        raise
                    self._under_way |= index == 0
                    running().note(f"worker{index} has applied {numbers.tolist()}")

    def _check(self) -> None:
        values = self._values.get("ps0")
        if values is None:  # this server waited for workers that never connected, until the launcher ended it
            return
        if (
            "a_ps0" not in values and self.cluster.tasks["ps0"].process.incarnation > 1
        ):  # this server was lost after all examples were applied
            return
        for name in ("a_ps0", "b_ps0"):
            if not np.array_equal(values[name], np.full(SIZE, self.epochs, np.float32)):
                raise HistoryError(f"{name} has examples {values[name].tolist()} times, not {self.epochs}")


def history(seed: int) -> tuple[Simulation, GraphExamplesHistory]:
    """Creates, but does not run, a history drawn from ``seed``."""
    simulation = Simulation(seed, horizon_s=900.0)
    setting = Setting.draw(random.Random(f"graph examples {seed}"))
    return simulation, GraphExamplesHistory(simulation, replace(setting, stale=None, absent=None))
