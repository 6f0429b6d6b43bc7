"""Plans that a task may repeat without further requests."""

from __future__ import annotations

from typing import Any

from headwater import tf
from headwater.cluster.devices import parse_device
from headwater.graph.passes.partition import partition
from headwater.graph.passes.place import place
from headwater.graph.passes.plan import TaskPlan
from headwater.graph.passes.prune import RunRequest, prune
from headwater.graph.passes.repetition import can_repeat
from headwater.graph.passes.schedule import schedule
from headwater.ps.consistency import Synchronous
from headwater.tf1.training.consistency import ConsistentOptimizer

WORKER, PS = "/job:worker/replica:0/task:0", "/job:ps/replica:0/task:0"


def _plans(make: Any, *, noise: bool = False, ps_tasks: int = 1) -> tuple[dict[str, TaskPlan], dict[str, TaskPlan]]:
    """The plans of a replica's step, and of the update of all replicas' gradients."""
    devices = [parse_device(f"/job:ps/replica:0/task:{i}/device:CPU:0") for i in range(ps_tasks)]
    devices.append(parse_device(f"{WORKER}/device:CPU:0"))

    def planned(target: Any) -> dict[str, TaskPlan]:
        return dict(schedule(partition(place(prune(RunRequest((), (), (target,))), devices))))

    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(ps_tasks, worker_device="/job:worker/task:0")):
            weights = [tf.Variable(tf.zeros([3])) for _ in range(2)]
            step = tf.train.get_or_create_global_step()
            opt = make(_Noisy(0.1) if noise else tf.train.GradientDescentOptimizer(0.1))
            train = opt.minimize(tf.reduce_sum(tf.exp(weights[0]) * weights[1]), global_step=step)
        runners = opt.get_queue_runners() if isinstance(opt, ConsistentOptimizer) else [opt.get_chief_queue_runner()]
        return planned(train), planned(runners[0].enqueue_ops[0])


class _Noisy(tf.train.GradientDescentOptimizer):
    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
        noisy = [(grad + tf.random_normal(grad.shape), var) for grad, var in grads_and_vars]
        return super().apply_gradients(noisy, global_step, name)


def _synchronous(opt: Any) -> Any:
    return tf.train.SyncReplicasOptimizer(opt, replicas_to_aggregate=2)


def _consistent(opt: Any) -> Any:
    return ConsistentOptimizer(opt, Synchronous(workers=2))


def test_updates_of_gathered_gradients_are_repeatable() -> None:
    for make in (_synchronous, _consistent):
        step, update = _plans(make)
        assert list(update) == [PS]
        assert can_repeat(update[PS])
        assert not any(can_repeat(plan) for plan in step.values())


def test_random_numbers_need_a_step_of_their_own() -> None:
    _, update = _plans(_synchronous, noise=True)
    assert not can_repeat(update[PS])


def test_several_tasks_meet_at_every_update() -> None:
    _, update = _plans(_synchronous, ps_tasks=2)
    assert len(update) == 2
    assert not any(can_repeat(plan) for plan in update.values())
