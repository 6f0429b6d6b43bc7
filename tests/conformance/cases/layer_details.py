"""Batch renormalization, updates of inputs, descriptions of cells, structures of branches and loops."""

import collections

import numpy as np


def cases(tf):
    found = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    for name, make in NORMALIZATIONS.items():
        found["normalization " + name] = lambda tf, make=make: trained(tf, make)
    for name, make in CELLS.items():
        found["cell " + name] = lambda tf, make=make: described(make(tf.nn.rnn_cell, tf))
    return found


_numbers = np.random.RandomState(0)
IMAGES = [_numbers.standard_normal((8, 2, 2, 3)).astype(np.float32) * (i + 1) + i for i in range(3)]
CLIPPING = {"rmin": 0.5, "rmax": 1.5, "dmax": 0.3}


def _adjusted(tf):
    return lambda shape: (tf.fill(shape[-1:], 1.1), tf.fill(shape[-1:], 0.2))


NORMALIZATIONS = {
    "renorm": lambda tf, x, t: tf.layers.batch_normalization(x, training=t, renorm=True, renorm_momentum=0.8),
    "renorm in training": lambda tf, x, t: tf.layers.batch_normalization(x, training=True, renorm=True, momentum=0.7),
    "renorm in evaluation": lambda tf, x, t: tf.layers.batch_normalization(x, training=False, renorm=True),
    "clipped": lambda tf, x, t: tf.layers.batch_normalization(x, training=t, renorm=True, renorm_clipping=CLIPPING),
    "channels first": lambda tf, x, t: tf.layers.batch_normalization(x, 1, training=t, renorm=True),
    "two axes": lambda tf, x, t: tf.layers.batch_normalization(x, [1, 3], training=t, renorm=True),
    "virtual": lambda tf, x, t: tf.layers.batch_normalization(x, training=t, virtual_batch_size=4, momentum=0.7),
    "virtual renorm": lambda tf, x, t: tf.layers.batch_normalization(
        x, training=t, virtual_batch_size=2, momentum=0.7, renorm=True
    ),
    "adjusted": lambda tf, x, t: tf.layers.batch_normalization(x, training=t, adjustment=_adjusted(tf)),
    "contrib": lambda tf, x, t: tf.contrib.layers.batch_norm(
        x, is_training=t, decay=0.7, renorm=True, renorm_decay=0.8, scale=True
    ),
    "contrib adjusted": lambda tf, x, t: tf.contrib.layers.batch_norm(x, is_training=t, adjustment=_adjusted(tf)),
    "unknown limit": lambda tf, x, t: tf.layers.batch_normalization(x, renorm=True, renorm_clipping={"a": 1}),
    "no virtual batch": lambda tf, x, t: tf.layers.batch_normalization(x, virtual_batch_size=0),
}


def trained(tf, make):
    """Outputs, gradients and variables of three steps, of which the second evaluates."""
    x, training = tf.placeholder(tf.float32, [None, 2, 2, 3]), tf.placeholder(tf.bool, [])
    y = make(tf, x, training)
    trainable = tf.trainable_variables()
    grads = tf.gradients(tf.reduce_sum(y * tf.sin(x)), trainable)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    found = []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step, images in enumerate(IMAGES):
            feeds = {x: images, training: step != 1}
            found.append(session.run([y[:2, 0], grads], feeds))
            session.run(updates, feeds)
        variables = tf.global_variables()
        found.append({v.name: value for v, value in zip(variables, session.run(variables))})  # noqa: B905 - Python 3.7
    return found


