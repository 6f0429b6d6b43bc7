"""Classifies handwritten digits on a cluster: a network of one hidden layer, with variables on parameter servers.

Each worker builds the same graph around the shared variables and trains with batches of its own: at its own pace, or,
with ``--sync_replicas``, together with the others, one update for the mean of their gradients.

    headwater run --ps 1 --workers 2 --flags examples/mnist_replica.py --train_steps=3000
    headwater run --ps 1 --workers 2 --flags examples/mnist_replica.py --train_steps=3000 --sync_replicas

With ``--existing_servers`` it is a client of running servers, and starts none. For each task of the cluster:

    headwater server --cluster '{"ps": ["localhost:2222"], "worker": ["localhost:2223"]}' --job ps --index 0

and for each worker:

    headwater exec examples/mnist_replica.py --existing_servers --ps_hosts=localhost:2222 \\
        --worker_hosts=localhost:2223 --job_name=worker --task_index=0

It uses only TensorFlow 1's API, and runs under TensorFlow 1.15 as well.
"""

import json
import math
import os
import sys
import tempfile
import time

import tensorflow as tf
from tensorflow.examples.tutorials.mnist import input_data

flags = tf.app.flags
flags.DEFINE_string("data_dir", "/tmp/mnist-data", "Folder of the digits; missing digits are downloaded to it")
flags.DEFINE_boolean("download_only", False, "Only download the digits")
flags.DEFINE_integer("task_index", None, "Index of this worker or parameter server; worker 0 is the chief")
flags.DEFINE_integer("num_gpus", 1, "GPUs of each machine; workers take turns with them. 0: use the CPU")
flags.DEFINE_integer("replicas_to_aggregate", None, "With --sync_replicas: gradients for an update; default: workers")
flags.DEFINE_integer("hidden_units", 100, "Units of the hidden layer")
flags.DEFINE_integer("train_steps", 200, "Updates, of all workers together, after which training ends")
flags.DEFINE_integer("batch_size", 100, "Digits in a batch")
flags.DEFINE_float("learning_rate", 0.01, "Learning rate")
flags.DEFINE_boolean("sync_replicas", False, "Update with the mean gradient of several workers, none of it stale")
flags.DEFINE_boolean("existing_servers", False, "Use running servers; otherwise the task starts its own server")
flags.DEFINE_string("ps_hosts", "localhost:2222", "Addresses of the parameter servers, host:port, with commas between")
flags.DEFINE_string("worker_hosts", "localhost:2223,localhost:2224", "Addresses of the workers, likewise")
flags.DEFINE_string("job_name", None, "Job of this task: ps or worker")
FLAGS = flags.FLAGS

PIXELS = 28
CLASSES = 10


def learn_from_environment():
    """Sets flags that were not given from TF_CONFIG."""
    config = json.loads(os.environ.get("TF_CONFIG") or "{}")
    task = config.get("task", {})
    if not FLAGS.job_name:
        FLAGS.job_name = task.get("type")
    if FLAGS.task_index is None and "index" in task:
        FLAGS.task_index = int(task["index"])
    if "cluster" in config and not any(arg.startswith(("--ps_hosts", "--worker_hosts")) for arg in sys.argv):
        FLAGS.ps_hosts = ",".join(config["cluster"].get("ps", []))
        FLAGS.worker_hosts = ",".join(config["cluster"].get("worker", []))
    if not FLAGS.job_name:
        raise ValueError("Must specify an explicit --job_name: ps or worker")
    if FLAGS.task_index is None:
        raise ValueError("Must specify an explicit --task_index")


class Network:
    """The graph of one worker.

    Attributes:
      images: placeholder [batch, 784]; labels: placeholder [batch, 10], one-hot.
      loss: cross entropy of a batch, summed; accuracy: fraction of a batch that is classified correctly.
      train: operation of a training step; step: the global step after it.
    """

    def __init__(self, workers):
        self.global_step = tf.Variable(0, name="global_step", trainable=False)
        hid_w = tf.Variable(
            tf.truncated_normal([PIXELS * PIXELS, FLAGS.hidden_units], stddev=1.0 / PIXELS), name="hid_w"
        )
        hid_b = tf.Variable(tf.zeros([FLAGS.hidden_units]), name="hid_b")
        sm_w = tf.Variable(
            tf.truncated_normal([FLAGS.hidden_units, CLASSES], stddev=1.0 / math.sqrt(FLAGS.hidden_units)), name="sm_w"
        )
        sm_b = tf.Variable(tf.zeros([CLASSES]), name="sm_b")

        self.images = tf.placeholder(tf.float32, [None, PIXELS * PIXELS])
        self.labels = tf.placeholder(tf.float32, [None, CLASSES])
        hidden = tf.nn.relu(tf.nn.xw_plus_b(self.images, hid_w, hid_b))
        probabilities = tf.nn.softmax(tf.nn.xw_plus_b(hidden, sm_w, sm_b))
        self.loss = -tf.reduce_sum(self.labels * tf.log(tf.clip_by_value(probabilities, 1e-10, 1.0)))
        right = tf.equal(tf.argmax(probabilities, 1), tf.argmax(self.labels, 1))
        self.accuracy = tf.reduce_mean(tf.cast(right, tf.float32))

        self.optimizer = tf.train.AdamOptimizer(FLAGS.learning_rate)
        if FLAGS.sync_replicas:
            self.optimizer = tf.train.SyncReplicasOptimizer(
                self.optimizer,
                replicas_to_aggregate=FLAGS.replicas_to_aggregate or workers,
                total_num_replicas=workers,
                name="mnist_sync_replicas",
            )
        self.train = self.optimizer.minimize(self.loss, global_step=self.global_step)
        # Read after the update: of workers that wait for each other, either all or none must see the end of training.
        with tf.control_dependencies([self.train]), tf.device(self.global_step.device):
            self.step = self.global_step.read_value()


