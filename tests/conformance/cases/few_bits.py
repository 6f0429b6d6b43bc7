"""Numbers as integers of few bits, scripts of characters, shapes of numbers, losses scaled by a switch."""


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def tried(call, *phrases):
    """What ``call`` gives, or the class of its error and which of ``phrases`` it says."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
        return [type(error).__name__] + [phrase in str(error) for phrase in phrases]


X = [-1.0, -0.5, 0.0, 0.3, 0.5, 1.0, 2.0]


def case_quantised(tf):
    quantize, ranges = tf.quantization.quantize, [(-1.0, 1.0), (0.0, 6.0), (-0.3, 2.5), (0.0, 0.0), (-3.0, -1.0)]

    def run(low, high, dtype, mode, **more):
        with tf.Session() as session:
            return session.run(quantize(X, low, high, dtype, mode=mode, **more))

    def each(dtype, mode):
        return [[str(low), str(high), mode, run(low, high, dtype, mode)] for low, high in ranges]

    found = []
    for dtype in (tf.quint8, tf.qint8):
        for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
            found += each(dtype, mode)
    found.append(run(0.0, 6.0, tf.qint8, "SCALED", round_mode="HALF_TO_EVEN"))
    found.append(tried(lambda: run(0.0, 6.0, tf.quint8, "MIN_FIRST", round_mode="HALF_TO_EVEN"), "only supported for"))
    found.append(tried(lambda: run(1.0, 0.0, tf.quint8, "MIN_FIRST"), "input_max_range must be larger"))
    found.append(tried(lambda: run(1.0, 0.0, tf.float32, "MIN_FIRST"), "not in list of allowed values"))
    found.append(tried(lambda: run(1.0, 0.0, tf.quint8, "NONSENSE")))
    with tf.Session() as session:
        for given in (tf.quantize(X, -1.0, 1.0, tf.quint8), tf.quantize_v2(X, -1.0, 1.0, tf.quint8, "SCALED")):
            found.append([given.output.dtype.name, str(given.output.shape), session.run(given)])
    return found


def case_dequantised(tf):
    found = []
    with tf.Session() as session:
        for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
            for dtype in (tf.quint8, tf.qint8):
                given = tf.quantization.quantize(X, -1.0, 1.0, dtype, mode=mode)
                found.append(session.run(tf.dequantize(given.output, given.output_min, given.output_max, mode)))
                found.append(session.run(tf.quantization.dequantize(given.output, -1.5, 4.0, mode)))
    return found


def case_there_and_back(tf):
    both, x = tf.quantization.quantize_and_dequantize, tf.constant(X)
    with tf.Session() as session:
        return session.run(
            [
                both(X, -1.0, 1.0),
                both(X, -1.0, 1.0, range_given=True),
                both(X, 0.0, 1.0, signed_input=False, range_given=True),
                both(X, -1.0, 1.0, num_bits=4, narrow_range=True),
                both(X, -1.0, 1.0, num_bits=3, round_mode="HALF_UP"),
                both([0.0, 0.0], 0.0, 0.0),
                tf.gradients(both(x, -1.0, 1.0, range_given=True), x)[0],
            ]
        )


def case_quantised_side_by_side(tf):
    one = tf.quantization.quantize([[1.0, 2.0]], 0.0, 2.0, tf.quint8)
    two = tf.quantization.quantize([[3.0, 4.0]], -1.0, 4.0, tf.quint8)
    mins, maxes = [one.output_min, two.output_min], [one.output_max, two.output_max]
    with tf.Session() as session:
        found = session.run(tf.quantization.quantized_concat(0, [one.output, two.output], mins, maxes))
        more = session.run(tf.quantized_concat(1, [one.output, one.output], [0.0, 0.0], [2.0, 2.0]))
        return [found, more, list(found._fields)]


def case_scripts(tf):
    points = [97, 0x3B1, 0x5D0, 0x4E00, 0x1F600, 0xAC00, 0x0E01, 0x10FFFF, -1, 0x110000, 0, 64, 65, 0xFFFF, 0x2C2F]
    with tf.Session() as session:
        found = session.run(tf.strings.unicode_script(points))
        return [found, session.run(tf.strings.unicode_script([[97], [48]])), found.dtype.name]


def case_shapes_of_numbers(tf):
    tf.enable_v2_tensorshape()
    try:
        shape = tf.placeholder(tf.float32, [1, None]).shape
        found = [shape[0], shape[1], list(shape), repr(shape), str(shape), repr(shape[:1]), shape.as_list()]
    finally:
        tf.disable_v2_tensorshape()
    tf.enable_tensor_equality()
    try:
        x, y = tf.constant(1.0), tf.constant(1.0)
        found += [x == y, x == x, x != y, len({x, y})]
    finally:
        tf.disable_tensor_equality()
    return [*found, str(list(shape)), tf.layers.dense(tf.ones([2, 3]), 4).shape.as_list()]


def case_losses_scaled_by_a_switch(tf):
    enable = tf.train.experimental.enable_mixed_precision_graph_rewrite
    try:
        optimizer = enable(tf.train.GradientDescentOptimizer(0.1))
        v = tf.Variable(2.0)
        train = optimizer.minimize(v * v)
        fixed = enable(tf.train.MomentumOptimizer(0.1, 0.9), 4.0).minimize(v * v)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            found = []
            for op in (train, fixed):
                session.run(op)
                found.append(session.run(v))
        return [
            found,
            type(optimizer).__name__,
            tried(lambda: enable(optimizer), '"opt" must not already be an instance'),
            tried(lambda: enable(3), '"opt" must be an instance of a tf.train.Optimizer'),
        ]
    finally:
        tf.train.experimental.disable_mixed_precision_graph_rewrite()
