"""Layers as functions: names of variables and results, values, gradients, collections, settings by scope."""

import numpy as np

_numbers = np.random.RandomState(3)
INPUTS = {
    "x": _numbers.standard_normal((2, 3)).astype(np.float32),
    "i": _numbers.standard_normal((2, 6, 5, 3)).astype(np.float32),
}
CALLS = [
    "L.fully_connected(x, 4, weights_initializer=init)",
    "L.fully_connected(x, 4, None, scope='fc', biases_initializer=None, weights_initializer=init)",
    "L.fully_connected(x, 2, weights_initializer=init, weights_regularizer=L.l2_regularizer(.1))",
    "L.fully_connected(x, 4, normalizer_fn=L.batch_norm, weights_initializer=init)",
    "L.fully_connected(x, 4, normalizer_fn=L.batch_norm, normalizer_params={'scale': True}, weights_initializer=init)",
    "L.fully_connected(x, 4, variables_collections=['mine'], outputs_collections='out', weights_initializer=init)",
    "L.fully_connected(x, 4, variables_collections={'weights': ['mine']}, weights_initializer=init, trainable=False)",
    "L.linear(x, 4, weights_initializer=init)",
    "L.relu(x, 4, weights_initializer=init, scope='r')",
    "L.conv2d(i, 4, 3, weights_initializer=init)",
    "L.conv2d(i, 4, [3, 2], stride=2, padding='VALID', activation_fn=tf.tanh, scope='c', weights_initializer=init)",
    "L.convolution2d(i, 4, 2, rate=2, weights_initializer=init)",
    "L.conv2d(i, 4, 3, normalizer_fn=L.batch_norm, weights_initializer=init)",
    "L.conv2d_transpose(i, 2, 3, 2, weights_initializer=init)",
    "L.separable_conv2d(i, 4, 3, 2, weights_initializer=init)",
    "L.separable_conv2d(i, None, 3, 1, weights_initializer=init)",
    "L.max_pool2d(i, 2)",
    "L.max_pool2d(i, [3, 2], 1, 'SAME', scope='p')",
    "L.avg_pool2d(i, [2, 2], scope='a')",
    "L.flatten(i)",
    "L.flatten(i, scope='f')",
    "L.dropout(x, is_training=False)",
    "L.batch_norm(i)",
    "L.batch_norm(i, center=False, scale=True, decay=.5, epsilon=.1, scope='bn')",
    "L.batch_norm(x)",
    "L.batch_norm(x, is_training=False)",
    "L.batch_norm(x, decay=.5, updates_collections=None)",
    "L.batch_norm(i, fused=False, updates_collections='mine')",
    "L.layer_norm(x)",
    "L.layer_norm(i, scale=False, activation_fn=tf.nn.relu)",
    "L.instance_norm(i)",
    "L.bias_add(x)",
    "L.one_hot_encoding([1, 0, 2], 4)",
    "L.softmax(x)",
    "L.unit_norm(x, 1)",
    "L.repeat(x, 2, L.fully_connected, 3, weights_initializer=init)",
    "L.stack(x, L.fully_connected, [3, 4], scope='s', weights_initializer=init)",
    "L.embed_sequence([[1, 2]], 4, 3, initializer=tf.ones_initializer())",
]


def cases(tf):
    found = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    for call in CALLS:
        found["call " + call] = lambda tf, call=call: called(tf, call)
    return found


def init(shape, dtype=None, partition_info=None):
    return np.sin(np.arange(np.prod(shape), dtype=np.float32) + 1).reshape(shape)


def digest(value):
    flat = np.ravel(value).astype(np.float64)
    places = np.arange(flat.size)
    return [list(np.shape(value)), flat.sum(), flat.dot(np.sin(places)), np.abs(flat).dot(1 + np.cos(places))]


def names(values):
    return [value.name for value in values]


def called(tf, call):
    inputs = {name: tf.placeholder(tf.float32, (None, *INPUTS[name].shape[1:]), name) for name in INPUTS}
    feeds = {inputs[name]: INPUTS[name] for name in INPUTS}
    with tf.variable_scope("top"):
        result = eval(call, dict(inputs, tf=tf, L=tf.contrib.layers, init=init))
    keys = ("variables", "trainable_variables", "model_variables", "mine", "out", "regularization_losses")
    collections = [sorted(name for name in names(tf.get_collection(key)) if "Assign" not in name) for key in keys]
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS) + tf.get_collection("mine")
    updates = {getattr(update, "op", update).name: update for update in updates}
    updates = [updates[name] for name in sorted(updates) if "Assign" in name]
    variables = tf.trainable_variables()
    gradients = [g for g in tf.gradients(tf.reduce_sum(tf.square(result)), variables) if g is not None]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        value, slopes = session.run([result, gradients], feeds)
        session.run(updates, feeds)
        after = session.run(tf.global_variables())
    return [
        "" if "norm" in call or "softmax" in call or "Dropout" in result.name else result.name,
        result.shape.as_list(),
        collections,
        len(updates),
        digest(value),
        [digest(slope) for slope in slopes],
        [digest(state) for state in after],
    ]


