"""Windows, crossed features, means of losses, traces of JPEG, scales of losses."""

import numpy as np

VOLUMES = np.arange(2 * 4 * 5 * 3 * 2, dtype="float32").reshape(2, 4, 5, 3, 2)
IMAGES = np.arange(1 * 6 * 7 * 2, dtype="float32").reshape(1, 6, 7, 2)


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def tried(tf, calls):
    """Types, static shapes and values of what each call gives, or the class of its error."""
    found = []
    for call in calls:
        try:
            tensors = call()
            tensors = list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                values = session.run(tensors)
            found.append([[t.dtype.name, str(t.shape), values[index]] for index, t in enumerate(tensors)])
        except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
            found.append(type(error).__name__)
    return found


def case_windows_of_volumes(tf):
    x = tf.constant(VOLUMES)
    patches = tf.extract_volume_patches
    calls = [
        lambda: patches(x, [1, 2, 2, 2, 1], [1, 1, 1, 1, 1], "VALID"),
        lambda: patches(x, [1, 2, 3, 1, 1], [1, 2, 2, 1, 1], "SAME"),
        lambda: patches(x, [1, 3, 3, 3, 1], [1, 3, 1, 2, 1], "SAME"),
        lambda: patches(x, [1, 1, 1, 1, 1], [1, 2, 2, 2, 1], padding="VALID"),
        lambda: patches(x, [1, 2, 2, 2, 1], [1, 1, 1, 1, 1], "NONE"),
        lambda: patches(x[0], [1, 2, 2, 2, 1], [1, 1, 1, 1, 1], "VALID"),
        lambda: tf.gradients(patches(x, [1, 2, 2, 2, 1], [1, 1, 1, 1, 1], "VALID") * 2.0, x),
    ]
    return tried(tf, calls)


def case_every_slice(tf):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    many = tf.vectorized_map
    calls = [
        lambda: many(tf.reduce_sum, x),
        lambda: many(lambda row: (row * 2.0, tf.cast(tf.reduce_max(row), tf.int32)), x),
        lambda: many(lambda pair: pair[0] * pair[1], (x, tf.constant([10.0, 100.0]))),
        lambda: tf.gradients(many(lambda row: tf.reduce_prod(row), x), x),
    ]
    return tried(tf, calls)


def case_crossed(tf):
    a = tf.SparseTensor([[0, 0], [1, 0], [1, 1]], ["x", "y", "z"], [2, 2])
    b = tf.constant([["p"], ["q"]])
    n = tf.constant([[1, 2], [3, 4]])

    def parts(sparse):
        return [sparse.indices, sparse.values, sparse.dense_shape]

    calls = [
        lambda: parts(tf.sparse.cross([a, b])),
        lambda: parts(tf.sparse.cross([b, n])),
        lambda: parts(tf.sparse.cross([a, b, n])),
        lambda: parts(tf.sparse.cross_hashed([a, b])),
        lambda: parts(tf.sparse.cross_hashed([a, n], num_buckets=100)),
        lambda: parts(tf.sparse.cross_hashed([a, b], num_buckets=1000, hash_key=77)),
        lambda: parts(tf.sparse.cross((a, b))),
    ]
    found = tried(tf, calls)
    # The static shapes of sparse results are what each knows of them.
    return [[[kind, value] for kind, _, value in each] if isinstance(each, list) else each for each in found]


def case_json(tf):
    numbers, texts = '{"int64List": {"value": ["1", "2"]}}', '{"bytesList": {"value": ["eA=="]}}'
    text = f'{{"features": {{"feature": {{"a": {numbers}, "b": {texts}}}}}}}'
    features = {"a": tf.FixedLenFeature([2], tf.int64), "b": tf.FixedLenFeature([], tf.string)}
    calls = [
        lambda: list(tf.parse_example(tf.decode_json_example([text]), features).values()),
        lambda: tf.parse_single_example(tf.io.decode_json_example(text), features)["a"],
        lambda: tf.decode_json_example(["{nonsense"]),
    ]
    return tried(tf, calls)


