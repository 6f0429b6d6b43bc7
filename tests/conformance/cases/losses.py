"""Losses of models: values, names, weights, reductions, collections."""

import numpy as np

_numbers = np.random.RandomState(5)
INPUTS = {
    "y": _numbers.rand(3, 4).astype(np.float32),
    "p": _numbers.rand(3, 4).astype(np.float32) * 0.9 + 0.05,
    "l": _numbers.standard_normal((3, 4)).astype(np.float32),
    "h": np.eye(4, dtype=np.float32)[[1, 3, 0]],
    "k": np.array([1, 3, 0], np.int32),
    "w": np.array([[0.5], [0.0], [2.0]], np.float32),
}

CALLS = [
    "tf.losses.absolute_difference(y, p)",
    "tf.losses.mean_squared_error(y, p)",
    "tf.losses.mean_squared_error(labels=y, predictions=p, weights=w, scope='mse')",
    "tf.losses.mean_squared_error(y, p, 0.)",
    "tf.losses.mean_squared_error(y, p, reduction=tf.losses.Reduction.NONE)",
    "tf.losses.mean_squared_error(y, p, w, reduction=tf.losses.Reduction.SUM)",
    "tf.losses.mean_squared_error(y, p, w, reduction=tf.losses.Reduction.MEAN)",
    "tf.losses.mean_squared_error(y, p, w, reduction=tf.losses.Reduction.SUM_OVER_BATCH_SIZE)",
    "tf.losses.mean_squared_error(y, p, w, reduction=tf.losses.Reduction.SUM_OVER_NONZERO_WEIGHTS)",
    "tf.losses.mean_squared_error(y, p, y, loss_collection='mine')",
    "tf.losses.mean_squared_error(y, p, loss_collection=None)",
    "tf.losses.mean_squared_error(tf.cast(y * 5, tf.int32), p)",
    "tf.losses.cosine_distance(y, p, axis=1)",
    "tf.losses.cosine_distance(y, p, dim=0, weights=2.)",
    "tf.losses.hinge_loss(h, l)",
    "tf.losses.huber_loss(y, 3 * p, delta=.7)",
    "tf.losses.log_loss(h, p)",
    "tf.losses.log_loss(y, p, w, epsilon=.1)",
    "tf.losses.mean_pairwise_squared_error(y, p)",
    "tf.losses.mean_pairwise_squared_error(y, p, w)",
    "tf.losses.sigmoid_cross_entropy(h, l)",
    "tf.losses.sigmoid_cross_entropy(h, l, w, label_smoothing=.2)",
    "tf.losses.softmax_cross_entropy(h, l)",
    "tf.losses.softmax_cross_entropy(onehot_labels=h, logits=l, weights=w[:, 0], label_smoothing=.1)",
    "tf.losses.sparse_softmax_cross_entropy(k, l)",
    "tf.losses.sparse_softmax_cross_entropy(labels=k, logits=l, weights=w[:, 0])",
    "tf.losses.sparse_softmax_cross_entropy(k[:, None], l, w)",
    "tf.losses.compute_weighted_loss(y, w)",
    "tf.losses.compute_weighted_loss(y, 3, 'named')",
    "tf.losses.get_regularization_loss()",
    "tf.losses.get_total_loss(name='all')",
    "tf.losses.get_total_loss(add_regularization_losses=False)",
]
ERRORS = [
    "tf.losses.mean_squared_error(y, None)",
    "tf.losses.mean_squared_error(None, y)",
    "tf.losses.mean_squared_error(y, p[:2])",
    "tf.losses.mean_squared_error(y, p, [1., 2., 3.])",
    "tf.losses.mean_squared_error(y, p, [[1., 2., 3.]])",
    "tf.losses.mean_squared_error(y, p, reduction='some')",
    "tf.losses.cosine_distance(y, p)",
    "tf.losses.softmax_cross_entropy(k, l)",
    "tf.losses.sparse_softmax_cross_entropy(h, l)",
    "tf.losses.Reduction.validate('what')",
]


def cases(tf):
    found = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    for call in CALLS:
        found["call " + call] = lambda tf, call=call: called(tf, call)
    for call in ERRORS:
        found["error " + call] = lambda tf, call=call: str(eval(call, dict(constants(tf), tf=tf)))
    return found


def constants(tf):
    return {name: tf.constant(value) for name, value in INPUTS.items()}


def called(tf, call):
    inputs = {}
    for name, value in INPUTS.items():
        shape = (None, *value.shape[1:]) if name in "yp" else value.shape
        inputs[name] = tf.placeholder(value.dtype, shape, name)
    tf.losses.add_loss(tf.reduce_sum(inputs["y"], name="other"))
    tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, tf.reduce_sum(inputs["p"], name="size"))
    result = eval(call, dict(inputs, tf=tf))
    slopes = [g for g in tf.gradients(result, [inputs[name] for name in "ypl"]) if g is not None]
    with tf.Session() as session:
        values = session.run([result, slopes], {inputs[name]: value for name, value in INPUTS.items()})
    found = [[loss.name for loss in tf.get_collection(key)] for key in ("losses", "mine", "regularization_losses")]
    return [result.name, result.dtype.name, result.shape.as_list(), found, values]


def case_collections(tf):
    with tf.name_scope("a"):
        tf.losses.mean_squared_error([1.0], [3.0])
    with tf.name_scope("b"):
        tf.losses.absolute_difference([1.0], [3.0])
    tf.losses.add_loss(tf.constant(7.0, name="more"), "mine")
    found = [loss.name for loss in tf.losses.get_losses()] + [loss.name for loss in tf.losses.get_losses("a")]
    found += [loss.name for loss in tf.losses.get_losses(loss_collection="mine")]
    found += [len(tf.losses.get_regularization_losses()), list(tf.losses.Reduction.all())]
    total, part, size = (
        tf.losses.get_total_loss(),
        tf.losses.get_total_loss(scope="b"),
        tf.losses.get_regularization_loss(),
    )
    with tf.Session() as session:
        return [found, session.run([total, part, size]), total.name, part.name]