def case_scopes(tf):
    slim = tf.contrib.slim
    x = tf.placeholder(tf.float32, [2, 6, 6, 3])
    with slim.arg_scope([slim.conv2d, slim.fully_connected], weights_regularizer=slim.l2_regularizer(0.5)) as scope:
        with slim.arg_scope([slim.conv2d], stride=2, padding="VALID"):
            net = slim.conv2d(x, 4, 3, scope="a")
        net = slim.conv2d(net, 4, 1, scope="b", weights_regularizer=None)
        net = slim.fully_connected(slim.flatten(net), 5, activation_fn=None)
    with slim.arg_scope(scope):
        slim.conv2d(x, 2, 1, scope="c")
    slim.conv2d(x, 2, 1, scope="d")
    found = [net.shape.as_list(), names(tf.losses.get_regularization_losses()), names(slim.get_model_variables())]
    found += [names(slim.get_variables("a")), names(slim.get_variables_by_name("weights"))]
    found += [slim.has_arg_scope(slim.conv2d)]
    found += [names(slim.get_variables_to_restore(exclude=["a", "b"])), slim.has_arg_scope(len)]
    found += [names(slim.get_variables(suffix="biases")), slim.get_unique_variable("a/weights").name]
    for call in ("slim.arg_scope([len], x=1).__enter__()", "slim.arg_scope(3, x=1).__enter__()"):
        try:
            eval(call)
            found.append(None)
        except (TypeError, ValueError) as error:
            found.append(type(error).__name__)
    return found


def case_model_variables(tf):
    F = tf.contrib.framework
    made = F.model_variable("m", [2], initializer=tf.ones_initializer(), regularizer=tf.nn.l2_loss, device="/cpu:0")
    other = F.variable("v", [3], collections=["c"])
    local = F.local_variable([1.0, 2.0], name="l")
    assign, feeds = F.assign_from_values({"m": np.array([3.0, 4.0], np.float32)})
    found = [names(tf.get_collection(key)) for key in ("variables", "model_variables", "c", "local_variables")]
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), local.initializer])
        session.run(assign, feeds)
        return [*found, session.run(made), other.name, made.device, names(F.get_local_variables())]


def case_training(tf):
    slim = tf.contrib.slim
    x = tf.constant(INPUTS["x"])
    with tf.variable_scope("top"):
        net = slim.fully_connected(x, 3, weights_initializer=init, normalizer_fn=slim.batch_norm)
        net = slim.fully_connected(net, 1, activation_fn=None, weights_initializer=init)
    slim.losses.mean_squared_error(net, tf.ones([2, 1]))
    total = slim.losses.get_total_loss()
    train = slim.learning.create_train_op(total, tf.train.GradientDescentOptimizer(0.1), clip_gradient_norm=0.5)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        losses = [session.run(train) for _ in range(3)]
        return [losses, session.run(tf.train.get_global_step()), names(tf.global_variables())]


def case_optimize_loss(tf):
    w = tf.Variable([1.0, 2.0])
    step = tf.train.get_or_create_global_step()
    train = tf.contrib.layers.optimize_loss(tf.reduce_sum(tf.square(w)), step, 0.1, "SGD", clip_gradients=1.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        losses = [session.run(train) for _ in range(3)]
        return [len(losses), session.run([w, step]), names(tf.global_variables())]


def case_streaming_metrics(tf):
    M = tf.contrib.metrics
    k, p = tf.constant([1, 0, 1]), tf.constant([1, 1, 1])
    values, updates = M.aggregate_metric_map(
        {
            "accuracy": M.streaming_accuracy(p, k),
            "auc": M.streaming_auc(tf.to_float(p) * 0.7, k),
            "precision": M.streaming_precision(p, k),
            "mse": M.streaming_mean_squared_error(p, k),
        }
    )
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        return [session.run(updates), session.run(values), names(tf.local_variables())]


def case_losses_with_predictions_first(tf):
    L = tf.contrib.slim.losses
    p, y = tf.constant([[0.2, 0.7]]), tf.constant([[0.0, 1.0]])
    found = [L.log_loss(p, y), L.mean_squared_error(p, y), L.softmax_cross_entropy(p, y), L.sigmoid_cross_entropy(p, y)]
    with tf.Session() as session:
        return [session.run(found), len(tf.losses.get_losses())]
