"""Layers: names of their variables and operations, values, gradients, collections."""

import numpy as np


def cases(tf):
    found = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    for call in CALLS:
        found["call " + call] = lambda tf, call=call: called(tf, call)
    for call in ERRORS:
        found["error " + call] = lambda tf, call=call: refused(tf, call)
    return found


_numbers = np.random.RandomState(3)
INPUTS = {
    "x": _numbers.standard_normal((2, 3)).astype(np.float32),
    "s": _numbers.standard_normal((2, 5, 3)).astype(np.float32),
    "i": _numbers.standard_normal((2, 6, 5, 3)).astype(np.float32),
    "v": _numbers.standard_normal((2, 4, 5, 4, 2)).astype(np.float32),
}

CALLS = [
    "tf.layers.dense(x, 4)",
    "tf.layers.dense(x, 4, tf.nn.relu, name='fc')",
    "tf.layers.dense(x, 2, use_bias=False)",
    "tf.layers.dense(s, 4, tf.tanh)",
    "tf.layers.dense(i, 2)",
    "tf.layers.Dense(4, activation=tf.nn.sigmoid, name='d')(x)",
    "tf.layers.dense(x, 4, kernel_regularizer=lambda w: tf.reduce_sum(w) * .1, bias_regularizer=tf.nn.l2_loss)",
    "tf.layers.dense(x, 4, activity_regularizer=tf.nn.l2_loss)",
    "tf.layers.dense(x, 4, trainable=False)",
    "tf.layers.flatten(i)",
    "tf.layers.flatten(i, 'f')",
    "tf.layers.flatten(i, data_format='channels_first')",
    "tf.layers.Flatten()(tf.reshape(x, [6]))",
    "tf.layers.dropout(x, .5)",
    "tf.layers.dropout(x, .5, training=False, name='drop')",
    "tf.layers.dropout(x, 0., training=True)",
    "tf.layers.dropout(x, .5, training=tf.placeholder_with_default(False, []))",
    "tf.layers.conv1d(s, 4, 3)",
    "tf.layers.conv1d(s, 4, 3, 2, 'same', name='c')",
    "tf.layers.conv1d(s, 2, 2, dilation_rate=2)",
    "tf.layers.conv1d(s, 2, 2, padding='SAME', use_bias=False)",
    "tf.layers.conv2d(i, 4, 3)",
    "tf.layers.conv2d(i, 4, [3, 2], (2, 1), 'same', activation=tf.nn.relu)",
    "tf.layers.conv2d(i, 4, 2, dilation_rate=2)",
    "tf.layers.conv2d(i, 4, 2, dilation_rate=(2, 1), padding='same')",
    "tf.layers.Conv2D(2, 1, name='c')(i)",
    "tf.layers.conv3d(v, 3, 2)",
    "tf.layers.conv3d(v, 3, (2, 3, 1), 2, 'same')",
    "tf.layers.conv2d_transpose(i, 2, 3)",
    "tf.layers.conv2d_transpose(i, 2, (2, 3), 2, 'same', activation=tf.nn.relu)",
    "tf.layers.conv2d_transpose(i, 2, 2, (3, 2), use_bias=False, name='t')",
    "tf.layers.conv3d_transpose(v, 3, 2, 2)",
    "tf.layers.conv3d_transpose(v, 3, (2, 3, 2), padding='same')",
    "tf.layers.separable_conv1d(s, 4, 3)",
    "tf.layers.separable_conv1d(s, 4, 2, 2, 'same', depth_multiplier=2)",
    "tf.layers.separable_conv2d(i, 4, 3)",
    "tf.layers.separable_conv2d(i, 2, (3, 2), (2, 2), 'same', depth_multiplier=2, activation=tf.nn.relu)",
    "tf.layers.max_pooling1d(s, 2, 2)",
    "tf.layers.max_pooling1d(s, 3, 1, 'same', name='p')",
    "tf.layers.max_pooling2d(i, 2, 2)",
    "tf.layers.max_pooling2d(inputs=i, pool_size=[3, 2], strides=(2, 1), padding='same')",
    "tf.layers.max_pooling3d(v, 2, 1)",
    "tf.layers.average_pooling1d(s, 2, 2)",
    "tf.layers.average_pooling2d(i, (2, 3), 1, 'same')",
    "tf.layers.average_pooling3d(v, (2, 2, 1), 2, 'same')",
    "tf.layers.batch_normalization(x)",
    "tf.layers.batch_normalization(x, training=True)",
    "tf.layers.batch_normalization(i, training=True)",
    "tf.layers.batch_normalization(i, training=False, name='bn')",
    "tf.layers.batch_normalization(i, fused=False, training=True)",
    "tf.layers.batch_normalization(i, axis=1, training=True, momentum=.9, epsilon=.1, fused=False)",
    "tf.layers.batch_normalization(i, axis=[1, 3], training=True)",
    "tf.layers.batch_normalization(s, axis=1, training=True)",
    "tf.layers.batch_normalization(i, training=tf.placeholder_with_default(True, []))",
    "tf.layers.batch_normalization(x, training=tf.placeholder_with_default(True, []))",
    "tf.layers.batch_normalization(x, training=tf.placeholder_with_default(False, []))",
    "tf.layers.batch_normalization(x, center=False, training=True)",
    "tf.layers.batch_normalization(i, scale=False, training=True)",
    "tf.layers.batch_normalization(x, trainable=False, training=True)",
]

