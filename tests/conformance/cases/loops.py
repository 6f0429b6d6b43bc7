"""Loops and branches: what they wait for, and their gradients."""


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def run(tf, fetches, feeds=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feeds)


def case_a_condition_with_control_dependencies(tf):
    v = tf.Variable(0)

    def cond(i):
        with tf.control_dependencies([tf.assign_add(v, 1)]):
            return tf.identity(i < 3)

    i = tf.while_loop(cond, lambda i: i + 1, [0])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [session.run(i), session.run(v)]


def case_a_condition_with_a_dependency_that_only_orders(tf):
    x = tf.constant(2.0)

    def cond(i, y):
        with tf.control_dependencies([y]):
            return tf.less(i, 2)

    return run(tf, tf.while_loop(cond, lambda i, y: (i + 1, y * y), [0, x])[1])


def case_a_body_with_a_dependency_on_a_loop_variable(tf):
    def body(i, y):
        with tf.control_dependencies([i]):
            return i + 1, tf.identity(y) * 2.0

    return run(tf, tf.while_loop(lambda i, y: i < 3, body, [0, tf.constant(1.0)])[1])


def case_gradient_of_a_branch_without_one(tf):
    x = tf.constant(2.0)

    def body(i, y):
        stopped = tf.cond(i < 1, lambda: y * 2.0, lambda: tf.stop_gradient(y) + 1.0)
        return i + 1, stopped

    y = tf.while_loop(lambda i, y: i < 3, body, [0, x])[1]
    grad = tf.gradients(y, x)[0]
    return run(tf, [y, tf.constant(-1.0) if grad is None else grad])


def case_gradient_of_a_branch_of_integers(tf):
    x = tf.constant(2.0)

    def body(i, y):
        step = tf.cond(i < 1, lambda: tf.cast(tf.cast(y, tf.int32), tf.float32), lambda: y * y)
        return i + 1, y + step

    y = tf.while_loop(lambda i, y: i < 3, body, [0, x])[1]
    return run(tf, [y, tf.gradients(y, x)[0]])


def case_gradient_of_a_condition_outside_of_loops(tf):
    x = tf.placeholder(tf.float32, [])
    y = tf.cond(x > 0, lambda: x * x, lambda: tf.constant(3.0))
    grad = tf.gradients(y, x)[0]
    return [run(tf, [y, grad], {x: 2.0}), run(tf, [y, grad], {x: -2.0})]


def case_gradient_of_a_value_that_the_loop_does_not_change(tf):
    x, w = tf.constant(2.0), tf.constant(3.0)
    y = tf.while_loop(lambda i, y, w: i < 3, lambda i, y, w: (i + 1, y * w, w), [0, x, w])[1]
    return run(tf, tf.gradients(y, [x, w]))


def case_gradient_of_a_concat_of_one_shape(tf):
    x = tf.constant([1.0, 2.0])
    y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.concat([y[1:], y[:1] * 2.0], 0)), [0, x])[1]
    return run(tf, [y, tf.gradients(y, x)[0]])


def case_a_loop_without_a_turn(tf):
    x = tf.constant(2.0)
    y = tf.while_loop(lambda i, y: i < 0, lambda i, y: (i + 1, y * y), [0, x])[1]
    return run(tf, [y, tf.gradients(y, x)[0]])


def case_gradient_of_two_results(tf):
    x = tf.constant(2.0)
    a, b = tf.while_loop(lambda a, b: b < 50.0, lambda a, b: (a + b, b * x), [tf.constant(0.0), x])
    return run(tf, [a, b, tf.gradients([a, b], x)[0], tf.gradients(a, x)[0], tf.gradients(b, x)[0]])


def case_gradient_of_a_loop_in_a_loop(tf):
    x = tf.constant(1.5)

    def body(i, y):
        return i + 1, tf.while_loop(lambda j, z: j < i, lambda j, z: (j + 1, z * x), [0, y])[1]

    y = tf.while_loop(lambda i, y: i < 4, body, [0, x])[1]
    return run(tf, [y, tf.gradients(y, x)[0]])
