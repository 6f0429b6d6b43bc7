"""A worker that counts accounted examples on two ps for three epochs: each batch adds 1 at the positions of its
examples.

With ``--hold_at=3 --hold_at=6`` it stops within its third step and again within its sixth, while their examples are
assigned to it, until a pipe named ``hold-TASK`` in the folder is opened. It prints ``step N`` after each step, and the
counts at the end.

With ``--mode``, an update combines the gradients of several workers: with ``replicas 3`` through a
`SyncReplicasOptimizer`, otherwise through a `ConsistentOptimizer`. The gradients are added up, not averaged.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from task import args, replicas, start_server

import headwater.data
from headwater import tf
from headwater.graph.resources.accumulators import DenseSum
from headwater.tf1.training.consistency import ConsistentOptimizer

SIZE, BATCH, EPOCHS = 400, 8, 3

steps = 0


def hold(numbers: np.ndarray) -> np.ndarray:
    global steps
    steps += 1
    if steps in args.hold_at:
        print("holding", flush=True)
        with open(os.path.join(args.folder, f"hold-{args.task_index}"), "rb") as pipe:
            pipe.read()
    return numbers


def added_up(self: DenseSum, count: int, mean: bool, reduced: Any = DenseSum.reduce) -> Any:
    del mean
    return reduced(self, count, False)


sums: Any = DenseSum
sums.reduce = added_up
server = start_server()
with replicas():
    dataset = tf.data.Dataset.range(SIZE)
    taken = headwater.data.accounted(dataset, batch_size=BATCH, epochs=EPOCHS, patience_s=2.0)
    numbers = tf.py_func(hold, [taken.make_one_shot_iterator().get_next()], tf.int64)
    numbers.set_shape([BATCH])
    counts = [tf.get_variable(name, initializer=np.zeros(SIZE, np.float32)) for name in ("a", "b", "c")]
    loss = -tf.reduce_sum(sum(counts) * tf.reduce_sum(tf.one_hot(numbers, SIZE), 0))
    optimizer: Any = tf.train.GradientDescentOptimizer(1.0)
    if args.mode.startswith("replicas"):
        optimizer = tf.train.SyncReplicasOptimizer(optimizer, int(args.mode.split()[1]), 3)
    elif args.mode:
        optimizer = ConsistentOptimizer(optimizer, args.mode)
    train = optimizer.minimize(loss, tf.train.get_or_create_global_step())
found: list[np.ndarray] = []


class Counts(tf.train.SessionRunHook):
    def end(self, session: Any) -> None:
        found.extend(session.run(counts))


with tf.train.MonitoredTrainingSession(
    server.target,
    is_chief=args.task_index == 0,
    checkpoint_dir=os.path.join(args.folder, "checkpoints"),
    save_checkpoint_secs=None,
    save_checkpoint_steps=args.save_steps,
    save_summaries_steps=None,
    hooks=[Counts(), *([optimizer.make_session_run_hook(args.task_index == 0)] if args.mode else [])],
) as session:
    while not session.should_stop():
        session.run(train)
        print(f"step {steps}", flush=True)
print("counts", *(sorted(set(map(float, count))) for count in found), flush=True)
