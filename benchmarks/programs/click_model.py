"""Trains a click model by an estimator, evaluates it, exports it, and predicts from serialized examples.

    python click_model.py train --model=wide_deep --folder=RECORDS --steps=300
    python click_model.py parse --folder=RECORDS

Runs unchanged under TensorFlow 1.15 and ``headwater exec``, in one process, or as each task of the cluster in
``TF_CONFIG``. The folder holds ``train.tfrecord`` and ``test.tfrecord``, which ``examples/click_model.py`` writes.
Prints lines of JSON with durations in seconds, rates in examples per second, and peak memory in bytes.
"""

import argparse
import json
import os
import re
import tempfile
import time

import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)

NUMBERS = ["number_%d" % index for index in range(13)]
IDS = ["category_%d" % index for index in range(20)] + ["bag_%d" % index for index in range(6)]
WARM = 100
"""Steps before the rate is measured."""


def tell(**figures):
    print(json.dumps(figures), flush=True)


def peak_memory():
    """Returns the peak memory of this process, in bytes."""
    with open("/proc/self/status") as status:
        return 1024 * int(re.findall(r"VmHWM:\s+(\d+)", status.read())[0])


def features():
    """Returns the parsing specification of the features."""
    numbers = [(name, tf.FixedLenFeature([1], tf.float32)) for name in NUMBERS]
    return dict(numbers + [(name, tf.VarLenFeature(tf.int64)) for name in IDS])


def batches(args, name, epochs, shuffle):
    """Returns a dataset of batches of features and labels."""
    return tf.data.experimental.make_batched_features_dataset(
        os.path.join(args.folder, name),
        args.batch,
        dict(features(), clicked=tf.FixedLenFeature([], tf.int64)),
        label_key="clicked",
        num_epochs=epochs,
        shuffle=shuffle,
        shuffle_seed=args.seed,
    )


# Models -----------------------------------------------------------------------------------------------------------


def columns(args):
    """Returns the columns of numbers, of ids, and of their embeddings."""
    of_numbers = [tf.feature_column.numeric_column(name) for name in NUMBERS]
    of_ids = [tf.feature_column.categorical_column_with_hash_bucket(name, args.buckets, tf.int64) for name in IDS]
    return of_numbers, of_ids, [tf.feature_column.embedding_column(column, args.width) for column in of_ids]


def wide_deep(args, config):
    """Returns a linear and a deep model with common ids."""
    of_numbers, of_ids, embeddings = columns(args)
    return tf.estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=of_ids,
        linear_optimizer=tf.train.FtrlOptimizer(0.05),
        dnn_feature_columns=of_numbers + embeddings,
        dnn_hidden_units=[64, 32],
        dnn_optimizer=tf.train.AdagradOptimizer(0.05),
        input_layer_partitioner=partitioner(config),
        config=config,
    )


def partitioner(config):
    """Returns a partitioner that divides tables among the ps tasks."""
    return tf.fixed_size_partitioner(max(1, config.num_ps_replicas))


def deepfm(args, config):
    """Returns a factorization machine and a deep network with common embeddings (Guo et al., 2017)."""

    def model(features, labels, mode, config):
        of_numbers, of_ids, embeddings = columns(args)
        with tf.variable_scope("first", partitioner=partitioner(config)):
            first = tf.feature_column.linear_model(features, of_ids)
        with tf.variable_scope("second", partitioner=partitioner(config)):
            rows = tf.feature_column.input_layer(features, embeddings)
        fields = tf.reshape(rows, [-1, len(embeddings), args.width])
        squared, squares = tf.square(tf.reduce_sum(fields, 1)), tf.reduce_sum(tf.square(fields), 1)
        second = 0.5 * tf.reduce_sum(squared - squares, 1, keepdims=True)
        net = tf.concat([rows, tf.feature_column.input_layer(features, of_numbers)], 1)
        for units in (64, 32):
            net = tf.layers.dense(net, units, tf.nn.relu)
        logits = first + second + tf.layers.dense(net, 1)
        return head.create_estimator_spec(features, mode, logits, labels, train_op_fn=train_op)

    def train_op(loss):
        linear = tf.trainable_variables("first")
        rest = [variable for variable in tf.trainable_variables() if variable not in linear]
        step = tf.train.get_global_step()
        first = tf.train.FtrlOptimizer(0.05).minimize(loss, var_list=linear)
        with tf.control_dependencies([first, tf.train.AdagradOptimizer(0.05).minimize(loss, var_list=rest)]):
            return tf.assign_add(step, 1).op

    head = tf.estimator.BinaryClassHead()
    return tf.estimator.Estimator(model, config=config)


# What is measured -------------------------------------------------------------------------------------------------


