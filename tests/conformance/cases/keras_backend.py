"""The functions of ``tf.keras.backend``, and what Keras 3 has no longer. Values of seeds are not compared."""

import os
import tempfile

import numpy as np

X = np.array([[-1.5, 0.25, 2.0], [0.5, -0.75, 4.0]], "float32")
Y = np.array([[1.0, 0.25, -2.0], [3.0, 0.5, 4.0]], "float32")
P = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]], "float32")
IMAGES = (np.arange(2 * 4 * 5 * 2) % 7).reshape(2, 4, 5, 2).astype("float32")
UNARY = """
    abs cos exp round sigmoid sign sin softplus softsign square tanh transpose sqrt elu hard_sigmoid relu softmax
    l2_normalize flatten batch_flatten expand_dims cumsum cumprod argmax argmin"""
LOSSES = """
    KLD MAE MAPE MSE MSLE kld kullback_leibler_divergence mae mape mse msle cosine cosine_proximity"""
BINARY = "equal not_equal greater greater_equal less less_equal maximum minimum"
REDUCTIONS = "max mean min prod std sum var"


def cases(tf):
    found = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    for name in UNARY.split():
        found["unary " + name] = lambda tf, name=name: each(
            tf, [getattr(tf.keras.backend, name)(tf.keras.backend.constant(X))]
        )
    for name in BINARY.split():
        found["binary " + name] = lambda tf, name=name: each(
            tf, [getattr(tf.keras.backend, name)(tf.keras.backend.constant(X), tf.keras.backend.constant(Y))]
        )
    for name in REDUCTIONS.split():
        found["reduction " + name] = lambda tf, name=name: each(
            tf,
            [
                getattr(tf.keras.backend, name)(tf.keras.backend.constant(X), **kwargs)
                for kwargs in ({}, {"axis": 1}, {"axis": -1, "keepdims": True}, {"axis": [0, 1]})
            ],
        )
    return found


def each(tf, values):
    return [[list(np.shape(value)), np.asarray(value)] for value in (tf.keras.backend.eval(v) for v in values)]


def c(tf, value, **kwargs):
    return tf.keras.backend.constant(value, **kwargs)


def case_elementwise_arguments(tf):
    K = tf.keras.backend
    x = c(tf, X)
    return each(
        tf,
        [
            K.log(c(tf, P)),
            K.pow(x, 2.0),
            K.clip(x, -1.0, 1.0),
            K.clip(x, 2.0, 1.0),
            K.elu(x, 0.5),
            K.relu(x, alpha=0.1, max_value=1.5, threshold=0.3),
            K.softmax(x, axis=0),
            K.l2_normalize(x, axis=1),
            K.all(K.greater(x, -1.0), axis=0),
            K.any(K.greater(x, 1.0), axis=1, keepdims=True),
            K.cumsum(x, 1),
            K.cumprod(x, axis=1),
            K.argmax(x, 0),
            K.argmin(x, axis=0),
            K.mean(K.greater(x, 0.0)),
            K.hard_sigmoid(x * 3),
        ],
    )


def case_shapes(tf):
    K = tf.keras.backend
    x, images = c(tf, X), c(tf, IMAGES)
    return each(
        tf,
        [
            K.reshape(x, (3, 2)),
            K.batch_flatten(images),
            K.expand_dims(x, 1),
            K.squeeze(K.expand_dims(x, 0), 0),
            K.permute_dimensions(images, (0, 3, 1, 2)),
            K.concatenate([x, x], 0),
            K.concatenate([x, x]),
            K.stack([x, x], 1),
            K.tile(x, (2, 1)),
            K.repeat(x, 3),
            K.repeat_elements(x, 2, 1),
            K.reverse(x, 1),
            K.reverse(x, [0, 1]),
            K.arange(4),
            K.arange(2, 8, 3),
            K.arange(-2),
            K.gather(x, [1, 0, 1]),
            K.one_hot(c(tf, [0, 2], dtype="int32"), 3),
            K.shape(x),
            K.temporal_padding(c(tf, IMAGES[0])),
            K.spatial_2d_padding(images, ((1, 0), (0, 2))),
            K.spatial_3d_padding(c(tf, IMAGES[None])),
            K.cast(x, "int32"),
            K.zeros_like(x),
            K.ones_like(x),
        ],
    )


