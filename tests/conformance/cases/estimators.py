"""Estimators: what training leaves, metrics, predictions, files."""

import os
import tempfile

import numpy as np

_numbers = np.random.RandomState(0)
X = _numbers.standard_normal((64, 3)).astype(np.float32)
Y = (X.sum(1) > 0).astype(np.int64)


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def training(tf):
    return lambda: tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat(4).batch(16)


def testing(tf):
    return lambda: tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).batch(16)


def model(tf):
    def model_fn(features, labels, mode, params):
        with tf.variable_scope("net", initializer=tf.constant_initializer(0.1)):
            hidden = tf.layers.dense(features["x"], 4, tf.nn.relu)
            logits = tf.layers.dense(hidden, 2)
        predictions = {"class": tf.argmax(logits, 1), "p": tf.nn.softmax(logits)}
        if mode == tf.estimator.ModeKeys.PREDICT:
            exports = {"serving_default": tf.estimator.export.PredictOutput(predictions)}
            return tf.estimator.EstimatorSpec(mode, predictions=predictions, export_outputs=exports)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        metrics = {"accuracy": tf.metrics.accuracy(labels, predictions["class"])}
        if mode == tf.estimator.ModeKeys.EVAL:
            return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
        train = tf.train.GradientDescentOptimizer(params["rate"]).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    return model_fn


def made(tf, folder, **settings):
    config = tf.estimator.RunConfig(model_dir=folder, save_checkpoints_steps=5, keep_checkpoint_max=2, **settings)
    return tf.estimator.Estimator(model(tf), config=config, params={"rate": 0.1})


def files(folder):
    return sorted(name for name in os.listdir(folder) if "tfevents" not in name and ".data-" not in name)


def metrics(found):
    return sorted((name, float(value)) for name, value in found.items())


def case_train_evaluate_predict(tf):
    folder = tempfile.mkdtemp()
    estimator = made(tf, folder)
    found = [estimator.train(training(tf), steps=7) is estimator, metrics(estimator.evaluate(testing(tf)))]
    first = next(estimator.predict(testing(tf)))
    found += [sorted(first), first["p"], int(first["class"])]
    found += [len(list(estimator.predict(testing(tf), predict_keys="class"))), files(folder)]
    found += [next(estimator.predict(testing(tf), yield_single_examples=False))["p"].shape]
    found += [estimator.get_variable_names(), os.path.basename(estimator.latest_checkpoint())]
    found += [estimator.get_variable_value("net/dense/kernel"), estimator.params, estimator.model_dir == folder]
    estimator.train(training(tf), max_steps=3)
    found += [os.path.basename(estimator.latest_checkpoint())]
    again = made(tf, folder).train(testing(tf))
    found += [metrics(again.evaluate(testing(tf), steps=1, name="other")), files(folder)]
    return found


def case_train_and_evaluate(tf):
    folder = tempfile.mkdtemp()
    saved = []

    class Listener(tf.train.CheckpointSaverListener):
        def after_save(self, session, global_step_value):
            saved.append(int(global_step_value))

    train = tf.estimator.TrainSpec(training(tf), max_steps=12)
    evaluate = tf.estimator.EvalSpec(testing(tf), steps=None, throttle_secs=0)
    estimator = made(tf, folder)
    estimator.train(training(tf), steps=2, saving_listeners=[Listener()])
    found, exported = tf.estimator.train_and_evaluate(estimator, train, evaluate)
    return [metrics(found), exported, files(folder), saved]


def case_arrays(tf):
    folder = tempfile.mkdtemp()
    numpy_input = tf.estimator.inputs.numpy_input_fn
    estimator = made(tf, folder)
    estimator.train(numpy_input({"x": X}, Y, batch_size=16, num_epochs=None, shuffle=False), steps=5)
    found = metrics(estimator.evaluate(numpy_input({"x": X}, Y, batch_size=10, shuffle=False)))
    return [found, len(list(estimator.predict(numpy_input({"x": X}, batch_size=10, shuffle=False))))]


def case_hooks_and_scaffold(tf):
    calls = []

    class Hook(tf.train.SessionRunHook):
        def __init__(self, name):
            self.name = name

        def begin(self):
            calls.append(self.name + " begin")

        def end(self, session):
            calls.append(self.name + " end")

    def model_fn(features, labels, mode):
        w = tf.Variable(1.0)
        loss = w * tf.reduce_mean(features)
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
        scaffold = tf.train.Scaffold(init_fn=lambda scaffold, session: calls.append("init"))
        return tf.estimator.EstimatorSpec(
            mode,
            loss=loss,
            train_op=train,
            predictions=w,
            training_hooks=[Hook("training")],
            scaffold=scaffold,
            training_chief_hooks=[Hook("chief")],
            evaluation_hooks=[Hook("evaluation")],
        )

    estimator = tf.estimator.Estimator(model_fn, tempfile.mkdtemp())

    def input_fn():
        return tf.constant([[1.0, 2.0]]), None

    estimator.train(input_fn, hooks=[Hook("given")], steps=2)
    found = metrics(estimator.evaluate(input_fn, steps=3, hooks=[Hook("more")]))
    return [sorted(calls), found]


