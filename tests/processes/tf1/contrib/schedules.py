"""Two workers that step in a fixed order, and their variables under the distributed optimizers of `tf.contrib.opt`.

``python schedules.py expected.json`` with an interpreter that has TensorFlow 1.15 records its results. Like
``tests/conformance``, this must run on Python 3.7.
"""

import json
import sys
import threading

ORDER = [0, 0, 1, 0, 1, 1, 0, 1, 1, 0]


class Worker:
    """A worker's graph and session.

    Args:
      index: the worker's index.
      target: of its server.
      getter: creates its variables; None: on the parameter server only.
      make: returns the optimizer.
    """

    def __init__(self, tf, index, target, getter, make):
        self.tf, self.index = tf, index
        self.graph = tf.Graph()
        with self.graph.as_default():
            device = f"/job:worker/task:{index}"
            self.getter = getter and getter(worker_device=device)
            setter = tf.train.replica_device_setter(worker_device=device, ps_device="/job:ps/task:0", ps_tasks=1)
            with tf.device(setter):
                with tf.variable_scope("", custom_getter=self.getter):
                    weight = tf.get_variable("w", initializer=tf.constant([[1.0, -2.0], [3.0, 0.5]]))
                    bias = tf.get_variable("b", initializer=tf.constant([0.5, -0.25]))
                self.step = tf.train.get_or_create_global_step()
                data = tf.constant([[1.0, 2.0], [0.5, -1.0 - index]])
                self.loss = tf.reduce_sum(tf.square(tf.matmul(data, weight) + bias - 1.0))
                # Each worker counts its own steps: a counter on the parameter server would count all workers' steps.
                with tf.device(device):
                    self.opt = make(tf, self.getter)
                self.train = self.make_train()
                self.init = [tf.global_variables_initializer(), tf.local_variables_initializer()]
                hook = hasattr(self.opt, "make_session_run_hook")
                self.copy = self.init_op() if hook else tf.no_op()
            centers = [v for v in tf.global_variables() if "center" in v.op.name]
            self.fetches = [weight, bias, self.step, *centers]
            self.names = [
                sorted([v.op.name, v.device] for v in collection)
                for collection in (tf.global_variables(), tf.local_variables(), tf.trainable_variables())
            ]
        self.session = tf.Session(target, graph=self.graph)

    def make_train(self):
        return self.opt.minimize(self.loss, global_step=self.step)

    def init_op(self):
        return self.opt.get_init_op() if "ModelAverage" in type(self.opt).__name__ else self.opt.get_init_op(self.index)

    def values(self):
        return [value.tolist() for value in self.session.run(self.fetches)]

    def start(self):
        if self.index == 0:
            self.session.run(self.init[0])
        self.session.run(self.init[1])
        self.session.run(self.copy)

    def take_step(self):
        self.session.run(self.train)


def in_order(tf, targets, getter, make, kind=Worker):
    """Returns the names of all variables, and their values on the stepping worker after each step."""
    workers = [kind(tf, index, target, getter, make) for index, target in enumerate(targets)]
    for worker in workers:
        worker.start()
    found = []
    for index in ORDER:
        workers[index].take_step()
        found.append(workers[index].values())
    for worker in workers:
        worker.session.close()
    return [[worker.names for worker in workers], found]


def elastic_average(tf, targets):
    def make(tf, getter):
        return tf.contrib.opt.ElasticAverageOptimizer(
            tf.train.GradientDescentOptimizer(0.01), 2, getter, communication_period=2
        )

    return in_order(tf, targets, tf.contrib.opt.ElasticAverageCustomGetter, make)


def elastic_average_with_momentum(tf, targets):
    def make(tf, getter):
        return tf.contrib.opt.ElasticAverageOptimizer(
            tf.train.MomentumOptimizer(0.01, 0.5), 2, getter, communication_period=3, moving_rate=0.4, rho=0.1
        )

    return in_order(tf, targets, tf.contrib.opt.ElasticAverageCustomGetter, make)


def accumulated_gradients(tf, targets):
    def make(tf, getter):
        return tf.contrib.opt.AGNOptimizer(tf.train.GradientDescentOptimizer(0.01), 2, getter, communication_period=2)

    return in_order(tf, targets, tf.contrib.opt.AGNCustomGetter, make)


