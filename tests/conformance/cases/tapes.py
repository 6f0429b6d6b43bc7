"""Gradient tapes in graphs."""


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def tried(call, *phrases):
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
        return [type(error).__name__] + [phrase in str(error) for phrase in phrases]


def _run(tf, fetches):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches)


def _variable(tf, name="v"):
    return tf.get_variable(name, initializer=[3.0, 4.0], use_resource=True)


def case_what_is_watched(tf):
    x, v = tf.constant([1.0, 2.0]), _variable(tf)
    w = tf.get_variable("w", initializer=[1.0, 2.0], use_resource=True, trainable=False)
    with tf.GradientTape(persistent=True) as tape:
        before = x * x
        tape.watch(x)
        after = x * x * v
        with tape.stop_recording():
            paused = x * 3.0
        half = paused * x
        fixed = w * 2.0
    late = x * v
    names = [variable.name for variable in tape.watched_variables()]
    found = [
        tape.gradient(after, x),
        tape.gradient(after, [x, v]),
        tape.gradient(after, {"a": x, "b": (v,)}),
        tape.gradient(half, x),
        tape.gradient([after, half], x),
        tape.gradient(after, x, output_gradients=tf.constant([2.0, 3.0])),
        tape.gradient(half, v, unconnected_gradients="zero"),
    ]
    none = [tape.gradient(before, x), tape.gradient(paused, x), tape.gradient(fixed, w), tape.gradient(late, v)]
    return [names, _run(tf, found), none, tried(lambda: tape.gradient(after, x, unconnected_gradients="nonsense"))]


def case_variables_that_are_not_watched(tf):
    v = _variable(tf)
    with tf.GradientTape(watch_accessed_variables=False, persistent=True) as tape:
        y = v * v
        tape.watch(v)
        z = v * v
    return [tape.gradient(y, v), _run(tf, tape.gradient(z, v)), [each.name for each in tape.watched_variables()]]


def case_once(tf):
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    first = _run(tf, tape.gradient(y, x))
    twice = tf.GradientTape()

    def again():
        with twice, twice:
            pass

    return [
        first,
        tried(lambda: tape.gradient(y, x), "can only be called once on non-persistent tapes"),
        tried(again, "Tape is already recording."),
    ]


def case_derivatives_of_derivatives(tf):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x * x * x
        slope = inner.gradient(y, x)
    return _run(tf, outer.gradient(slope, x))


def case_jacobians(tf):
    x, v = tf.constant([[1.0, 2.0], [3.0, 4.0]]), _variable(tf)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.matmul(x, tf.constant([[1.0, 2.0, 0.5], [0.0, 1.0, -1.0]])) ** 2
        z = x * v
    return _run(tf, [tape.batch_jacobian(y, x), tape.jacobian(z, v), tape.jacobian(z, [x, v]), tape.jacobian(y, x)])


def case_reset(tf):
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        tape.reset()
        tape.watch(x)
        z = y * x
    return _run(tf, tape.gradient(z, x))


def case_training(tf):
    v = _variable(tf)
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((v - [1.0, 1.0]) ** 2)
    (gradient,) = tape.gradient(loss, [v])
    step = optimizer.apply_gradients([(gradient, v)])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [session.run([loss, step])[0] for _ in range(3)]