def case_labels(tf):
    calls = [
        lambda: tf.nn.ctc_unique_labels(tf.constant([[3, 4, 4, 3], [7, 7, 0, 0]])),
        lambda: tf.nn.ctc_unique_labels([[1, 2, 3]]),
    ]
    # They are numbers of different types there and here: int32 and int64.
    return [[each[2] for each in found] if isinstance(found, list) else found for found in tried(tf, calls)]


def case_means_of_losses(tf):
    mean = tf.nn.compute_average_loss
    losses = tf.constant([1.0, 2.0, 6.0])
    calls = [
        lambda: mean(losses),
        lambda: mean(losses, global_batch_size=6),
        lambda: mean(losses, sample_weight=[1.0, 0.0, 2.0]),
        lambda: mean(losses, sample_weight=2.0, global_batch_size=2),
        lambda: tf.nn.scale_regularization_loss(tf.constant([1.0, 2.0])),
        lambda: tf.nn.scale_regularization_loss(tf.constant(3.0)),
    ]
    return tried(tf, calls)


def case_space_to_batch(tf):
    x = tf.constant(IMAGES)
    window = tf.constant(np.arange(3 * 2 * 2 * 1, dtype="float32").reshape(3, 2, 2, 1))
    sizes = []

    def op(value, count, padding):
        sizes.append(count)
        return tf.nn.conv2d(value, window, strides=[1, 1, 1, 1], padding=padding)

    apart = tf.nn.with_space_to_batch
    calls = [
        lambda: apart(x, [2, 2], "VALID", op),
        lambda: apart(x, [2, 3], "SAME", op, filter_shape=[3, 2]),
        lambda: apart(x, [1, 1], "SAME", op),
        lambda: apart(x, [1, 2], "VALID", op, spatial_dims=[1, 2]),
        lambda: apart(x, [2, 2], "SAME", op),
        lambda: apart(x, [0, 2], "VALID", op),
        lambda: apart(x, [[2, 2]], "VALID", op),
        lambda: apart(x, [2, 2], "OTHER", op),
        lambda: apart(x, [2], "VALID", lambda v, n, p: tf.nn.avg_pool(v, [1, 2, 1, 1], [1, 1, 1, 1], p)),
        lambda: apart(x, [2, 2], "VALID", op, spatial_dims=[0, 1]),
    ]
    return [tried(tf, calls), sizes]


def case_glimpses(tf):
    x = tf.constant(IMAGES)
    glimpse = tf.image.extract_glimpse
    calls = [
        lambda: glimpse(x, [2, 3], [[0.0, 0.0]]),
        lambda: glimpse(x, [2, 2], [[0.2, -0.4]]),
        lambda: glimpse(x, [3, 2], [[3.0, 3.0]], centered=False, normalized=False),
        lambda: glimpse(x, [2, 2], [[0.5, 0.5]], centered=False),
        lambda: glimpse(x, [2, 2], [[1.0, -1.0]], normalized=False),
        lambda: glimpse(x, [2, 2], [[0.0, 0.0], [0.0, 0.0]]),
    ]
    return tried(tf, calls)


