"""Functions and objects of ``tf.keras`` on tensors and variables of graphs."""

import numpy as np

VALUES = np.arange(12, dtype=np.float32).reshape(3, 4) / 10 - 0.4
TARGETS = np.eye(3, 4, dtype=np.float32)


def _run(tf, make):
    """Returns the values of what ``make`` adds to a graph."""
    fetched = make()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        value = session.run(fetched)
    return [np.asarray(each, np.float64).round(5).tolist() for each in (value if isinstance(value, list) else [value])]


def cases(tf):
    backend, initializers = tf.keras.backend, tf.keras.initializers
    found = {}

    def x():
        return tf.placeholder_with_default(tf.constant(VALUES), [None, 4])

    def y():
        return tf.constant(TARGETS)

    def chances():
        return tf.nn.sigmoid(x())

    def add(name, make):
        found[name] = lambda tf: _run(tf, make)

    # Initializers --------------------------------------------------------------------------------------------------

    def spread(initializer):
        """Whether the numbers that are drawn have the standard deviation and the mean of the distribution."""

        def make():
            drawn = tf.get_variable("v", [200, 300], initializer=initializer)
            mean, variance = tf.nn.moments(drawn, [0, 1])
            return [tf.round(mean * 50), tf.round(tf.sqrt(variance) * 200)]

        return make

    for name in ("he_normal", "he_uniform", "glorot_normal", "glorot_uniform", "lecun_normal", "lecun_uniform"):
        add("initializer_" + name, spread(getattr(initializers, name)()))
    add("initializer_random_normal", spread(initializers.RandomNormal(0.5, 0.1)))
    add("initializer_random_uniform", spread(initializers.RandomUniform(-0.1, 0.9)))
    add("initializer_truncated_normal", spread(initializers.TruncatedNormal(0.2, 0.2)))
    add("initializer_variance_scaling", spread(initializers.VarianceScaling(3.0, "fan_avg", "uniform")))
    add("initializer_class", lambda: tf.get_variable("v", [2], initializer=initializers.Ones))
    add("initializer_constant", lambda: tf.get_variable("v", [2], initializer=initializers.Constant(3.0)))
    add("initializer_identity", lambda: tf.get_variable("v", [2, 2], initializer=initializers.Identity(2.0)))
    add("initializer_by_name", spread(initializers.get("he_normal")))

    def orthogonal():
        drawn = tf.get_variable("v", [3, 3], initializer=initializers.Orthogonal())
        return tf.abs(tf.matmul(drawn, drawn, transpose_b=True))

    def partitioned():
        # The scale is of the whole variable, not of a part.
        drawn = tf.get_variable(
            "v", [400, 100], initializer=initializers.he_uniform(), partitioner=tf.fixed_size_partitioner(4)
        )
        return tf.round(tf.reduce_max(tf.convert_to_tensor(drawn)) * 100)

    def in_layers():
        return tf.layers.dense(
            x(), 2, kernel_initializer=initializers.Ones(), bias_initializer=initializers.Constant(2.0)
        )

    def in_contrib():
        return tf.contrib.layers.fully_connected(x(), 2, weights_initializer=initializers.Ones(), activation_fn=None)

    def in_columns():
        column = tf.feature_column.categorical_column_with_identity("ids", 3)
        column = tf.feature_column.embedding_column(column, 2, initializer=initializers.Ones())
        return tf.feature_column.input_layer({"ids": tf.constant([[1], [2]])}, [column])

    for make in (orthogonal, partitioned, in_layers, in_contrib, in_columns):
        add("initializer_" + make.__name__, make)

    # Regularizers and constraints -----------------------------------------------------------------------------------

    def regularized(regularizer):
        def make():
            tf.layers.dense(x(), 3, kernel_initializer=tf.ones_initializer(), kernel_regularizer=regularizer)
            tf.get_variable("v", [2], initializer=tf.ones_initializer(), regularizer=regularizer)
            loss = tf.losses.get_regularization_loss()
            return [loss, tf.gradients(loss, tf.trainable_variables()[-1])[0]]

        return make

    regularizers = tf.keras.regularizers
    add("regularizer_l1", regularized(regularizers.l1(0.1)))
    add("regularizer_l2", regularized(regularizers.l2(0.1)))
    add("regularizer_l1_l2", regularized(regularizers.l1_l2(0.1, 0.2)))

    def constrained(constraint):
        def make():
            weights = tf.get_variable("w", initializer=VALUES, constraint=constraint)
            step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(weights))
            with tf.control_dependencies([step]):
                return [tf.abs(weights.read_value()), tf.abs(constraint(tf.constant(VALUES)))]

        return make

    constraints = tf.keras.constraints
    add("constraint_non_neg", constrained(constraints.NonNeg()))
    add("constraint_max_norm", constrained(constraints.MaxNorm(0.5)))
    add("constraint_unit_norm", constrained(constraints.UnitNorm(axis=1)))
    add("constraint_min_max_norm", constrained(constraints.MinMaxNorm(0.1, 0.5)))

    # Activations, losses, metrics -------------------------------------------------------------------------------------

    for name in ["elu", "exponential", "linear", "relu", "selu", "sigmoid", "softmax", "softplus", "softsign", "tanh"]:
        add("activation_" + name, lambda name=name: getattr(tf.keras.activations, name)(x()))

    def activated():
        weights = tf.ones_initializer()
        return [
            tf.layers.dense(x(), 2, activation=tf.keras.activations.relu, kernel_initializer=weights),
            tf.contrib.layers.fully_connected(
                x(), 2, activation_fn=tf.keras.activations.tanh, weights_initializer=weights
            ),
        ]

    add("activation_of_layers", activated)
    names = (
        "binary_crossentropy categorical_crossentropy hinge kullback_leibler_divergence logcosh mae mse msle poisson"
    )
    for name in names.split():

        def with_gradient(name=name):
            inputs = x()
            values = getattr(tf.keras.losses, name)(y(), tf.nn.sigmoid(inputs))
            return [values, tf.gradients(values, inputs)[0]]

        add("loss_" + name, with_gradient)
    add(
        "loss_sparse",
        lambda: tf.keras.losses.sparse_categorical_crossentropy(tf.constant([0, 1, 2]), tf.nn.softmax(x())),
    )
    for name in ["BinaryCrossentropy", "CategoricalCrossentropy", "Huber", "MeanAbsoluteError", "MeanSquaredError"]:
        add("loss_" + name, lambda name=name: getattr(tf.keras.losses, name)()(y(), chances()))
    add("loss_of_logits", lambda: tf.keras.losses.BinaryCrossentropy(from_logits=True)(y(), x()))
    for name in ["categorical_accuracy", "mse", "top_k_categorical_accuracy"]:
        add("metric_" + name, lambda name=name: getattr(tf.keras.metrics, name)(y(), chances()))

    # The backend ------------------------------------------------------------------------------------------------------

    functions = {
        "any": lambda: backend.any(backend.greater(x(), 0.0), axis=0),
        "argmax": lambda: backend.argmax(x()),
        "batch_dot": lambda: backend.batch_dot(tf.reshape(x(), [-1, 1, 4]), tf.ones([3, 4, 2])),
        "batch_flatten": lambda: backend.batch_flatten(tf.reshape(x(), [-1, 2, 2])),
        "bias_add": lambda: backend.bias_add(x(), tf.ones([4])),
        "binary_crossentropy": lambda: backend.binary_crossentropy(y(), chances()),
        "cast": lambda: backend.cast(tf.constant([1, 2]), tf.float32),
        "clip": lambda: backend.clip(x(), 0.0, 0.5),
        "concatenate": lambda: backend.concatenate([x(), y()]),
        "cumsum": lambda: backend.cumsum(x(), axis=1),
        "dot": lambda: backend.dot(tf.reshape(x(), [-1, 2, 2]), tf.ones([2, 3])),
        "expand_dims": lambda: backend.expand_dims(x(), 1),
        "gather": lambda: backend.gather(x(), tf.constant([2, 0])),
        "l2_normalize": lambda: backend.l2_normalize(x(), axis=1),
        "mean": lambda: backend.mean(x(), axis=-1, keepdims=True),
        "mean_of_variable": lambda: backend.mean(tf.get_variable("v", initializer=VALUES)),
        "one_hot": lambda: backend.one_hot(tf.constant([1, 2]), 3),
        "permute_dimensions": lambda: backend.permute_dimensions(x(), (1, 0)),
        "pow": lambda: backend.pow(x(), 2),
        "repeat_elements": lambda: backend.repeat_elements(x(), 2, 0),
        "reshape": lambda: backend.reshape(x(), (-1, 2)),
        "shape": lambda: backend.shape(x()),
        "softmax": lambda: backend.softmax(x()),
        "stack": lambda: backend.stack([x(), y()]),
        "std": lambda: backend.std(x(), axis=0),
        "sum": lambda: backend.sum(x()),
        "switch": lambda: backend.switch(tf.constant(True), x, y),
        "tile": lambda: backend.tile(x(), (1, 2)),
        "var": lambda: backend.var(x()),
        "zeros_like": lambda: backend.zeros_like(x()),
    }
    for name, make in functions.items():
        add("backend_" + name, make)
    found["backend_int_shape"] = lambda tf: list(backend.int_shape(x()))
    found["backend_static_shape"] = lambda tf: backend.l2_normalize(x(), axis=1).shape.as_list()
    return found