def case_products(tf):
    K = tf.keras.backend
    x, y, images = c(tf, X), c(tf, Y), c(tf, IMAGES[:, :, :, 0])
    other = c(tf, IMAGES[:, :, :, 1])
    return each(
        tf,
        [
            K.dot(x, K.transpose(y)),
            K.dot(images, c(tf, np.ones((5, 2)))),
            K.batch_dot(x, y, axes=1),
            K.batch_dot(images, other, axes=(2, 2)),
            K.batch_dot(images, K.permute_dimensions(other, (0, 2, 1))),
            K.batch_dot(images, other, axes=[1, 1]),
        ],
    )


def case_wrong_products(tf):
    K = tf.keras.backend
    return K.batch_dot(c(tf, X), c(tf, IMAGES[:, :, :, 0]), axes=1)


def case_variables(tf):
    K = tf.keras.backend
    v = K.variable(X)
    found = [K.eval(v), K.get_value(v), K.int_shape(v), K.ndim(v), K.count_params(v), K.dtype(v), K.is_sparse(v)]
    K.set_value(v, Y)
    found.append(K.get_value(v))
    w = K.zeros((2,))
    K.batch_set_value([(v, X), (w, np.array([3.0, 4.0], "float32"))])
    found.append([value.tolist() for value in K.batch_get_value([v, w])])
    found += [K.eval(K.update(w, [1.0, 2.0])), K.eval(K.update_add(w, [1.0, 1.0])), K.eval(K.update_sub(w, [0.5, 0.5]))]
    average = K.moving_average_update(w, np.array([3.0, 4.0], "float32"), 0.75)
    if tf.global_variables():  # TensorFlow's variables of the average have no values yet
        K.get_session().run([v.initializer for v in tf.global_variables()[-2:]])
    K.eval(average)
    found += [K.get_value(w), K.eval(K.ones((2, 1))), K.eval(K.eye(2)), K.eval(c(tf, 2, shape=(2, 2)))]
    return [*found, K.eval(K.variable([1, 2], dtype="int32")), K.cast_to_floatx(np.array([1, 2])).dtype.name]


def case_random_shapes(tf):
    K = tf.keras.backend
    found = [
        K.random_uniform((50, 4), 2.0, 3.0),
        K.random_normal((50, 4), 2.0, 0.001),
        K.truncated_normal((50, 4), 2.0, 0.001),
        K.random_binomial((50, 4), 0.0),
        K.random_uniform_variable((50, 4), 2.0, 3.0),
        K.random_normal_variable((50, 4), 2.0, 0.001),
        K.dropout(K.ones((50, 4)), 0.0),
    ]
    return [[list(v.shape), bool((np.abs(v - v.round()) <= 0.5).all())] for v in map(K.eval, found)]


def case_functions(tf):
    K = tf.keras.backend
    a, b = K.placeholder((2, 3)), K.placeholder(ndim=2)
    f = K.function([a, b], [K.sum(a * b, axis=1), a - b])
    loss = K.sum(K.square(a) * 3.0)
    g = K.function([a], K.gradients(loss, [a]))
    return [list(f([X, Y])[0]), f([X, Y])[1], g([X])[0], K.int_shape(a), K.int_shape(b), K.ndim(b)]


def case_updates_of_functions(tf):
    K = tf.keras.backend
    a, v = K.placeholder((2,)), K.variable([1.0, 2.0])
    f = K.function([a], [a * 2.0], updates=[(v, a * 3.0)])
    return [f([np.array([1.0, 5.0], "float32")])[0], K.get_value(v)]


def case_choices(tf):
    K = tf.keras.backend
    x, y = c(tf, X), c(tf, Y)
    return each(
        tf,
        [
            K.switch(K.greater(x, 0.0), x, y),
            K.switch(c(tf, True, dtype="bool"), lambda: x, lambda: y),
            K.switch(c(tf, [True, False], dtype="bool"), x, y),
            K.in_train_phase(x, y, training=1),
            K.in_train_phase(x, y, training=0),
            K.in_test_phase(lambda: x, lambda: y, training=0),
            K.in_top_k(c(tf, P), c(tf, [1, 0], dtype="int32"), 1),
            K.map_fn(lambda r: r * 2.0, x),
            K.foldl(lambda a, r: a - r, x),
            K.foldr(lambda a, r: a - r, x, initializer=c(tf, [1.0, 1.0, 1.0])),
        ],
    )


