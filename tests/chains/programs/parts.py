"""Parts that the chains share: values of variables, a served model, and the printed outcome.

Every TensorFlow runs the chains unchanged. Their data and first values do not depend on it, so
losses and predictions of two of them are equal up to rounding.
"""

import json
import os
import shutil
import tempfile
import zlib

import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.ERROR)


def values(name, shape):
    """Values of a variable, which depend on its name and shape only."""
    numbers = np.random.RandomState(zlib.crc32(name.encode()))
    limit = np.sqrt(6.0 / (np.prod(shape[:-1]) + shape[-1]))
    return numbers.uniform(-limit, limit, shape).astype(np.float32)


def initialize(session):
    """Initialises variables and tables."""
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
    set_values(session)


def set_values(session):
    """Gives their `values` to all matrices and to the vectors of attention, which would be random."""
    for variable in tf.trainable_variables():
        shape = variable.shape.as_list()
        if len(shape) > 1 or variable.op.name.endswith(("attention_v", "AttnV_0")):
            variable.load(values(variable.op.name, shape), session)


class SetValues(tf.train.SessionRunHook):
    """Gives variables their `values` when an estimator makes a session."""

    def after_create_session(self, session, coord):
        del coord
        set_values(session)


def start_server():
    """Starts the server of this task, as `TF_CONFIG` says; a parameter server serves until it is killed.

    Returns:
      The address for sessions, and the worker's index.
    """
    config = json.loads(os.environ["TF_CONFIG"])
    task = config["task"]
    server = tf.train.Server(tf.train.ClusterSpec(config["cluster"]), task["type"], task["index"])
    if task["type"] == "ps":
        server.join()
    return server.target, task["index"]


def on_servers(index):
    """Places variables on the parameter server, and the operations of a worker on itself."""
    return tf.device(tf.train.replica_device_setter(ps_tasks=1, worker_device="/job:worker/task:%d" % index))


class Turns(tf.train.SessionRunHook):
    """Lets two workers take steps in turn, so that all runs have the same order.

    When the chief's session ends, the other worker has taken its steps, and it writes the checkpoint.

    Args:
      index: the worker's index.
      saver, path: of the checkpoint.
    """

    def __init__(self, index, saver, path):
        self.is_chief, self.saver, self.path = index == 0, saver, path
        with tf.device("/job:ps/task:0"):
            turns = [tf.FIFOQueue(2, tf.bool, [()], shared_name="turn_of_%d" % i) for i in range(2)]
            self.begin_steps = turns[0].enqueue(True)
            self.wait = turns[index].dequeue()
            self.let_other = turns[1 - index].enqueue(True)

    def after_create_session(self, session, coord):
        del coord
        if self.is_chief:
            session.run(self.begin_steps)

    def before_run(self, run_context):
        run_context.session.run(self.wait)

    def after_run(self, run_context, run_values):
        del run_values
        run_context.session.run(self.let_other)

    def end(self, session):
        if self.is_chief:
            session.run(self.wait)
            self.saver.save(session, self.path, write_meta_graph=False)


def serve(session, inputs, outputs, feeds):
    """Exports a model, loads it into another graph, and returns its predictions, which equal the session's.

    Args:
      session: with the trained variables.
      inputs, outputs: tensors by name.
      feeds: values of the inputs by name.
    """
    here = session.run(outputs, {inputs[name]: value for name, value in feeds.items()})
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "model")
    try:
        tf.saved_model.simple_save(session, path, inputs, outputs, legacy_init_op=tf.tables_initializer())
        there = predictions(path, feeds)
    finally:
        shutil.rmtree(folder)
    for name in outputs:
        if here[name].dtype == object:
            assert there[name].tolist() == here[name].tolist(), name
        else:
            np.testing.assert_allclose(there[name], here[name], rtol=1e-5, atol=1e-6)
    return there


def predictions(path, feeds, signature="serving_default"):
    """Predictions of a saved model."""
    with tf.Graph().as_default(), tf.Session() as session:
        model = tf.saved_model.loader.load(session, [tf.saved_model.tag_constants.SERVING], path)
        signature = model.signature_def[signature]
        outputs = {name: info.name for name, info in signature.outputs.items()}
        return session.run(outputs, {signature.inputs[name].name: value for name, value in feeds.items()})


def report(losses, served):
    """Prints the outcome of a chain: losses in the order of steps, and predictions by name."""
    served = {name: np.asarray(value).tolist() for name, value in served.items()}
    print(json.dumps({"losses": [float(loss) for loss in losses], "served": served}))