ERRORS = [
    "tf.layers.dense(x, 4, nonsense=1)",
    "tf.layers.dense(x[:, 0], 4)",
    "tf.layers.dense(tf.placeholder(tf.float32, [2, None]), 4)",
    "tf.layers.dense(tf.placeholder(tf.float32), 4)",
    "tf.layers.dense(tf.constant([[1]]), 4)",
    "tf.layers.conv2d(x, 4, 3)",
    "tf.layers.conv2d(i, 4, [1, 2, 3])",
    "tf.layers.conv2d(i, 4, 3, padding='maybe')",
    "tf.layers.conv2d(i, 4, 3, data_format='NHWC')",
    "tf.layers.conv2d(tf.placeholder(tf.float32, [1, 2, 2, None]), 4, 3)",
    "tf.layers.max_pooling2d(i, 2)",
    "tf.layers.batch_normalization(x, axis=2)",
    "tf.layers.batch_normalization(tf.placeholder(tf.float32))",
    "tf.layers.Dense(3)(i)(x)",
    "[tf.layers.dense(x, 4, name='same'), tf.layers.dense(x, 4, name='same')]",
    "tf.layers.dense(x, 4, name='new', reuse=True)",
    "tf.layers.Dense(3).scope_name",
    "tf.layers.Dense(3).count_params()",
]


def initializer(shape, dtype=None, partition_info=None):
    """Different numbers, the same in every place."""
    return np.sin(np.arange(np.prod(shape), dtype=np.float32) + 1).reshape(shape)


def digest(value):
    """The shape of an array and three numbers that change with every element."""
    flat = np.ravel(value).astype(np.float64)
    places = np.arange(flat.size)
    return [list(np.shape(value)), flat.sum(), flat.dot(np.sin(places)), np.abs(flat).dot(1 + np.cos(places))]


def names(values):
    return [value.name for value in values]


def called(tf, call):
    """What a call makes, gives and changes."""
    inputs = {name: tf.placeholder(tf.float32, (None, *INPUTS[name].shape[1:]), name) for name in INPUTS}
    feeds = {inputs[name]: INPUTS[name] for name in INPUTS}
    scope = tf.variable_scope("top", initializer=initializer)
    with scope:
        result = eval(call, dict(inputs, tf=tf))
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    sources = [tensor for name, tensor in inputs.items() if "(" + name in call or "=" + name in call]
    variables = tf.trainable_variables()
    gradients = tf.gradients(tf.reduce_sum(tf.square(result)), sources + variables)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        value, slopes, lost = session.run([result, [g for g in gradients if g is not None], losses], feeds)
        session.run(updates, feeds)
        after = session.run(tf.global_variables())
    return [
        result.name,
        result.shape.as_list(),
        names(tf.global_variables()),
        names(variables),
        len(updates) if "placeholder" in call else names(updates),
        names(losses),
        [g is None for g in gradients],
        digest(value),
        [digest(slope) for slope in slopes],
        lost,
        [digest(state) for state in after],
    ]


def refused(tf, call):
    inputs = {name: tf.placeholder(tf.float32, INPUTS[name].shape, name) for name in INPUTS}
    return str(eval(call, dict(inputs, tf=tf)))


