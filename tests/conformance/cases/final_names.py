"""Names that came last: layers on quantised integers, and what else few programs use."""


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def tried(call, *phrases):
    """What ``call`` gives, or the class of its error and which of ``phrases`` it says."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
        return [type(error).__name__] + [phrase in str(error) for phrase in phrases]


def _run(tf, *fetches):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(list(fetches))


def _integers(tf, values, low, high, dtype=None):
    return tf.quantize(values, low, high, dtype or tf.quint8).output


def case_quantised_pools(tf):
    found = []
    x = _integers(tf, [[[[-1.0], [0.5], [1.25]], [[2.0], [3.0], [-0.25]]]], -1.0, 3.0)
    for pool in (tf.nn.quantized_avg_pool, tf.nn.quantized_max_pool):
        for size, strides, padding in (
            ([1, 2, 2, 1], [1, 1, 1, 1], "SAME"),
            ([1, 2, 2, 1], [1, 1, 1, 1], "VALID"),
            ([1, 1, 2, 1], [1, 1, 2, 1], "SAME"),
            ([1, 2, 3, 1], [1, 2, 2, 1], "SAME"),
        ):
            pooled = pool(x, -1.0, 3.0, size, strides, padding)
            found.append([list(pooled._fields), pooled[0].dtype.name, pooled[0].shape.as_list(), _run(tf, *pooled)])
        found.append(tried(lambda pool=pool: pool(x, -1.0, 3.0, [1, 3, 2, 1], [1, 1, 1, 1], "VALID"), "Negative dimension"))
        found.append(tried(lambda pool=pool: pool(x, -1.0, 3.0, [1, 3, 2, 1], [1, 1, 1, 1], "NONE")))
        with tf.Graph().as_default():
            signed = _integers(tf, [[[[-1.0]]]], -1.0, 3.0, tf.qint8)
            made = pool(signed, -1.0, 3.0, [1] * 4, [1] * 4, "SAME")
            found.append(tried(lambda made=made: _run(tf, *made), "No OpKernel was registered to support Op"))
    return found


def case_quantised_convolutions(tf):
    x = _integers(tf, [[[[-1.0], [0.5]], [[2.0], [3.0]]]], -1.0, 3.0)
    one = _integers(tf, [[[[1.0, -1.0]]]], -1.0, 1.0)
    four = _integers(tf, [[[[1.0]], [[-1.0]]], [[[1.0]], [[0.3]]]], -1.0, 1.0)
    found = []
    for filters, strides, padding in (
        (one, [1, 1, 1, 1], "VALID"),
        (four, [1, 1, 1, 1], "SAME"),
        (four, [1, 2, 2, 1], "SAME"),
        (four, [1, 1, 1, 1], "VALID"),
    ):
        made = tf.nn.quantized_conv2d(x, filters, -1.0, 3.0, -1.0, 1.0, strides, padding)
        found.append([list(made._fields), made.output.dtype.name, made.output.shape.as_list(), _run(tf, *made)])
    made = tf.nn.quantized_conv2d(x, one, -1.0, 3.0, 0.5, 1.0, [1] * 4, "SAME")
    found.append(_run(tf, *made))
    made = tf.nn.quantized_relu_x(x, 2.0, -1.0, 3.0)
    found.append([list(made._fields), made.activations.dtype.name, made.activations.shape.as_list()])
    return found
