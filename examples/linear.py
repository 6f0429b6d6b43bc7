"""Estimates w and b of Y = w X + b from noisy samples of Y = 2 X + 10: asynchronous between-graph training.

Every task runs this program in a process of its own. The variables are stored on the parameter servers; each worker
builds the same graph around them and trains at its own pace, one example a step.

    headwater run --ps 1 --workers 2 --flags examples/linear.py --logdir /tmp/linear

It uses only TensorFlow 1's API, and runs under TensorFlow 1.15 as well.
"""

import time

import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string("ps_hosts", "", "Addresses of the parameter servers, host:port, with commas between")
flags.DEFINE_string("worker_hosts", "", "Addresses of the workers, host:port, with commas between")
flags.DEFINE_string("job_name", "", "Job of this task: ps or worker")
flags.DEFINE_integer("task_index", 0, "Index of this task in its job")
flags.DEFINE_string("logdir", "", "Folder for checkpoints and events")
flags.DEFINE_integer("steps", 20000, "Number of steps of all workers together")
FLAGS = flags.FLAGS

EXAMPLES = 100


def samples():
    """Returns X, evenly spaced over [-1, 1], and Y = 2 X + 10 with normal noise, both of shape [EXAMPLES]."""
    x = np.linspace(-1.0, 1.0, EXAMPLES)
    return x, 2.0 * x + 10.0 + 0.33 * np.random.RandomState(0).randn(EXAMPLES)


class Line:
    """The graph of one worker.

    Attributes:
      x, y: placeholders of samples, [count]; w, b: the estimated parameters.
      loss: the mean squared error; train: operation of a training step.
    """

    def __init__(self):
        self.x = tf.placeholder(tf.float32, [None], name="x")
        self.y = tf.placeholder(tf.float32, [None], name="y")
        self.w = tf.Variable(0.0, name="weight")
        self.b = tf.Variable(0.0, name="bias")
        self.loss = tf.reduce_mean(tf.square(self.y - (self.w * self.x + self.b)), name="loss")
        self.global_step = tf.train.get_or_create_global_step()
        self.train = tf.train.AdagradOptimizer(0.2).minimize(self.loss, global_step=self.global_step)
        tf.summary.scalar("mean_squared_error", self.loss)
        tf.summary.scalar("w", self.w)
        tf.summary.scalar("b", self.b)
        self.summary = tf.summary.merge_all()


def train(server, cluster):
    chief = FLAGS.task_index == 0
    with tf.device(
        tf.train.replica_device_setter(worker_device=f"/job:worker/task:{FLAGS.task_index}", cluster=cluster)
    ):
        line = Line()

    supervisor = tf.train.Supervisor(
        is_chief=chief,
        logdir=FLAGS.logdir,
        global_step=line.global_step,
        summary_op=None,  # written below, by the chief, with the data they need
        recovery_wait_secs=1,
    )
    train_x, train_y = samples()
    everything = {line.x: train_x, line.y: train_y}
    with supervisor.managed_session(server.target) as session:
        step, own_steps = 0, 0
        start = time.time()
        while not supervisor.should_stop() and step < FLAGS.steps:
            for i in np.random.permutation(EXAMPLES):
                sample = {line.x: train_x[i : i + 1], line.y: train_y[i : i + 1]}
                _, step = session.run([line.train, line.global_step], sample)
                own_steps += 1
                if own_steps == 1:  # earlier work is preparation
                    start = time.time()
            mean_loss = session.run(line.loss, everything)
            if own_steps % 1000 == 0:
                print(f"Step: {step}, loss: {mean_loss:.4f}")
            if chief:
                supervisor.summary_computed(session, session.run(line.summary, everything), step)
        rate = (own_steps - 1) / (time.time() - start)
        final_w, final_b = session.run([line.w, line.b])
        print(f"Result: w = {final_w:.3f}, b = {final_b:.3f}")
        print(f"Speed: {rate:,.0f} steps/s")
        if chief:
            supervisor.saver.save(session, supervisor.save_path, global_step=step)
    supervisor.stop()


def main(_):
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    else:
        train(server, cluster)


if __name__ == "__main__":
    tf.app.run()