def case_names_of_several(tf):
    x = tf.placeholder(tf.float32, [2, 3])
    found = []
    for scope in ("a", "b", "c"):
        with tf.variable_scope(scope):
            found += [tf.layers.dense(x, 2).name, tf.layers.dense(x, 2).name, tf.layers.conv1d(x[None], 2, 1).name]
    with tf.variable_scope("s") as scope:
        found += [tf.layers.dense(x, 2, name="d").name]
        scope.reuse_variables()
        found += [tf.layers.dense(x, 2, name="d").name]
    found += [tf.layers.dense(x, 2, name="top").name, tf.layers.dense(x, 2, name="top", reuse=True).name]
    with tf.variable_scope("e", reuse=tf.AUTO_REUSE):
        found += [tf.layers.dense(x, 2, name="d").name, tf.layers.dense(x, 2, name="d").name]
    with tf.name_scope("n"):
        found += [tf.layers.dense(x, 2).name]
    return found + names(tf.global_variables())


def case_layer_objects(tf):
    x = tf.placeholder(tf.float32, [None, 3])
    first, second, named = tf.layers.Dense(2), tf.layers.Dense(2), tf.layers.Dense(4, name="n", trainable=False)
    found = [first.name, second.name, named.name, first.built, first.dtype]
    results = [second(x), second(x), first(x), named(x), second(x)]
    found += names(results) + names(tf.global_variables()) + [first.name, first.scope_name, second.scope_name]
    found += [first.count_params(), first.dtype, first.built, names(first.weights), names(named.trainable_weights)]
    found += [names(named.non_trainable_weights), names(named.variables), names(first.trainable_variables)]
    found += [first.kernel.name, first.bias.name, first.units]
    with tf.variable_scope("within"):
        other = tf.layers.Dense(2)
        found += [other.name, other(x).name]
    with tf.variable_scope("elsewhere"):
        found += [other(x).name]
    return found


def case_shapes_of_outputs(tf):
    layers = [
        (tf.layers.Dense(4), [None, 5, 3]),
        (tf.layers.Flatten(), [2, 3, 4]),
        (tf.layers.Flatten(), [2, None, 4]),
        (tf.layers.Conv2D(4, 3), [None, 7, None, 2]),
        (tf.layers.Conv2D(4, 3, 2, "same"), [2, 7, 8, 2]),
        (tf.layers.MaxPooling2D(3, 2), [2, 7, 8, 2]),
        (tf.layers.Dropout(), [2, 3]),
        (tf.layers.Conv2DTranspose(4, 3, 2), [2, 7, 8, 2]),
        (tf.layers.BatchNormalization(), [2, 3]),
    ]
    return [layer.compute_output_shape(tf.TensorShape(shape)).as_list() for layer, shape in layers]


def case_own_layers(tf):
    class TwoTimes(tf.layers.Layer):
        def __init__(self, more, **kwargs):
            super().__init__(**kwargs)
            self.more = more

        def build(self, input_shape):
            size = int(input_shape[-1])
            self.w = self.add_variable("w", [size], initializer=tf.ones_initializer(), regularizer=tf.nn.l2_loss)
            self.b = self.add_weight(name="b", shape=[], initializer=tf.zeros_initializer(), trainable=False)
            self.built = True

        def call(self, inputs, training=False):
            self.add_update(tf.assign_add(self.b, 1.0))
            return 2 * inputs * self.w + self.more * self.b

    layer = TwoTimes(3.0)
    x = tf.constant([[1.0, 2.0]])
    y, z = layer(x), layer.apply(x, training=True)
    found = [layer.name, y.name, z.name, *names(tf.global_variables()), *names(layer.updates)]
    found += [names(tf.get_collection(key)) for key in ("update_ops", "regularization_losses", "trainable_variables")]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found += [session.run(y)]
        session.run(layer.updates)
        found += [session.run([y, layer.losses[0]])]
    return found


def case_partitioned_kernel(tf):
    with tf.variable_scope("p", partitioner=tf.fixed_size_partitioner(2), initializer=initializer):
        result = tf.layers.dense(tf.constant(INPUTS["x"][:, :2]), 4)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [session.run(result), *names(tf.global_variables())]


def case_training_with_averages(tf):
    """A training operation that runs the updates, as programs write it."""
    x = tf.placeholder(tf.float32, [None, 3])
    training = tf.placeholder(tf.bool, [])
    with tf.variable_scope("net", initializer=initializer):
        hidden = tf.layers.batch_normalization(tf.layers.dense(x, 4), training=training, momentum=0.5)
        loss = tf.reduce_mean(tf.square(tf.layers.dense(tf.nn.relu(hidden), 1) - 1.0))
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = [session.run([loss, train], {x: INPUTS["x"], training: True})[0] for _ in range(3)]
        found.append(session.run(loss, {x: INPUTS["x"], training: False}))
        return [found, session.run(tf.global_variables())]
