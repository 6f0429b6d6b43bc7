"""Metrics: values after one and several batches, names of variables and tensors, collections."""

import numpy as np

_numbers = np.random.RandomState(9)
BATCHES = [
    {
        "k": _numbers.randint(0, 3, 6).astype(np.int64),
        "g": _numbers.randint(0, 3, 6).astype(np.int64),
        "t": _numbers.randint(0, 2, 6).astype(bool),
        "p": _numbers.rand(6).astype(np.float32),
        "y": _numbers.standard_normal((6, 2)).astype(np.float32),
        "z": _numbers.standard_normal((6, 2)).astype(np.float32),
        "w": _numbers.rand(6).astype(np.float32),
        "s": _numbers.rand(6, 3).astype(np.float32),
        "m": np.array([[0, 2], [1, 1], [2, 0], [0, 1], [1, 2], [2, 2]], np.int64),
    }
    for _ in range(3)
]

CALLS = [
    "tf.metrics.mean(y)",
    "tf.metrics.mean(p, w, name='average')",
    "tf.metrics.mean(y, w[:, None])",
    "tf.metrics.mean_tensor(y)",
    "tf.metrics.mean_tensor(y, w[:, None])",
    "tf.metrics.accuracy(k, g)",
    "tf.metrics.accuracy(labels=k, predictions=g, weights=w, name='acc')",
    "tf.metrics.accuracy(k, tf.cast(g, tf.int32))",
    "tf.metrics.accuracy(k[:, None], g)",
    "tf.metrics.mean_absolute_error(y, z)",
    "tf.metrics.mean_squared_error(y, z, w[:, None])",
    "tf.metrics.root_mean_squared_error(y, z)",
    "tf.metrics.mean_relative_error(y, z, tf.round(y))",
    "tf.metrics.mean_cosine_distance(y, z, 1)",
    "tf.metrics.percentage_below(y, .2)",
    "tf.metrics.mean_per_class_accuracy(k, g, 3)",
    "tf.metrics.mean_per_class_accuracy(k, g, 3, w)",
    "tf.metrics.mean_iou(k, g, 3)",
    "tf.metrics.mean_iou(k, g, 4, w)",
    "tf.metrics.true_positives(t, p > .5)",
    "tf.metrics.true_negatives(t, p > .5, w)",
    "tf.metrics.false_positives(t, p > .5)",
    "tf.metrics.false_negatives(t, p > .5, name='fn')",
    "tf.metrics.precision(t, p > .5)",
    "tf.metrics.precision(t, p > .5, w, name='prec')",
    "tf.metrics.recall(t, p > .5)",
    "tf.metrics.recall(t, p > 2)",
    "tf.metrics.auc(t, p)",
    "tf.metrics.auc(t, p, w, 20, name='area')",
    "tf.metrics.auc(t, p, curve='PR')",
    "tf.metrics.auc(t, p, curve='PR', summation_method='careful_interpolation')",
    "tf.metrics.auc(t, p, num_thresholds=10, summation_method='minoring')",
    "tf.metrics.auc(t, p, num_thresholds=10, summation_method='majoring')",
    "tf.metrics.auc(t, p, thresholds=[.2, .5, .7])",
    "tf.metrics.true_positives_at_thresholds(t, p, [.2, .6])",
    "tf.metrics.false_positives_at_thresholds(t, p, [.2, .6], w)",
    "tf.metrics.true_negatives_at_thresholds(t, p, [.2, .6])",
    "tf.metrics.false_negatives_at_thresholds(t, p, [.2, .6])",
    "tf.metrics.precision_at_thresholds(t, p, [.2, .6])",
    "tf.metrics.recall_at_thresholds(t, p, [.2, .6])",
    "tf.metrics.sensitivity_at_specificity(t, p, .6)",
    "tf.metrics.specificity_at_sensitivity(t, p, .6)",
    "tf.metrics.precision_at_k(k[:, None], s, 2)",
    "tf.metrics.precision_at_k(m, s, 2, weights=w)",
    "tf.metrics.recall_at_k(k[:, None], s, 2)",
    "tf.metrics.recall_at_k(m, s, 1, class_id=2)",
    "tf.metrics.recall_at_top_k(m, m[:, ::-1][:, :1], 1)",
]
ERRORS = [
    "tf.metrics.accuracy(k, y)",
    "tf.metrics.auc(t, p, curve='what')",
    "tf.metrics.auc(t, p, curve='ROC', summation_method='what')",
    "tf.metrics.sensitivity_at_specificity(t, p, 2)",
    "tf.metrics.mean(y, [1., 2., 3.])",
]


def cases(tf):
    found = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    for call in CALLS:
        found["call " + call] = lambda tf, call=call: called(tf, call)
    for call in ERRORS:
        found["error " + call] = lambda tf, call=call: str(eval(call, dict(placeholders(tf, 0), tf=tf)))
    return found


def placeholders(tf, open_dims=1):
    return {
        name: tf.placeholder(value.dtype, value.shape if open_dims == "tensor" else (None, *value.shape[1:]), name)
        for name, value in BATCHES[0].items()
    }


def called(tf, call):
    inputs = placeholders(tf, "tensor" if "mean_tensor" in call else 1)
    value, update = eval(call, dict(inputs, tf=tf))
    variables = tf.get_collection(tf.GraphKeys.METRIC_VARIABLES)
    found = [value.name, update.op.name, [v.name for v in variables], variables == tf.local_variables()]
    if "_top_k" in call or "_at_k" in call or "mean_iou" in call or "careful" in call:
        found = []
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        found.append(session.run(value))
        for batch in BATCHES:
            found.append(session.run(update, {inputs[name]: array for name, array in batch.items()}))
        return [*found, session.run(value)]


def case_collections(tf):
    tf.metrics.mean([1.0], metrics_collections=["a", "b"], updates_collections="c")
    tf.metrics.auc(tf.constant([True]), tf.constant([0.5]), metrics_collections="a", updates_collections=["c"])
    tf.metrics.mean([1.0])
    found = [[tensor.name for tensor in tf.get_collection(key)] for key in ("a", "b", "c")]
    return [*found, [v.name for v in tf.local_variables()], len(tf.global_variables())]