def case_pools_of_fractions(tf):
    x = tf.constant(IMAGES)
    pools = [tf.nn.fractional_max_pool, tf.nn.fractional_avg_pool]
    whole = [[1.0, 2.0, 1.0, 1.0], [1.0, 3.0, 7.0, 1.0]]
    calls = [lambda pool=pool, ratio=ratio: pool(x, ratio) for pool in pools for ratio in whole]
    calls += [lambda: pools[0](x, [1.0, 2.0, 1.0, 1.0], overlapping=True)]
    # TensorFlow says one element less of where windows begin than there are.
    found = [[part[::2] for part in each] for each in tried(tf, calls)]
    random = []
    for pool in pools:
        for settings in ({}, {"pseudo_random": True}):
            values, rows, columns = pool(x, [1.0, 1.4, 1.7, 1.0], deterministic=True, seed=3, seed2=5, **settings)
            with tf.Session() as session:
                v, r, c = session.run([values, rows, columns])
            best = np.max if pool is pools[0] else np.mean
            right = all(
                np.allclose(v[0, i, j, k], best(IMAGES[0, r[i] : r[i + 1], c[j] : c[j + 1], k]))
                for i in range(len(r) - 1)
                for j in range(len(c) - 1)
                for k in range(2)
            )
            widths = sorted(set(np.diff(r).tolist())), sorted(set(np.diff(c).tolist()))
            inside = all(1 <= width <= 2 for part in widths for width in part)
            random.append([v.shape, int(r[0]), int(r[-1]), int(c[0]), int(c[-1]), right, inside])
    return [found, random]


def case_traces_of_jpeg(tf):
    image = np.zeros((8, 8, 3), "uint8")
    image[2:6, 2:6] = 200
    small = tf.constant(image)
    with tf.Session() as session:
        good, bad, floats, drawn = session.run(
            [
                tf.image.adjust_jpeg_quality(small, 95),
                tf.image.adjust_jpeg_quality(small, 5),
                tf.image.adjust_jpeg_quality(tf.image.convert_image_dtype(small, tf.float32), 95),
                tf.image.random_jpeg_quality(small, 10, 20),
            ]
        )
    errors = []
    for low, high in ((20, 10), (-1, 10), (50, 101)):
        try:
            tf.image.random_jpeg_quality(small, low, high)
            errors.append("none")
        except ValueError:
            errors.append("ValueError")
    apart = [float(np.abs(found.astype("float64") - image).mean()) for found in (good, bad)]
    return [str(good.dtype), good.shape, str(floats.dtype), drawn.shape, apart[0] < 12, apart[0] < apart[1], errors]


def case_scales_of_losses(tf):
    e = tf.train.experimental
    found = []
    with tf.Session() as session:
        fixed, dynamic = e.FixedLossScale(8), e.DynamicLossScale(4.0, 2, 2.0)
        session.run(tf.global_variables_initializer())
        found.append([session.run(fixed()), fixed.get_config(), session.run(dynamic()), dynamic.get_config()])
        again = e.DynamicLossScale.from_config(dynamic.get_config())
        found.append([again.initial_loss_scale, again.increment_period, again.multiplier])
        for value in (1.0, 1.0, 1.0, float("nan"), float("inf"), 1.0):
            update, finite = dynamic.update([tf.constant([value]), tf.constant(2.0)])
            session.run(update)
            found.append([bool(session.run(finite)), session.run(dynamic())])
        v = tf.Variable([1.0, 2.0])
        x = tf.placeholder(tf.float32, [])
        step = tf.train.get_or_create_global_step()
        inner = tf.train.MomentumOptimizer(0.1, 0.5)
        optimizer = e.MixedPrecisionLossScaleOptimizer(inner, e.DynamicLossScale(16.0, 2, 2.0))
        pairs = optimizer.compute_gradients(tf.reduce_sum(v * v) * x, [v])
        train = optimizer.apply_gradients(pairs, step)
        session.run(tf.global_variables_initializer())
        for value in (1.0, float("nan"), 0.5):
            gradient = session.run(pairs[0][0], {x: value})
            session.run(train, {x: value})
            found.append([gradient, session.run(v), int(session.run(step))])
        other = e.MixedPrecisionLossScaleOptimizer(tf.train.GradientDescentOptimizer(0.5), 4)
        train = other.minimize(tf.reduce_sum(v))
        session.run(v.initializer)
        session.run(train)
        found.append(session.run(v))
    for make in (lambda: e.FixedLossScale(0.5), lambda: e.FixedLossScale("1"), lambda: e.LossScale()):
        try:
            make()
            found.append("none")
        except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
            found.append(type(error).__name__)
    return found
