"""Workers that train in rounds of gathered gradients, or with bounded staleness, on two ``ps``."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from headwater import tf
from headwater.ps.consistency import BoundedStaleness, Synchronous
from headwater.tf1.training.consistency import ConsistentOptimizer

WORKERS, STEPS = 2, 3


def _sync() -> Any:
    return tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), WORKERS, WORKERS)


def _consistent() -> Any:
    return ConsistentOptimizer(tf.train.GradientDescentOptimizer(1.0), Synchronous(workers=WORKERS))


def _bounded() -> Any:
    return ConsistentOptimizer(tf.train.GradientDescentOptimizer(1.0), BoundedStaleness(steps=1))


@dataclass
class Worker:
    """One worker's program: each of its steps adds 1 to this worker's element of the variable on each ``ps``."""

    index: int
    target: str
    optimizer: Callable[[], Any]
    gate: threading.Barrier
    begin: Callable[[], None]

    def run(self) -> list[Any]:
        """Makes all steps; returns the values of the variables at the end."""
        chief = self.index == 0
        with tf.Graph().as_default():
            with tf.device("/job:ps/task:0"):
                global_step = tf.train.get_or_create_global_step()
            counts: list[Any] = []
            for ps in (0, 1):
                with tf.device(f"/job:ps/task:{ps}"):
                    counts.append(tf.get_variable(f"count{ps}", [WORKERS], initializer=tf.zeros_initializer()))
            with tf.device(f"/job:worker/task:{self.index}"):
                # The gradient is -1 at this worker's element and 0 elsewhere, so a step of rate 1 adds 1 there.
                mine = tf.constant(np.arange(WORKERS) == self.index, tf.float32)
                loss = -tf.add_n([tf.reduce_sum(count * mine) for count in counts])
            optimizer = self.optimizer()
            worker = f"/job:worker/task:{self.index}"
            with tf.device(tf.train.replica_device_setter(ps_tasks=2, worker_device=worker)):
                step = optimizer.minimize(loss, global_step=global_step)
            hooks = [optimizer.make_session_run_hook(chief)]
            with tf.train.MonitoredTrainingSession(
                self.target, is_chief=chief, hooks=hooks, log_step_count_steps=None
            ) as session:
                session.run(step)
                self.gate.wait()
                if chief:
                    self.begin()
                self.gate.wait()
                for _ in range(STEPS):
                    session.run(step)
                self.gate.wait()
                found = session.run([global_step, *counts])
        return found


def _train(target: Callable[[int], str], optimizer: Callable[[], Any], begin: Callable[[], None]) -> list[Any]:
    gate = threading.Barrier(WORKERS)
    results: dict[int, Any] = {}
    errors: list[BaseException] = []

    def work(index: int) -> None:
        try:
            results[index] = Worker(index, target(index), optimizer, gate, begin).run()
        except BaseException as error:
            errors.append(error)
            # The other workers would wait at the barrier forever.
            gate.abort()
            raise

    threads = [threading.Thread(target=work, args=(index,)) for index in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    return results[0]


def _values(steps: int, each: float) -> list[Any]:
    return [steps, [each] * WORKERS, [each] * WORKERS]


KINDS = {
    # A round is the mean of the gradients of both workers, so each element grows by 1 / WORKERS.
    "sync": (_sync, _values(STEPS + 1, (STEPS + 1) / WORKERS)),
    "consistent": (_consistent, _values(STEPS + 1, (STEPS + 1) / WORKERS)),
    # Each step is applied on its own, and counted in the global step.
    "bounded": (_bounded, _values(WORKERS * (STEPS + 1), STEPS + 1.0)),
}


def check_rounds(kind: str, target: Callable[[int], str], begin: Callable[[], None]) -> None:
    """Trains, and checks the values of the variables at the end.

    Args:
      kind: a key of `KINDS`.
      target: returns the target of a worker's session, by its number.
      begin: called once, after the first step of each worker. The workers continue when it has returned.
    """
    optimizer, expected = KINDS[kind]
    for value, other in zip(_train(target, optimizer, begin), expected, strict=True):
        np.testing.assert_array_equal(value, other)
