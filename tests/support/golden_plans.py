"""The plans of the most important training steps, as text for review.

``python -m tests.support.golden_plans`` rewrites the stored text after an intended change of plans.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from headwater import tf
from headwater.cluster.devices import parse_device
from headwater.graph.passes.lookups import join_lookups
from headwater.graph.passes.partition import partition, verify_partition
from headwater.graph.passes.place import place, verify_placement
from headwater.graph.passes.prune import RunRequest, prune, verify_pruned
from headwater.graph.passes.schedule import schedule, verify_plans
from tests.support.example_programs import load

FOLDER = Path(__file__).resolve().parent.parent / "data" / "plans"
WORKER = "/job:worker/task:0"


def linear() -> RunRequest:
    """``Y = w X + b`` by Adagrad, one example at a time."""
    x, y = tf.placeholder("float"), tf.placeholder("float")
    weight, bias = tf.Variable(0.0, name="weight"), tf.Variable(0.0, name="bias")
    loss = tf.square(y - tf.multiply(x, weight) - bias)
    global_step = tf.Variable(0, name="global_step")
    train = tf.train.AdagradOptimizer(0.01).minimize(loss, global_step=global_step)
    return RunRequest((global_step.value(),), (x, y), (train,))


def network() -> RunRequest:
    """A 784-100-10 network by Adam."""
    x, y = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.float32, [None, 10])
    hidden_weights = tf.Variable(tf.truncated_normal([784, 100]), name="hidden_weights")
    hidden_bias = tf.Variable(tf.zeros([100]), name="hidden_bias")
    weights = tf.Variable(tf.truncated_normal([100, 10]), name="weights")
    bias = tf.Variable(tf.zeros([10]), name="bias")
    hidden = tf.nn.relu(tf.nn.xw_plus_b(x, hidden_weights, hidden_bias))
    logits = tf.nn.xw_plus_b(hidden, weights, bias)
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=logits))
    global_step = tf.Variable(0, name="global_step", trainable=False)
    train = tf.train.AdamOptimizer(0.01).minimize(loss, global_step=global_step)
    return RunRequest((loss, global_step.value()), (x, y), (train,))


def embedding() -> RunRequest:
    """A model with an embedding table, of which a step reads and updates a few rows, by momentum."""
    ids, y = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [None])
    table = tf.Variable(tf.zeros([1000, 8]), name="table")
    weights = tf.Variable(tf.zeros([8, 1]), name="weights")
    rows = tf.nn.embedding_lookup(table, ids)
    loss = tf.reduce_sum(tf.square(tf.reshape(tf.matmul(rows, weights), [-1]) - y))
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    return RunRequest((loss,), (ids, y), (train,))


def divided() -> RunRequest:
    """A model with three tables of two parts each, by Adagrad. Two of the tables have rows of the same size."""
    ids, y = tf.placeholder(tf.int64, [3, None]), tf.placeholder(tf.float32, [None])
    sums = []
    for index, width in enumerate((8, 8, 4)):
        partitioner = tf.fixed_size_partitioner(2)
        table = tf.get_variable(f"table_{index}", [1000, width], partitioner=partitioner)
        sums.append(tf.reduce_sum(tf.nn.embedding_lookup(table, ids[index], "div"), 1))
    loss = tf.reduce_sum(tf.square(tf.add_n(sums) - y))
    return RunRequest((loss,), (ids, y), (tf.train.AdagradOptimizer(0.1).minimize(loss),))


def towers() -> RunRequest:
    """A network on two GPUs, whose gradients the CPU averages; batches come from a queue."""
    with tf.device("/cpu:0"):
        image = tf.reshape(tf.decode_raw(tf.constant(b"\0" * 16), tf.uint8), [16])
        images, labels = tf.train.shuffle_batch([image, tf.constant(1)], 8, capacity=64, min_after_dequeue=16)
        inputs = tf.cast(images, tf.float32) / 255.0
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        global_step = tf.train.get_or_create_global_step()
        losses, gradients = [], []
        for tower, (x, y) in enumerate(zip(tf.split(inputs, 2), tf.split(labels, 2), strict=True)):
            with tf.device(f"/gpu:{tower}"), tf.name_scope(f"tower_{tower}"):
                with tf.variable_scope("", reuse=tower > 0), tf.device("/cpu:0"):
                    weights = tf.get_variable("weights", [16, 10])
                logits = tf.matmul(x, weights)
                entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
                losses.append(tf.reduce_mean(entropy, name="loss"))
                gradients.append(optimizer.compute_gradients(losses[-1])[0][0])
        mean = tf.reduce_mean(tf.stack(gradients), axis=0, name="mean")
        train = optimizer.apply_gradients([(mean, weights)], global_step=global_step)
    return RunRequest((tf.add_n(losses, name="loss"),), (), (train,))


def example_linear() -> RunRequest:
    """``examples/linear.py``: a training step of one sample."""
    line = load("linear", task_index=0).Line()
    return RunRequest((line.global_step.value(),), (line.x, line.y), (line.train,))


def example_mnist_replica() -> RunRequest:
    """``examples/mnist_replica.py``: a training step of a worker with asynchronous updates."""
    network = load("mnist_replica", task_index=0).Network(workers=2)
    return RunRequest((network.step, network.loss), (network.images, network.labels), (network.train,))


def example_mnist_replica_synchronous() -> RunRequest:
    """``examples/mnist_replica.py --sync_replicas``: a training step of one of two workers."""
    network = load("mnist_replica", task_index=0, sync_replicas=True).Network(workers=2)
    return RunRequest((network.step, network.loss), (network.images, network.labels), (network.train,))


def example_mnist_towers() -> RunRequest:
    """``examples/mnist_towers.py`` on two GPUs."""
    program = load("mnist_towers", towers=2)
    with tf.device("/cpu:0"):
        images, labels = program.batches()
        train, loss = program.training(images, labels, tf.train.get_or_create_global_step())
    return RunRequest((loss,), (), (train,))


PROGRAMS: dict[str, Callable[[], RunRequest]] = {
    "linear": linear,
    "network": network,
    "embedding": embedding,
    "divided": divided,
    "example_linear": example_linear,
    "example_mnist_replica": example_mnist_replica,
    "example_mnist_replica_synchronous": example_mnist_replica_synchronous,
}
TOWERS: dict[str, Callable[[], RunRequest]] = {"towers": towers, "example_mnist_towers": example_mnist_towers}
PS_COUNTS = (1, 2)


def plans(program: str, ps_count: int) -> str:
    """Returns the plans of a worker's step with variables on ``ps_count`` parameter servers; verifies each pass."""
    devices = [f"/job:ps/replica:0/task:{index}/device:CPU:0" for index in range(ps_count)]
    devices.append("/job:worker/replica:0/task:0/device:CPU:0")
    with tf.Graph().as_default():
        setter: Any = tf.train.replica_device_setter(ps_tasks=ps_count, worker_device=WORKER)
        with tf.device(setter):
            request = PROGRAMS[program]()
        return _planned(request, devices)