def supervisor_of(network, chief):
    logdir = tempfile.mkdtemp()
    init_op = tf.global_variables_initializer()
    if not FLAGS.sync_replicas:
        return tf.train.Supervisor(
            is_chief=chief, logdir=logdir, init_op=init_op, recovery_wait_secs=1, global_step=network.global_step
        )
    optimizer = network.optimizer
    return tf.train.Supervisor(
        is_chief=chief,
        logdir=logdir,
        init_op=init_op,
        local_init_op=optimizer.chief_init_op if chief else optimizer.local_step_init_op,
        ready_for_local_init_op=optimizer.ready_for_local_init_op,
        recovery_wait_secs=1,
        global_step=network.global_step,
    )


def train(digits, cluster, target):
    index, workers = FLAGS.task_index, cluster.num_tasks("worker")
    chief = index == 0
    device = f"gpu:{index % FLAGS.num_gpus}" if FLAGS.num_gpus > 0 else "cpu:0"
    with tf.device(
        tf.train.replica_device_setter(
            worker_device=f"/job:worker/task:{index}/{device}", ps_device="/job:ps/cpu:0", cluster=cluster
        )
    ):
        network = Network(workers)
    queue_runner = init_tokens_op = None
    if isinstance(network.optimizer, tf.train.SyncReplicasOptimizer) and chief:
        # Additional operations, which must be created before the supervisor finalizes the graph.
        queue_runner = network.optimizer.get_chief_queue_runner()
        init_tokens_op = network.optimizer.get_init_tokens_op()

    supervisor = supervisor_of(network, chief)
    config = tf.ConfigProto(
        allow_soft_placement=True,
        log_device_placement=False,
        device_filters=["/job:ps", f"/job:worker/task:{index}"],
    )
    if chief:
        print(f"Worker {index}: Initializing session...")
    else:
        print(f"Worker {index}: Waiting for session to be initialized...")
    session = supervisor.prepare_or_wait_for_session(target, config=config)
    print(f"Worker {index}: Session initialization complete.")
    if queue_runner is not None:
        session.run(init_tokens_op)
        supervisor.start_queue_runners(session, [queue_runner])

    begin = time.time()
    print(f"Training begins @ {begin:f}")
    own_steps = 0
    step = 0
    while step < FLAGS.train_steps:
        images, labels = digits.train.next_batch(FLAGS.batch_size)
        step, loss = session.run([network.step, network.loss], {network.images: images, network.labels: labels})
        own_steps += 1
        if own_steps % 100 == 0 or step >= FLAGS.train_steps:
            print(f"Worker {index}: training step {own_steps} done (global step: {step}), loss: {loss:.4f}")
    end = time.time()
    print(f"Training ends @ {end:f}")
    print(f"Training elapsed time: {end - begin:f} s")

    held_out = {network.images: digits.validation.images, network.labels: digits.validation.labels}
    print(f"After {step} training step(s), validation cross entropy = {session.run(network.loss, held_out):g}")
    test = {network.images: digits.test.images, network.labels: digits.test.labels}
    print(f"Accuracy on {len(digits.test.labels)} test digits: {session.run(network.accuracy, test):.4f}")
    session.close()


def main(_):
    try:
        digits = input_data.read_data_sets(FLAGS.data_dir, one_hot=True)
    except (OSError, tf.errors.NotFoundError) as error:
        sys.exit(f"cannot read the digits: {error}")
    if FLAGS.download_only:
        return
    learn_from_environment()
    print(f"job name = {FLAGS.job_name}")
    print(f"task index = {FLAGS.task_index}")
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    if FLAGS.existing_servers:
        target = "grpc://" + cluster.task_address("worker", FLAGS.task_index)
        print(f"Using existing server at: {target}")
    else:
        server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
        if FLAGS.job_name == "ps":
            server.join()
        target = server.target
    train(digits, cluster, target)


if __name__ == "__main__":
    tf.app.run()