CELLS = {
    "basic": lambda cells, tf: cells.BasicRNNCell(3),
    "gru": lambda cells, tf: cells.GRUCell(3, activation=tf.nn.relu, name="g"),
    "gru by name": lambda cells, tf: cells.GRUCell(3, activation="relu"),
    "gru with initializers": lambda cells, tf: cells.GRUCell(
        3, kernel_initializer=tf.random_uniform_initializer(-1, 1), bias_initializer=tf.zeros_initializer()
    ),
    "basic lstm": lambda cells, tf: cells.BasicLSTMCell(3, 0.5),
    "lstm": lambda cells, tf: cells.LSTMCell(3, use_peepholes=True, num_proj=2, cell_clip=1.5),
    "lstm of doubles": lambda cells, tf: cells.LSTMCell(3, dtype=tf.float64),
    "dropout": lambda cells, tf: cells.DropoutWrapper(cells.GRUCell(3), 0.5, 0.25, seed=3),
    "residual": lambda cells, tf: cells.ResidualWrapper(cells.GRUCell(3)),
    "device": lambda cells, tf: cells.DeviceWrapper(cells.GRUCell(3), "/cpu:0"),
}


def described(cell):
    return cell.get_config()


def case_layers_of_contrib(tf):
    layers = tf.contrib.layers
    images = tf.constant(IMAGES[1])
    ids = tf.constant([[1, 2, 0], [3, 3, 1]])
    made = {
        "group_norm": layers.group_norm(tf.tile(images, [1, 1, 1, 4]), 3),
        "group_norm, channels first": layers.group_norm(images, 1, 1, (2, 3), mean_close_to_zero=True),
        "maxout": layers.maxout(tf.tile(images, [1, 1, 1, 2]), 2),
        "spatial_softmax": layers.spatial_softmax(images),
        "spatial_softmax, channels first": layers.spatial_softmax(images, 0.5, data_format="NCHW"),
        "images_to_sequence": layers.images_to_sequence(images),
        "sequence_to_images": layers.sequence_to_images(layers.images_to_sequence(images), 2),
        "conv2d_in_plane": layers.conv2d_in_plane(images, [1, 2], weights_initializer=tf.ones_initializer()),
        "embedding_lookup_unique": layers.embedding_lookup_unique(tf.range(12.0), ids),
        "bow_encoder": layers.bow_encoder(ids, 4, 2, initializer=tf.ones_initializer()),
        "bow_encoder, dense": layers.bow_encoder(ids, 4, 2, False, initializer=tf.ones_initializer()),
        "dense_to_sparse": list(layers.dense_to_sparse(ids, 3)),
        "safe_embedding_lookup_sparse": layers.safe_embedding_lookup_sparse(
            [tf.ones([4, 2])], layers.dense_to_sparse(ids), combiner="sum"
        ),
    }
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [session.run(made), [v.name for v in tf.global_variables()]]


def case_functions_of_contrib_framework(tf):
    framework = tf.contrib.framework
    names = ["a/b", "^a/b", "loc:@a/b", "a//b", "ab", "c/a/b"]
    with tf.name_scope("outer"):
        scope = framework.get_name_scope()
        total = framework.reduce_sum_n([tf.ones([2, 2]), tf.ones([3])])
    placeholders = [tf.placeholder(tf.float32, name="p"), tf.placeholder_with_default(1, [], name="q")]
    chooser = framework.VariableDeviceChooser(2, replica=1)
    with tf.Session() as session:
        return {
            "strip": [framework.strip_name_scope(name, "a") for name in names],
            "strip with slash": [framework.strip_name_scope(name, "a/") for name in names],
            "prepend": [framework.prepend_name_scope(name, "x") for name in names],
            "none": [framework.strip_name_scope("a", None), framework.prepend_name_scope("a", "")],
            "scope": scope,
            "total": session.run(total),
            "placeholders": [tensor.name for tensor in framework.get_placeholders(tf.get_default_graph())],
            "step": framework.assert_or_get_global_step(global_step_tensor=tf.train.create_global_step()).name,
            "devices": [chooser(placeholders[0].op) for _ in range(3)] + [framework.VariableDeviceChooser()(None)],
        }


