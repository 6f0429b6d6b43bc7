"""Estimators with heads, those without features, and metrics that are added."""

import shutil
import tempfile


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def tried(call):
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
        return type(error).__name__


X, W = [[1.0], [2.0], [3.0], [4.0]], [[1.0], [2.0], [0.5], [1.0]]
LOGITS = {1: [[0.5], [-1.0], [2.0], [0.0]], 3: [[0.5, 0.1, 0.0], [1.0, 2.0, -1.0], [0.0, 0.0, 0.3], [1.0, 0.0, 0.0]]}


def spec_of(tf, head, labels, mode, **more):
    """What a head makes of fixed logits: losses, predictions, metrics and what training changes."""
    with tf.Graph().as_default():
        tf.train.get_or_create_global_step()
        v = tf.Variable(1.0)
        logits = tf.constant(LOGITS[3 if "Multi" in type(head).__name__ else 1]) * v
        labels = None if labels is None else tf.constant(labels)
        if mode == "train":
            more["train_op_fn"] = lambda loss: tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        spec = head.create_estimator_spec({"w": tf.constant(W), "x": tf.constant(X)}, mode, logits, labels, **more)
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
            if mode == "infer":
                found = session.run(spec.predictions)
                names = ("probabilities", "logistic", "class_ids", "classes", "predictions", "logits")
                return [{name: found[name] for name in names if name in found}, sorted(spec.export_outputs)]
            if mode == "eval":
                for value, update in spec.eval_metric_ops.values():
                    del value
                    session.run(update)
                return [session.run(spec.loss), {k: session.run(m[0]) for k, m in spec.eval_metric_ops.items()}]
            session.run(spec.train_op)
            return [session.run(spec.loss), session.run(v)]


def rows(result):
    """An evaluation without what TensorFlow's metrics of Keras compute otherwise: areas under curves."""
    if isinstance(result, list) and len(result) == 2 and isinstance(result[1], dict):
        return [result[0], {key: value for key, value in result[1].items() if not key.startswith("auc")}]
    return result


def each_of(calls):
    return [rows(tried(call)) for call in calls]


def case_two_classes(tf):
    head = tf.estimator.BinaryClassHead
    labels, names = [[1], [0], [1], [1]], [["b"], ["a"], ["b"], ["b"]]
    square = lambda labels, logits: tf.square(tf.cast(labels, tf.float32) - logits)  # noqa: E731 - short
    return each_of(
        [
            lambda: spec_of(tf, head(), labels, "train"),
            lambda: spec_of(tf, head(weight_column="w"), labels, "train"),
            lambda: spec_of(tf, head(loss_reduction="sum"), labels, "train"),
            lambda: spec_of(tf, head(loss_fn=square), labels, "train"),
            lambda: spec_of(tf, head(label_vocabulary=["a", "b"]), names, "train"),
            lambda: spec_of(tf, head(), labels, "train", regularization_losses=[0.25]),
            lambda: spec_of(tf, head(), None, "infer"),
            lambda: spec_of(tf, head(label_vocabulary=["a", "b"]), None, "infer"),
            lambda: spec_of(tf, head(), None, "train"),
            lambda: head(loss_reduction="nonsense"),
            lambda: head(thresholds=[1.5]),
            lambda: head().name,
            lambda: head(name="x").name,
            lambda: head().logits_dimension,
        ],
    )


def case_several_classes(tf):
    head = tf.estimator.MultiClassHead
    labels = [[2], [1], [0], [0]]
    return each_of(
        [
            lambda: spec_of(tf, head(3), labels, "train"),
            lambda: spec_of(tf, head(3, weight_column="w"), labels, "train"),
            lambda: spec_of(tf, head(3), None, "infer"),
            lambda: spec_of(tf, head(3, label_vocabulary=["a", "b", "c"]), None, "infer"),
            lambda: head(2),
            lambda: head(3, label_vocabulary=["a"]),
            lambda: head(3).logits_dimension,
        ],
    )