class Clock(tf.train.SessionRunHook):
    """Reports when ``WARM`` global steps are done, and the rate of all workers together after these.

    Args:
      launched: when this program was started, in seconds since 1970.
      batch: examples in a batch.
      others: named pipes of the other workers, which are waited for after ``WARM`` steps.
    """

    def __init__(self, launched, batch, others=()):
        self._launched, self._batch, self._others = launched, batch, others
        self._warm, self._seen = False, []

    def begin(self):
        self._step = tf.train.get_global_step()

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._step)

    def after_run(self, run_context, run_values):
        step, now = int(run_values.results), time.time()
        if not self._warm and step >= WARM:
            self._warm = True
            tell(launch_s=now - self._launched)
            for path in self._others:
                open(path).close()
        elif self._warm:
            self._seen = [*self._seen[:1], (step, now)]

    def end(self, session):
        (first, began), (last, ended) = self._seen
        tell(examples_per_s=self._batch * (last - first) / (ended - began))


class Arrival(tf.train.SessionRunHook):
    """Opens a named pipe after the first step of this worker, which waits until the chief opens it, too: TensorFlow's
    workers start up to 30 seconds after the chief."""

    def __init__(self, path):
        self._path = path

    def after_run(self, run_context, run_values):
        if self._path:
            open(self._path, "w").close()
            self._path = ""


def hooks_of(args, config):
    """Returns the hooks of this task."""
    workers = config.cluster_spec.num_tasks("worker") if "worker" in config.cluster_spec.jobs else 0
    pipes = [os.path.join(args.pipes, "worker%d" % index) for index in range(workers)] if args.pipes else []
    if config.is_chief:
        return [Clock(args.launched, args.batch, pipes)]
    return [Arrival(pipes[config.task_id])] if config.task_type == "worker" and pipes else []


def train(args):
    """Trains, evaluates, exports and predicts; in a cluster the tasks share this work."""
    config = tf.estimator.RunConfig(args.model_dir or tempfile.mkdtemp(), args.seed, save_checkpoints_secs=3600)
    estimator = {"wide_deep": wide_deep, "deepfm": deepfm}[args.model](args, config)
    receiver = tf.estimator.export.build_parsing_serving_input_receiver_fn(features())
    hooks = hooks_of(args, config)
    if config.cluster_spec.jobs:
        spec = tf.estimator.TrainSpec(lambda: batches(args, "train.tfrecord", None, True), args.steps, hooks)
        exporter = tf.estimator.FinalExporter("served", receiver)
        of_test = tf.estimator.EvalSpec(
            lambda: batches(args, "test.tfrecord", 1, False), None, exporters=exporter, start_delay_secs=0
        )
        tf.estimator.train_and_evaluate(estimator, spec, of_test)
    else:
        estimator.train(lambda: batches(args, "train.tfrecord", None, True), hooks, max_steps=args.steps)
        began = time.time()
        found = estimator.evaluate(lambda: batches(args, "test.tfrecord", 1, False))
        evaluated = time.time()
        exported = estimator.export_saved_model(os.path.join(estimator.model_dir, "served"), receiver)
        tell(evaluate_s=evaluated - began, export_s=time.time() - evaluated)
        tell(loss=float(found["average_loss"]), auc=float(found["auc"]))
        predict(args, exported.decode())
    tell(peak_memory=peak_memory())


def predict(args, exported):
    """Measures the predictions of an exported model from batches of serialized examples."""
    examples = serialized(args)
    with tf.Graph().as_default(), tf.Session() as session:
        signature = tf.saved_model.load(session, ["serve"], exported).signature_def["predict"]
        feed, fetch = signature.inputs["examples"].name, signature.outputs["probabilities"].name
        tell(predicted_per_s=rate(args, lambda: session.run(fetch, {feed: examples})))


def parse(args):
    """Measures the parsing of batches of serialized examples."""
    examples = serialized(args)
    with tf.Graph().as_default(), tf.Session() as session:
        feed = tf.placeholder(tf.string, [None])
        parsed = tf.parse_example(feed, features())
        # Sizes: TensorFlow would not parse for a group of operations, whose values nothing reads.
        sizes = tf.add_n([tf.size(getattr(value, "values", value)) for value in parsed.values()])
        tell(parsed_per_s=rate(args, lambda: session.run(sizes, {feed: examples})))


def serialized(args):
    """Returns the first batch of serialized examples."""
    found = tf.python_io.tf_record_iterator(os.path.join(args.folder, "test.tfrecord"))
    return [next(found) for _ in range(args.batch)]


def rate(args, run):
    """Returns how many examples ``run`` processes per second, after as long a time to warm up."""
    for _ in range(2):
        began, count = time.time(), 0
        while time.time() - began < args.seconds:
            run()
            count += 1
    return args.batch * count / (time.time() - began)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("phase", choices=["train", "parse"])
    parser.add_argument("--folder", required=True, help="with the records")
    parser.add_argument("--model", choices=["wide_deep", "deepfm"], default="wide_deep")
    parser.add_argument("--model_dir", help="folder of checkpoints; default: a new one")
    parser.add_argument("--pipes", help="folder of named pipes by which the chief waits for workers")
    parser.add_argument("--steps", type=int, default=300, help="of all workers together")
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--buckets", type=int, default=10000, help="rows of each table")
    parser.add_argument("--width", type=int, default=8, help="of embeddings")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2, help="how long to parse and predict")
    parser.add_argument("--launched", type=float, default=time.time(), help="time of the start, in seconds since 1970")
    args = parser.parse_args()
    {"train": train, "parse": parse}[args.phase](args)


if __name__ == "__main__":
    main()