def case_convolutions(tf):
    K = tf.keras.backend
    images = c(tf, IMAGES)
    k2 = c(tf, (np.arange(3 * 2 * 2 * 3) % 5).reshape(3, 2, 2, 3) - 1.0)
    k1 = c(tf, (np.arange(2 * 2 * 3) % 5).reshape(2, 2, 3) - 1.0)
    steps = c(tf, IMAGES[0])
    return each(
        tf,
        [
            K.conv2d(images, k2),
            K.conv2d(images, k2, (2, 1), "same"),
            K.conv2d(images, k2, dilation_rate=(1, 2)),
            K.conv1d(steps, k1),
            K.conv1d(steps, k1, 2, "same"),
            K.conv1d(steps, k1, padding="causal"),
            K.conv1d(steps, k1, padding="causal", dilation_rate=2),
            K.conv3d(c(tf, IMAGES[None]), c(tf, np.ones((2, 2, 2, 2, 1)))),
            K.conv2d_transpose(images, c(tf, np.ones((3, 2, 3, 2))), (2, 8, 10, 3), (2, 2), "same"),
            K.conv2d_transpose(images, c(tf, np.ones((3, 2, 3, 2))), (2, 9, 10, 3), (2, 2), "valid"),
            K.separable_conv2d(images, c(tf, np.ones((2, 2, 2, 1))), c(tf, np.ones((1, 1, 2, 3)))),
            K.pool2d(images, (2, 2)),
            K.pool2d(images, (2, 3), (2, 2), "same", pool_mode="avg"),
            K.pool3d(c(tf, IMAGES[None]), (2, 2, 2), pool_mode="avg"),
            K.local_conv1d(steps, c(tf, (np.arange(4 * 4 * 2) % 3).reshape(4, 4, 2)), (2,), (1,)),
            K.local_conv2d(images, c(tf, (np.arange(6 * 8 * 2) % 3).reshape(6, 8, 2)), (2, 2), (1, 2), (3, 2)),
            K.bias_add(images, c(tf, [1.0, 2.0])),
            K.bias_add(images, c(tf, np.ones((4, 5, 2)))),
            K.resize_images(images, 2, 1, "channels_last"),
            K.resize_volumes(c(tf, IMAGES[None]), 1, 2, 1, "channels_last"),
        ],
    )


def case_normalisation(tf):
    K = tf.keras.backend
    x = c(tf, IMAGES)
    mean, var, beta, gamma = (c(tf, v) for v in ([1.0, 2.0], [4.0, 9.0], [0.5, 0.0], [2.0, 1.0]))
    normal = K.normalize_batch_in_training(x, gamma, beta, [0, 1, 2])
    return each(tf, [K.batch_normalization(x, mean, var, beta, gamma), *normal])