def accumulated_gradients_with_momentum(tf, targets):
    def make(tf, getter):
        return tf.contrib.opt.AGNOptimizer(tf.train.MomentumOptimizer(0.01, 0.5), 2, getter, communication_period=2)

    return in_order(tf, targets, tf.contrib.opt.AGNCustomGetter, make)


def model_average(tf, targets):
    """Both workers take steps concurrently, since every second step waits for the other worker."""

    def make(index):
        return lambda tf, getter: tf.contrib.opt.ModelAverageOptimizer(
            tf.train.GradientDescentOptimizer(0.01), 2, index == 0, getter, interval_steps=2
        )

    getter = tf.contrib.opt.ModelAverageCustomGetter
    workers = [Worker(tf, index, target, getter, make(index)) for index, target in enumerate(targets)]
    for worker in workers:
        worker.start()
    found = []
    for _ in range(5):
        threads = [threading.Thread(target=worker.take_step) for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found.append([worker.values() for worker in workers])
    for worker in workers:
        worker.session.close()
    return [[worker.names for worker in workers], found]


class Delayed(Worker):
    """A worker that waits between computing gradients and applying them."""

    def make_train(self):
        tf = self.tf
        with tf.device("/job:ps/task:0"):
            name = str(self.index)
            self.computed = tf.FIFOQueue(9, [tf.bool], shapes=[[]], shared_name="computed" + name)
            self.may_apply = tf.FIFOQueue(9, [tf.bool], shapes=[[]], shared_name="may_apply" + name)
        pairs = self.opt.compute_gradients(self.loss)
        with tf.control_dependencies([grad for grad, _ in pairs]):
            told = self.computed.enqueue(True)
        with tf.control_dependencies([told]):
            waited = self.may_apply.dequeue()
        with tf.control_dependencies([waited]):
            late = [(tf.identity(grad), var) for grad, var in pairs]
        self.wait, self.allow = self.computed.dequeue(), self.may_apply.enqueue(True)
        return self.opt.apply_gradients(late, global_step=self.step)


def stale_gradients(tf, targets):
    """Worker 1 computes gradients, worker 0 takes two steps, and then worker 1 applies its gradients."""

    def make(tf, getter):
        return tf.contrib.opt.DropStaleGradientOptimizer(tf.train.GradientDescentOptimizer(0.01), 1)

    workers = [Delayed(tf, index, target, None, make) for index, target in enumerate(targets)]
    for worker in workers:
        worker.start()
    found = []
    for steps in (1, 2, 0):
        late = threading.Thread(target=workers[1].take_step)
        late.start()
        workers[1].session.run(workers[1].wait)
        for _ in range(steps):
            workers[0].session.run(workers[0].allow)
            workers[0].take_step()
            workers[0].session.run(workers[0].wait)
        workers[1].session.run(workers[1].allow)
        late.join()
        dropped = [v for v in workers[0].graph.get_collection("variables") if "stale" in v.op.name]
        found.append(workers[0].values() + [value.tolist() for value in workers[0].session.run(dropped)])
    for worker in workers:
        worker.session.close()
    return found


SCHEDULES = {
    "elastic_average": elastic_average,
    "elastic_average_with_momentum": elastic_average_with_momentum,
    "accumulated_gradients": accumulated_gradients,
    "accumulated_gradients_with_momentum": accumulated_gradients_with_momentum,
    "model_average": model_average,
    "stale_gradients": stale_gradients,
}


def main(path, *names):
    import socket

    import tensorflow as tf

    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
    found = {}
    for name in names or sorted(SCHEDULES):
        # Servers of their own for each schedule: resources live as long as their server.
        sockets = [socket.socket() for _ in range(3)]
        for each in sockets:
            each.bind(("localhost", 0))
        hosts = [f"localhost:{each.getsockname()[1]}" for each in sockets]
        for each in sockets:
            each.close()
        spec = tf.train.ClusterSpec({"ps": hosts[:1], "worker": hosts[1:]})
        servers = [tf.train.Server(spec, *task) for task in (("ps", 0), ("worker", 0), ("worker", 1))]
        found[name] = SCHEDULES[name](tf, [server.target for server in servers[1:]])
    with open(path, "w") as file:
        json.dump(found, file, indent=1, sort_keys=True)
        file.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
