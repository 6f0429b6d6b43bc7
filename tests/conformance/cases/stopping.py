"""Hooks that end an estimator's training early, and what it reads of examples."""

import os
import shutil
import tempfile


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def refused(build):
    """The class of the error that building gives, or "builds"."""
    try:
        build()
    except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
        return type(error).__name__
    return "builds"


def inputs(tf):
    return lambda: tf.data.Dataset.from_tensors(({"x": [[1.0], [2.0]]}, [[1.0], [3.0]])).repeat(20)


def model(tf, folder):
    def model_fn(features, labels, mode):
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(features["x"] * w - labels))
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    return tf.estimator.Estimator(model_fn, folder, config=tf.estimator.RunConfig(save_checkpoints_steps=1000))


def written(tf, folder, values):
    writer = tf.summary.FileWriter(folder)
    for step, value in values:
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=value)]), step)
    writer.close()


def ended(tf, make, values=()):
    """The step that training ends at with the hook that ``make(estimator, folder of evaluations)`` makes."""
    folder = tempfile.mkdtemp()
    try:
        estimator = model(tf, folder)
        evaluations = estimator.eval_dir()
        os.makedirs(evaluations)
        written(tf, evaluations, values)
        estimator.train(inputs(tf), hooks=[make(estimator, evaluations)])
        names = [name for name in estimator.get_variable_names() if "STOP" in name]
        return [int(estimator.get_variable_value("global_step")), names]
    finally:
        shutil.rmtree(folder)


def case_a_function_that_stops(tf):
    answers = iter([False, False, True, True])
    stopping = tf.estimator.experimental.make_early_stopping_hook
    return ended(tf, lambda e, _: stopping(e, lambda: next(answers), run_every_secs=None, run_every_steps=2))


def case_stop_where_a_metric_is_higher(tf):
    hook = tf.estimator.experimental.stop_if_higher_hook
    values = [(10, 0.5), (20, 0.9), (30, 0.7)]
    settings = {"run_every_secs": None, "run_every_steps": 3}
    return [
        ended(tf, lambda e, _: hook(e, "loss", 0.8, **settings), values),
        ended(tf, lambda e, _: hook(e, "loss", 0.9, **settings), values),
        ended(tf, lambda e, _: hook(e, "loss", 0.8, min_steps=25, **settings), values),
        ended(tf, lambda e, folder: hook(e, "loss", 0.8, eval_dir=folder, **settings), values),
    ]


def case_stop_where_a_metric_is_lower(tf):
    hook = tf.estimator.experimental.stop_if_lower_hook
    settings = {"run_every_secs": None, "run_every_steps": 3}
    return [
        ended(tf, lambda e, _: hook(e, "loss", 0.6, **settings), [(10, 0.5)]),
        ended(tf, lambda e, _: hook(e, "loss", 0.4, **settings), [(10, 0.5)]),
        ended(tf, lambda e, _: hook(e, "loss", 0.4, **settings)),
    ]


def case_stop_without_progress(tf):
    lower = tf.estimator.experimental.stop_if_no_decrease_hook
    higher = tf.estimator.experimental.stop_if_no_increase_hook
    values = [(10, 0.5), (20, 0.4), (30, 0.6), (40, 0.7), (50, 0.7)]
    settings = {"run_every_secs": None, "run_every_steps": 3}
    return [
        ended(tf, lambda e, _: lower(e, "loss", 20, **settings), values),
        ended(tf, lambda e, _: lower(e, "loss", 40, **settings), values),
        ended(tf, lambda e, _: lower(e, "loss", 20, min_steps=35, **settings), values),
        ended(tf, lambda e, _: higher(e, "loss", 20, **settings), values),
        ended(tf, lambda e, _: higher(e, "loss", 10, **settings), values),
        ended(tf, lambda e, _: higher(e, "loss", 10, **settings)),
    ]


def case_stop_at_the_step_of_a_checkpoint(tf):
    hook = tf.estimator.experimental.make_stop_at_checkpoint_step_hook
    return ended(tf, lambda e, _: hook(e, 7))


def case_stopping_refused(tf):
    stopping = tf.estimator.experimental.make_early_stopping_hook
    folder = tempfile.mkdtemp()
    try:
        estimator = model(tf, folder)
        return [
            refused(lambda: stopping(3, lambda: True)),
            refused(lambda: stopping(estimator, lambda: True, run_every_secs=1, run_every_steps=1)),
            refused(lambda: stopping(estimator, lambda: True)),
        ]
    finally:
        shutil.rmtree(folder)


def shown(spec):
    return {key: [type(value).__name__, str(value.shape), value.dtype.name] for key, value in spec.items()}


def case_specs_of_examples(tf):
    columns = [tf.feature_column.numeric_column("x", (2,)), tf.feature_column.numeric_column("y")]
    classifier, regressor = tf.estimator.classifier_parse_example_spec, tf.estimator.regressor_parse_example_spec
    weight = tf.feature_column.numeric_column("w")
    return [
        shown(classifier(columns, "label")),
        shown(classifier(columns, "label", tf.string, "none", "w")),
        shown(regressor(columns, "label")),
        shown(regressor(columns, "label", label_dimension=3, weight_column=weight)),
        refused(lambda: classifier(columns, "x")),
        refused(lambda: classifier(columns, "label", weight_column=3)),
        refused(lambda: regressor(columns, "label", weight_column="x")),
        refused(lambda: regressor(columns, "label", weight_column="label")),
    ]


def case_fingerprints(tf):
    def run(x):
        with tf.Session() as session:
            return session.run(tf.fingerprint(x)).tolist()

    return [
        run(["a", "headwater", ""]),
        run([["a", "b"], ["c", "d"]]),
        run([[1, 2], [3, 4]]),
        run([[[1.5], [2.0]]]),
        run([1, 2]),
        tf.fingerprint(["a", "b"]).dtype.name,
        tf.fingerprint(["a", "b"]).shape.as_list(),
        refused(lambda: tf.fingerprint(3)),
    ]


def case_all_checked(tf):
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.log(x, name="y")
    checks = tf.add_check_numerics_ops()
    found = []
    with tf.Session() as session:
        for value in ([1.0, 2.0], [-1.0, 2.0], [0.0, 1.0]):
            try:
                session.run([y, checks], {x: value})
                found.append("runs")
            except tf.errors.InvalidArgumentError as error:
                found.append(["y:0" in str(error), "NaN" in str(error), "Inf" in str(error)])
    return [type(checks).__name__, found]