def case_losses(tf):
    K = tf.keras.backend
    t = c(tf, [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    classes = c(tf, [1, 2], dtype="int64")
    return each(
        tf,
        [
            K.binary_crossentropy(t, c(tf, P)),
            K.binary_crossentropy(t, c(tf, X), from_logits=True),
            K.categorical_crossentropy(t, c(tf, P)),
            K.categorical_crossentropy(t, c(tf, X), from_logits=True),
            K.sparse_categorical_crossentropy(classes, c(tf, P)),
            K.sparse_categorical_crossentropy(classes, c(tf, X), from_logits=True),
        ]
        + [getattr(tf.keras.losses, name)(c(tf, P), c(tf, np.abs(X))) for name in ["logcosh", *LOSSES.split()]]
        + [getattr(tf.keras.metrics, name)(c(tf, P), c(tf, np.abs(X))) for name in LOSSES.split()],
    )


def case_ctc(tf):
    K = tf.keras.backend
    steps = (np.arange(2 * 5 * 4) * 7 % 11 + 1).reshape(2, 5, 4).astype("float32")
    steps /= steps.sum(-1, keepdims=True)
    labels = np.array([[1, 2], [0, 0]])
    cost = K.ctc_batch_cost(c(tf, labels), c(tf, steps), c(tf, [[5], [4]]), c(tf, [[2], [1]]))
    paths, score = K.ctc_decode(c(tf, steps), c(tf, [5, 4], dtype="int32"))
    return each(tf, [cost, paths[0], score])


def case_rnn(tf):
    K = tf.keras.backend

    def step(x, states):
        return x + states[0], [x + states[0]]

    inputs, zero = c(tf, IMAGES[0]), c(tf, np.zeros((4, 2)))
    mask = c(tf, (np.arange(4 * 5) % 3 > 0).reshape(4, 5), dtype="bool")
    found = []
    for kwargs in ({}, {"go_backwards": True}, {"mask": mask}, {"mask": mask, "zero_output_for_mask": True}):
        last, outputs, states = K.rnn(step, inputs, [zero], **kwargs)
        found += [last, outputs, states[0]]
    return each(tf, found)


def case_layers(tf):
    K = tf.keras.backend
    ones = {"kernel_initializer": "ones"}
    model = tf.keras.Sequential([tf.keras.layers.LocallyConnected2D(2, (2, 2), (1, 2), input_shape=(4, 5, 2), **ones)])
    steps = tf.keras.Sequential(
        [
            tf.keras.layers.LocallyConnected1D(
                2, 3, activation="relu", input_shape=(5, 2), bias_initializer="ones", **ones
            )
        ]
    )
    threshold = tf.keras.Sequential([tf.keras.layers.ThresholdedReLU(0.5, input_shape=(3,))])
    return [
        model.predict(IMAGES),
        [list(w.shape) for w in model.get_weights()],
        steps.predict(IMAGES[0]),
        threshold.predict(X),
        K.eval(tf.keras.constraints.RadialConstraint()(c(tf, IMAGES[:1, :3, :3].reshape(3, 3, 2, 1)))),
        list(K.eval(tf.keras.initializers.normal(1.0, 0.0)((2, 2))).shape),
        list(K.eval(tf.keras.initializers.uniform()((2, 2))).shape),
    ]


def case_peephole(tf):
    cell = tf.keras.experimental.PeepholeLSTMCell(
        2, kernel_initializer="ones", recurrent_initializer="ones", recurrent_activation="sigmoid"
    )
    model = tf.keras.Sequential([tf.keras.layers.RNN(cell, input_shape=(5, 2))])
    return [model.predict(IMAGES[0] / 10.0), sorted(list(w.shape) for w in model.get_weights())]


def case_schedules(tf):
    experimental, K = tf.keras.experimental, tf.keras.backend
    rates = [
        experimental.CosineDecay(0.1, 10, 0.2),
        experimental.CosineDecayRestarts(0.1, 4, 2.0, 0.5),
        experimental.LinearCosineDecay(0.1, 10, 0.5, 0.1, 0.01),
        experimental.NoisyLinearCosineDecay(0.1, 10, 0.0),
    ]
    return [[float(K.eval(rate(step))) for step in (0, 3, 7, 12)] for rate in rates]


def case_texts(tf):
    text, sequence = tf.keras.preprocessing.text, tf.keras.preprocessing.sequence
    words = text.Tokenizer(num_words=4)
    words.fit_on_texts(["a b b c", "b, C! d"])
    series = sequence.TimeseriesGenerator(np.arange(10), np.arange(10), length=3, batch_size=4)
    return [
        words.texts_to_sequences(["c b z a"]),
        words.texts_to_matrix(["b b a"]),
        words.word_index,
        text.text_to_word_sequence("Hello, World! x"),
        len(text.one_hot("a b c", 5)),
        text.hashing_trick("a b", 9, "md5"),
        sequence.make_sampling_table(5),
        len(series),
        [part.tolist() for part in series[1]],
        len(sequence.skipgrams([1, 2, 3, 4], 5, negative_samples=0.0)[0]),
    ]


def case_metrics(tf):
    metrics = tf.keras.metrics
    return [
        metrics.MeanTensor().get_config()["name"],
        metrics.MeanRelativeError(normalizer=[1.0, 3.0]).get_config()["name"],
    ]


def case_base_logger(tf):
    logger = tf.keras.callbacks.BaseLogger(stateful_metrics=["auc"])
    logger.params = {"metrics": ["loss", "auc"]}
    logger.on_epoch_begin(0)
    logger.on_batch_end(0, {"size": 2, "loss": 1.0, "auc": 0.25})
    logger.on_batch_end(1, {"size": 6, "loss": 2.0, "auc": 0.5})
    logs = {}
    logger.on_epoch_end(0, logs)
    return sorted(logs.items())


def case_hdf5(tf):
    import h5py

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.h5")
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=np.arange(12.0).reshape(6, 2))
        rows = tf.keras.utils.HDF5Matrix(path, "x", 1, 5, normalizer=lambda v: v * 2)
        found = [len(rows), rows[0], rows[1:3], list(rows.shape), rows.ndim, rows.size, str(rows.dtype)]
        try:
            rows[4]
        except IndexError as error:
            found.append(type(error).__name__)
        return found


def case_models(tf):
    config = {
        "class_name": "Sequential",
        "config": tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(3,))]).get_config(),
    }
    return type(tf.keras.models.model_from_config(config)).__name__


def case_models_from_lists(tf):
    return tf.keras.models.model_from_config([])
