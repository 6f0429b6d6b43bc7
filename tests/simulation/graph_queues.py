"""Histories of workers that pass numbers through a queue on each parameter server, with two replicas of each server.

A worker enqueues unique numbers, and dequeues numbers. Whatever the faults, each number is dequeued once, or is still
in the queue; only a number that was about to be delivered to a killed worker may be missing. The numbers of one worker
are dequeued in the order in which it has enqueued them.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from headwater.graph.resources.queues import Queue
from headwater.graph.server.replicas.copy import GraphCopy
from headwater.tf1.compat import tf
from tests.simulation.cluster import Task
from tests.simulation.graph_copies import GraphCopiesHistory, drawn
from tests.simulation.graphs import Setting
from tests.simulation.scheduler import HistoryError, Simulation, running

_SPAN = 1000
"""Numbers of worker i begin at i times this."""


class QueueCopiesHistory(GraphCopiesHistory):
    """A history; see `GraphCopiesHistory`."""

    def __init__(self, simulation: Simulation, setting: Setting) -> None:
        super().__init__(simulation, setting)
        self._given: Counter[int] = Counter()  # by worker: number of enqueues that it has begun
        self._put: set[int] = set()
        self._taken: list[tuple[int, int]] = []
        self._lost = 0

    def _train(self, index: int) -> None:
        setting = self.setting
        server = tf.train.Server(self._spec, job_name="worker", task_index=index)
        with tf.Graph().as_default() as graph:
            with tf.device("/job:ps/task:0"):
                tf.train.get_or_create_global_step()
            queues: list[Any] = []
            for task in range(setting.servers):
                with tf.device(f"/job:ps/task:{task}"):
                    queues.append(tf.FIFOQueue(setting.workers + 1, tf.int64, [()], shared_name=f"queue{task}"))
            number = tf.placeholder(tf.int64, [])
            puts, takes = [queue.enqueue(number) for queue in queues], [queue.dequeue() for queue in queues]
            vars(graph)["same_as"] = "queues", setting.servers, setting.workers, index
            with tf.train.MonitoredTrainingSession(server.target, is_chief=index == 0) as sess:
                self._prepared |= index == 0
                while self._given[index] < setting.steps:
                    running().sleep(running().random.expovariate(1.0) * setting.work_s)
                    at = running().random.randrange(setting.servers)
                    unit = index * _SPAN + self._given[index]
                    self._given[index] += 1
                    sess.run(puts[at], {number: unit})
                    self._put.add(unit)
                    # A worker that is killed during the dequeue never decrements this count: the number that it
                    # dequeued may be missing.
                    self._lost += 1
                    found = int(sess.run(takes[at]))
                    self._lost -= 1
                    self._taken.append((index, found))
                    running().note(f"worker{index} has put {unit} into queue {at}, and taken {found}")
                while index == 0 and any(not task.done for task in self._others()):  # the chief has the witness
                    running().sleep(0.1)

    def _others(self) -> list[Task]:
        return [self.cluster.tasks[f"worker{index}"] for index in range(1, self.setting.workers)]

    @staticmethod
    def _values_of(copy: GraphCopy) -> dict[str, np.ndarray[Any, Any]]:
        kept = list(copy.runtime.resources.of_kind(Queue).values())
        return {its.name: np.array([int(each[0]) for each in its._held()]) for its in kept}

    def _check(self) -> None:
        left = [number for values in self._values.values() for held in values.values() for number in held.tolist()]
        taken = [number for _, number in self._taken]
        twice = [number for number, count in Counter([*taken, *left]).items() if count > 1]
        if twice:
            raise HistoryError(f"numbers {twice} were dequeued more than once")
        missing = self._put.difference(taken, left)
        if len(missing) > self._lost:
            raise HistoryError(f"numbers {sorted(missing)} are lost, and {self._lost} were in transit")


def history(seed: int) -> tuple[Simulation, QueueCopiesHistory]:
    """Creates, but does not run, a history drawn from ``seed``."""
    simulation = Simulation(seed, horizon_s=900.0)
    chance = random.Random(f"graph copies of queues {seed}")
    return simulation, QueueCopiesHistory(simulation, replace(drawn(chance), steps=chance.randint(20, 60)))