def case_metrics_of_contrib(tf):
    metrics = tf.contrib.metrics
    labels, predictions = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    weights = tf.placeholder_with_default([1.0, 0.5, 2.0], [None])
    made = {}
    for metric in (
        metrics.streaming_covariance,
        metrics.streaming_pearson_correlation,
        metrics.streaming_false_positive_rate,
        metrics.streaming_false_negative_rate,
    ):
        name = metric.__name__
        made[name] = metric(predictions, labels)
        made[name + " weighted"] = metric(predictions, labels, weights)
    made["count"], made["count weighted"] = metrics.count(labels), metrics.count(labels, weights)
    found = []
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        for seed in (1, 2):
            numbers = np.random.RandomState(seed)
            feeds = {labels: numbers.randint(0, 2, 3), predictions: numbers.randint(0, 2, 3)}
            found.append(session.run({name: update for name, (_, update) in made.items()}, feeds))
            found.append(session.run({name: value for name, (value, _) in made.items()}))
    return found


def case_functions_of_contrib_eager(tf):
    eager = tf.contrib.eager

    @eager.defun
    def double(x):
        if x > 0:
            return x * 2
        return x

    with tf.Session() as session:
        return [session.run([double(tf.constant(2)), double(tf.constant(-2))]), eager.executing_eagerly()]


def case_updates_and_losses_of_inputs(tf):
    class Counting(tf.layers.Layer):
        def build(self, input_shape):
            self.total = self.add_variable("total", (), tf.float32, trainable=False)
            self.add_update(tf.assign_add(self.total, 1.0))
            self.add_loss(self.total)
            self.built = True

        def call(self, inputs):
            self.add_update(tf.assign_add(self.total, inputs), inputs=True)
            self.add_loss(inputs, inputs=True)
            return inputs + 1

    layer, found = Counting(), []
    for _ in range(2):
        x = tf.placeholder(tf.float32, ())
        inner = x + 1
        out = layer.apply(inner)
        inputs = (None, [x], [inner], [out], [x, out])
        found += [[len(layer.get_updates_for(of)), len(layer.get_losses_for(of))] for of in inputs]
    return [*found, len(layer.updates), len(layer.losses)]


def case_regularizers_of_parts(tf):
    for reuse in (False, True):
        with tf.variable_scope(tf.get_variable_scope(), partitioner=tf.fixed_size_partitioner(3), reuse=reuse):
            tf.layers.Layer(name="mine").add_variable("w", [4, 4], regularizer=tf.reduce_sum)
    return [loss.op.name for loss in tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)]


def case_shapes_of_dense_outputs(tf):
    def shape(of):
        try:
            return tf.layers.Dense(2).compute_output_shape(tf.TensorShape(of)).as_list()
        except ValueError:
            return "ValueError"

    return [shape(of) for of in (None, [], [1], [None, 3], [None, 4, 3], [2, None])]


def case_gradients_of_variables_in_a_custom_gradient(tf):
    @tf.custom_gradient
    def layer(x):
        out = tf.layers.dense(x, 3, use_bias=False, kernel_initializer=tf.ones_initializer())

        def back(grad, variables=()):
            (of_x,) = tf.gradients(out, [x], grad_ys=grad)
            return of_x, [tf.fill(variable.shape, 7.0) for variable in variables]

        return out, back

    with tf.variable_scope("a", use_resource=True):
        outer = tf.layers.dense(tf.ones([2, 4]), 4, use_bias=False, kernel_initializer=tf.ones_initializer())
        y = layer(outer)
        grads = tf.gradients(y, [outer, *tf.trainable_variables()])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(grads)


def case_a_gradient_of_rows(tf):
    x = tf.placeholder(tf.float32, [3, 2])
    rows = tf.IndexedSlices(tf.constant([[2.0, 3.0]]), tf.constant([1]))
    (found,) = tf.gradients(tf.identity(x), x, grad_ys=rows)
    with tf.Session() as session:
        return list(session.run([found.values, found.indices], {x: np.zeros([3, 2])}))


Pair = collections.namedtuple("Pair", "a")