def plan_of_towers(program: str) -> str:
    """Returns the plan of a step on one task with two GPUs; verifies each pass."""
    devices = [f"/job:localhost/replica:0/task:0/device:{name}" for name in ("CPU:0", "GPU:0", "GPU:1")]
    with tf.Graph().as_default():
        return _planned(TOWERS[program](), devices)


def _planned(request: RunRequest, devices: Sequence[str]) -> str:
    pruned = prune(request)
    verify_pruned(pruned)
    placement = place(pruned, [parse_device(device) for device in devices])
    verify_placement(placement)
    part = partition(placement)
    verify_partition(part)
    found = join_lookups(schedule(part), pruned)
    verify_plans(found)
    return "\n\n".join(found[task].describe() for task in sorted(found)) + "\n"


def path(program: str, ps_count: int) -> Path:
    """Returns the path of the stored text."""
    return FOLDER / f"{program}_{ps_count}_ps.txt"


def path_of_towers(program: str) -> Path:
    """Returns the path of the stored text of a program for GPUs."""
    return FOLDER / f"{program}_2_gpus.txt"


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for program in PROGRAMS:
        for ps_count in PS_COUNTS:
            path(program, ps_count).write_text(plans(program, ps_count))
    for program in TOWERS:
        path_of_towers(program).write_text(plan_of_towers(program))


if __name__ == "__main__":
    main()