def case_warm_start(tf):
    first = tempfile.mkdtemp()
    made(tf, first).train(training(tf), steps=3)
    second = tf.estimator.Estimator(model(tf), tempfile.mkdtemp(), params={"rate": 0.0}, warm_start_from=first)
    second.train(training(tf), steps=1)
    partly = tf.estimator.Estimator(
        model(tf),
        tempfile.mkdtemp(),
        params={"rate": 0.0},
        warm_start_from=tf.estimator.WarmStartSettings(first, vars_to_warm_start=".*dense_1.*"),
    )
    partly.train(training(tf), steps=1)
    names = ["net/dense/kernel", "net/dense_1/bias"]
    return [estimator.get_variable_value(name) for estimator in (second, partly) for name in names]


def caught(call):
    try:
        call()
    except Exception as error:  # noqa: BLE001 - the class is the outcome
        return type(error).__name__
    return None


def case_errors(tf):
    E = tf.estimator
    estimator = made(tf, tempfile.mkdtemp())
    one = tf.constant(1.0)
    return [
        caught(call)
        for call in (
            lambda: E.EstimatorSpec("train", loss=one),
            lambda: E.EstimatorSpec("train", train_op=tf.no_op()),
            lambda: E.EstimatorSpec("eval"),
            lambda: E.EstimatorSpec("infer"),
            lambda: E.EstimatorSpec("eval", loss=tf.constant([1.0, 2.0])),
            lambda: E.EstimatorSpec("eval", loss=one, eval_metric_ops={"a": one}),
            lambda: E.EstimatorSpec("eval", loss=one, evaluation_hooks=[3]),
            lambda: E.TrainSpec(3),
            lambda: E.TrainSpec(len, max_steps=0),
            lambda: E.EvalSpec(len, steps=0),
            lambda: E.EvalSpec(len, throttle_secs=-1),
            lambda: E.Estimator(lambda x: x),
            lambda: E.Estimator(lambda features: features, params={"a": 1}),
            lambda: E.Estimator(None),
            lambda: estimator.train(training(tf), steps=1, max_steps=1),
            lambda: estimator.train(training(tf), steps=0),
            lambda: estimator.get_variable_names(),
            lambda: E.RunConfig(save_checkpoints_steps=1, save_checkpoints_secs=1),
            lambda: E.RunConfig().replace(nonsense=1),
            lambda: E.train_and_evaluate(estimator, 1, 2),
            lambda: E.Estimator(model(tf), "a", config=E.RunConfig(model_dir="b")),
            lambda: E.inputs.numpy_input_fn({"x": X}, Y),
            lambda: E.Estimator(lambda features: 3).train(testing(tf)),
        )
    ]


def case_run_config(tf):
    config = tf.estimator.RunConfig(tf_random_seed=3)
    other = config.replace(save_checkpoints_steps=7, model_dir="x")
    return [
        config.save_checkpoints_secs,
        config.save_checkpoints_steps,
        config.save_summary_steps,
        config.master,
        config.task_type,
        config.task_id,
        config.is_chief,
        config.num_ps_replicas,
        config.num_worker_replicas,
        config.keep_checkpoint_max,
        config.log_step_count_steps,
        config.tf_random_seed,
        config.global_id_in_cluster,
        config.evaluation_master,
        other.save_checkpoints_steps,
        other.save_checkpoints_secs,
        other.model_dir,
        config.model_dir,
    ]


def case_run_config_of_a_cluster(tf):
    cluster = '{"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}'
    found = []
    for task in ("chief", "worker", "ps", "evaluator"):
        os.environ["TF_CONFIG"] = '{"cluster": %s, "task": {"type": "%s", "index": 0}}' % (cluster, task)  # noqa: UP031
        try:
            config = tf.estimator.RunConfig()
        finally:
            del os.environ["TF_CONFIG"]
        found.append(
            [
                config.master,
                config.task_type,
                config.task_id,
                config.is_chief,
                config.num_ps_replicas,
                config.num_worker_replicas,
                config.global_id_in_cluster,
                config.evaluation_master,
                config.cluster_spec.as_dict(),
            ]
        )
    return found
