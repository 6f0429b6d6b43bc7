"""Small packages of `tf.contrib`: sparsemax, functions of neural networks, transformations of images."""

import os
import tempfile

import numpy as np

ROW = [1.2, 0.1, -0.3, 0.0, 0.8, 0.5, 0.01, 0.02]
IMAGE = np.arange(24, dtype=np.float32).reshape(4, 6)


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def tried(make):
    """The class of the error that ``make`` raises; None if it raises none."""
    try:
        make()
    except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
        return type(error).__name__
    return None


def run(tf, fetches):
    with tf.Session() as session:
        return session.run(fetches)


def case_sparsemax(tf):
    S = tf.contrib.sparsemax
    z = tf.constant([[1.0, 2.0, 0.5], [0.1, 0.2, -3.0], [float("-inf"), 1.0, 1.5]])
    p = S.sparsemax(z)
    loss = S.sparsemax_loss(z, p, tf.constant([[0.0, 1.0, 0.0], [0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]))
    invalid = S.sparsemax([[float("inf"), 1.0, 2.0], [float("nan"), 1.0, 2.0]])
    return run(tf, [p, loss, tf.gradients(loss, z), tf.gradients(p[:, 0], z), tf.is_nan(invalid)])


def case_scaled_softplus(tf):
    found = []
    for clip in (None, 2.0):
        x, alpha = tf.constant([[-1.0, 0.5, 3.0]]), tf.constant([0.5])
        limit = [] if clip is None else [tf.constant(clip)]
        y = tf.contrib.nn.scaled_softplus(x, alpha, *limit)
        found.append([y, tf.gradients(y, [x, alpha, *limit])])
    return run(tf, found)


def case_nth_element(tf):
    nth = tf.contrib.nn.nth_element
    rows, equal = tf.constant([[3.0, 1.0, 2.0], [9.0, 8.0, 7.0]]), tf.constant([[3.0, 1.0, 2.0, 2.0]])
    found = [nth(rows, 1), nth(rows, 0, reverse=True), nth([3, 1, 2], 2)]
    found += [tf.gradients(nth(equal, place), equal) for place in (0, 1)]
    return [run(tf, found), tried(lambda: nth([3, 1], 2)), tried(lambda: nth([3, 1], -1))]


def case_alpha_dropout(tf):
    drop = tf.contrib.nn.alpha_dropout
    mean, variance = tf.nn.moments(drop(tf.random_normal([200000], seed=1), 0.7, seed=2), [0])
    values = run(tf, [drop(tf.constant([1.0, 2.0]), 1.0), tf.round(mean * 20) + 0.0, tf.round(variance * 10)])
    return [values, tried(lambda: drop(tf.constant([1.0]), 0.0)), tried(lambda: drop(tf.constant([1.0]), 1.5))]


def case_losses(tf):
    N = tf.contrib.nn
    weights = tf.constant(np.arange(12).reshape(6, 2) / 10.0, tf.float32)
    drawn = (tf.constant([0, 5], tf.int64), tf.constant([[0.5], [0.4]]), tf.constant([0.3, 0.2]))
    labels, inputs = tf.constant([[1], [2]], tf.int64), tf.constant([[1.0, 2.0], [3.0, 1.0]])
    found = [
        N.deprecated_flipped_sigmoid_cross_entropy_with_logits([1.0, 2.0], [0.0, 1.0]),
        N.deprecated_flipped_softmax_cross_entropy_with_logits([[1.0, 2.0]], [[0.0, 1.0]]),
        N.deprecated_flipped_sparse_softmax_cross_entropy_with_logits([[1.0, 2.0]], [1]),
        N.sampled_sparse_softmax_loss(weights, tf.zeros([6]), labels, inputs, 2, 6, sampled_values=drawn),
    ]
    return run(tf, found)


def case_image_transforms(tf):
    image = tf.contrib.image
    found = []
    for kind in ("NEAREST", "BILINEAR"):
        x = tf.constant(IMAGE)
        found.append(image.translate(x, [1.5, -1.0], kind))
        found.append(image.transform(IMAGE[..., None], ROW, kind, output_shape=[3, 5]))
        found.append(tf.gradients(image.rotate(x, 0.4, kind) * IMAGE / 10, x))
    found.append(image.angles_to_projective_transforms([0.5, 1.0], 4, 6))
    found.append(image.translations_to_projective_transforms([[1.0, 2.0], [3.0, 4.0]]))
    found.append(image.compose_transforms(ROW, [1.0, 0.0, 3.0, 0.1, 1.0, -2.0, 0.0, 0.0]))
    found.append(image.flat_transforms_to_matrices([ROW]))
    found.append(image.matrices_to_flat_transforms([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 2.0]]]))
    return run(tf, found)


def case_refused_image_transforms(tf):
    image = tf.contrib.image
    return [
        tried(lambda: image.translate(np.zeros([1, 1, 1, 1, 1], np.float32), [1.0, 2.0])),
        tried(lambda: image.translate(np.zeros([2, 2], np.int16), [1.0, 2.0])),
        tried(lambda: image.transform(IMAGE, ROW, output_shape=[3, 5, 1])),
        tried(lambda: image.transform(IMAGE, 1.0)),
        tried(lambda: image.rotate(IMAGE, [[1.0]])),
        tried(lambda: image.translate(IMAGE, 1.0)),
    ]


def case_training_and_evaluation(tf):
    T = tf.contrib.training
    folder = tempfile.mkdtemp()
    x = tf.constant([[1.0], [2.0], [3.0]])
    with tf.variable_scope("model", initializer=tf.zeros_initializer()):
        loss = tf.losses.mean_squared_error(2 * x, tf.layers.dense(x, 1, use_bias=False))
    train = T.create_train_op(
        loss, tf.train.GradientDescentOptimizer(0.05), transform_grads_fn=T.clip_gradient_norms_fn(5.0)
    )
    last = T.train(train, folder, hooks=[tf.train.StopAtStepHook(4)], save_summaries_steps=None)
    path = T.wait_for_new_checkpoint(folder, timeout=1)
    total, update = tf.metrics.mean(loss)
    tf.summary.scalar("loss", total)
    ends = [T.SummaryAtEndHook(folder + "/eval"), T.StopAfterNEvalsHook(3)]
    steps = tf.train.get_global_step()
    once = T.evaluate_once(path, eval_ops=update, final_ops=[total, steps, T.get_or_create_eval_step()], hooks=ends)
    hooks = [T.StopAfterNEvalsHook(2)]
    again = T.evaluate_repeatedly(
        folder, eval_ops=update, final_ops={"loss": total}, hooks=hooks, max_number_of_evaluations=1
    )
    only = T.evaluate_once(path, final_ops=steps)
    files = [each[:18] for each in os.listdir(folder + "/eval")]
    failing = [tried(lambda: T.train(train, None)), tried(lambda: T.train(train, None, save_summaries_steps=None))]
    waited = T.wait_for_new_checkpoint(folder, path, seconds_to_sleep=0, timeout=0)
    return [last, path[len(folder) :], once, again, only, files, failing, waited]