def case_numbers(tf):
    e = tf.estimator
    labels = [[1.0], [0.0], [2.0], [1.5]]
    shares = [[1.0], [0.0], [0.25], [0.5]]
    return each_of(
        [
            lambda: spec_of(tf, e.RegressionHead(), labels, "train"),
            lambda: spec_of(tf, e.RegressionHead(weight_column="w"), labels, "train"),
            lambda: spec_of(tf, e.RegressionHead(inverse_link_fn=tf.exp), None, "infer"),
            lambda: spec_of(tf, e.RegressionHead(), None, "infer"),
            lambda: spec_of(tf, e.LogisticRegressionHead(), shares, "train"),
            lambda: spec_of(tf, e.LogisticRegressionHead(), None, "infer"),
            lambda: spec_of(tf, e.PoissonRegressionHead(), labels, "train"),
            lambda: spec_of(tf, e.PoissonRegressionHead(compute_full_loss=False), labels, "train"),
            lambda: spec_of(tf, e.PoissonRegressionHead(), None, "infer"),
            lambda: e.RegressionHead(label_dimension=0),
            lambda: e.RegressionHead(label_dimension=2).logits_dimension,
        ],
    )


def case_parts_of_heads(tf):
    head = tf.estimator.BinaryClassHead(weight_column="w")
    labels, logits = tf.constant([[1], [0], [1], [1]]), tf.constant(LOGITS[1])
    loss = head.loss(labels, logits, {"w": tf.constant(W)})
    more = head.loss(labels, logits, {"w": tf.constant(W)}, regularization_losses=[tf.constant(2.0)])
    some = head.predictions(logits, keys=["logistic", "probabilities"])
    with tf.Session() as session:
        found = session.run([loss, more, some["logistic"], some["probabilities"]])
    return [found, sorted(some), tried(lambda: head.predictions(logits, keys=["nope"]))]


def trained(tf, make, labels, steps=20):
    folder = tempfile.mkdtemp()

    def inputs():
        features = {"x": tf.constant(X), "w": tf.constant(W)}
        return tf.data.Dataset.from_tensors((features, tf.constant(labels))).repeat()

    try:
        estimator = make(folder)
        estimator.train(inputs, steps=steps)
        result = estimator.evaluate(inputs, steps=1)
        names = sorted(estimator.get_variable_names())
        numbers = {key: float(value) for key, value in result.items() if not key.startswith("auc")}
        return [numbers, names]
    finally:
        shutil.rmtree(folder)


def case_without_features(tf):
    e = tf.estimator
    classes, numbers = [[1], [0], [1], [1]], [[1.0], [0.0], [2.0], [1.5]]
    return [
        trained(tf, lambda folder: e.BaselineClassifier(folder), classes),
        trained(tf, lambda folder: e.BaselineClassifier(folder, n_classes=3, weight_column="w"), classes),
        trained(tf, lambda folder: e.BaselineRegressor(folder, optimizer="SGD"), numbers),
    ]


def case_metrics_that_are_added(tf):
    columns = [tf.feature_column.numeric_column("x")]

    def more(labels, predictions, features):
        return {"largest": tf.metrics.mean(tf.reduce_max(features["x"])), "label/mean": tf.metrics.mean(labels * 10.0)}

    def make(folder):
        small = tf.train.GradientDescentOptimizer(0.01)
        estimator = tf.estimator.LinearRegressor(columns, folder, optimizer=small)
        return tf.estimator.add_metrics(estimator, more)

    estimator = tf.estimator.LinearRegressor(columns)
    return [
        trained(tf, make, [[1.0], [0.0], [2.0], [1.5]])[0],
        tried(lambda: tf.estimator.add_metrics(estimator, lambda labels, other: {})),
    ]


def case_functions_of_logits(tf):
    call = tf.estimator.experimental.call_logit_fn

    def fn(features, mode, params):
        return tf.constant([len(features), len(mode), params["a"]])

    value = call(fn, {"x": 1}, "eval", {"a": 7}, None)
    parts = call(lambda features: {"a": tf.constant(1.0)}, {}, "eval", {}, None)
    with tf.Session() as session:
        return [
            session.run(value),
            session.run(parts["a"]),
            tried(lambda: call(lambda features: 5, {}, "eval", {}, None)),
        ]