def case_structures_of_branches(tf):
    known = tf.placeholder(tf.bool, [])
    kinds = {"x": lambda x: x, "[x]": lambda x: [x], "(x)": lambda x: (x,), "Pair": Pair, "[x, x]": lambda x: [x, x]}
    found = {}
    for strict in (False, True):
        for first in kinds:
            for second in kinds:
                pair = [lambda kind=kinds[each]: kind(tf.constant(1)) for each in (first, second)]
                try:
                    result = type(tf.cond(known, *pair, strict=strict)).__name__
                except (TypeError, ValueError) as error:
                    result = type(error).__name__
                found[f"{first} {second} {strict}"] = result
    return found


def case_structures_of_loops(tf):
    start, other = tf.constant(0), tf.constant(1)
    loop = tf.while_loop
    made = [
        loop(lambda p: p[0] < 3, lambda p: [(p[0] + 1, p[1])], [(start, other)]),
        loop(lambda p: p[0] < 3, lambda p: [(p[0] + 1,)], [(start,)]),
        loop(lambda i, e: i < 3, lambda i, e: [i + 1, []], [start, []]),
        loop(lambda i, e: i < 3, lambda i, e: [i + 1, []], [start, []], maximum_iterations=5),
        loop(lambda i: i < 3, lambda i: i + 1, [start], return_same_structure=True),
    ]
    return [str(tf.nest.map_structure(lambda _: "t", each)) for each in made]


def case_branches_by_index(tf):
    found = []
    for index in (1, tf.constant(1)):
        for branches in ([lambda: tf.constant(1), lambda: tf.constant(2)], {tf.constant(0): lambda: tf.constant(1)}):
            try:
                tf.switch_case(index, branches)
                found.append("builds")
            except (TypeError, ValueError) as error:
                found.append(type(error).__name__)
    return found


def case_contradicting_hints(tf):
    operator = tf.linalg.LinearOperatorFullMatrix([[1.0, 0.0], [1.0, 1.0]], is_self_adjoint=False)
    found = []
    for kind in (tf.linalg.LinearOperatorAdjoint, tf.linalg.LinearOperatorInversion):
        try:
            kind(operator, is_self_adjoint=True)
            found.append("builds")
        except ValueError:
            found.append("ValueError")
    return found


def case_fed_delimiters(tf):
    delimiter = tf.placeholder(tf.string)
    parts = tf.string_split(["a|b", "c"], delimiter=delimiter)
    found = []
    with tf.Session() as session:
        for fed in ("|", ["|"], ["|", "b"]):
            try:
                found.append(session.run(parts, {delimiter: fed}).values.tolist())
            except tf.errors.InvalidArgumentError:
                found.append("InvalidArgumentError")
    return str(found)


def case_wrong_places_of_dense_values(tf):
    found = []
    with tf.Session() as session:
        for places, default in (([1, 9], 0), ([1, 1], 0), ([3, 1], 0), ([1, 3], [0, 1]), ([1, 3], 0)):
            try:
                made = tf.sparse_to_dense(tf.placeholder_with_default(places, [2]), [5], 1, default)
                found.append(session.run(made).tolist())
            except (ValueError, tf.errors.InvalidArgumentError) as error:
                said = str(error)
                found.append([word for word in ("out of bounds", "repeated", "out of order", "scalar") if word in said])
    return found


def case_averages_under_a_partitioner(tf):
    with tf.variable_scope("divided", partitioner=tf.fixed_size_partitioner(2)):
        flat = tf.layers.batch_normalization(tf.ones([3, 4]), training=True, renorm=True)
        image = tf.layers.batch_normalization(tf.ones([1, 2, 2, 4]), training=True)
        contrib = tf.contrib.layers.batch_norm(tf.ones([3, 4]), scale=True)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(tf.get_collection(tf.GraphKeys.UPDATE_OPS))
        values = [value.tolist() for value in session.run([flat, image, contrib])]
    return [[variable.op.name, variable.shape.as_list()] for variable in tf.global_variables()], values
