"""Values of gradients, and which errors they raise."""


def c(tf, value):
    return tf.constant(value, dtype=tf.float32)


EXPRESSIONS = {
    "product": "g(x * y, [x, y])",
    "sum of several": "g([x * x, x * y, y], [x, y])",
    "with respect to itself": "g(x, x)",
    "twice": "g([x, x], [x, x])",
    "of nothing": "g([], [x])",
    "with respect to nothing": "g(x, [])",
    "second derivative": "g(g(tf.exp(x * x / 9.0), x)[0], x)",
    "stop at both": "g(x + 2 * x, [x], stop_gradients=[x])",
    "stop_gradient": "g(tf.stop_gradient(x * x) * x, x)",
    "broadcast": "g(v + y * x, [v, x, y])",
    "grad_ys": "g(v * v, v, grad_ys=c([10.0, 100.0]))",
    "grad_ys as a list": "g(v * v, v, grad_ys=[[10.0, 100.0]])",
    "grad_ys in part": "g([v * v, v * v * v], v, grad_ys=[c([10.0, 100.0]), None])",
    "grad_ys of another shape": "g(v * v, v, grad_ys=c([1.0, 2.0, 3.0]))",
    "too many grad_ys": "g(v * v, v, grad_ys=[c([1.0, 2.0]), None])",
    "unconnected": "g(x * x, [y, v])",
    "unconnected zeros": "g(x * x, [y, v, x], unconnected_gradients='zero')",
    "unconnected in no known way": "g(x * x, y, unconnected_gradients='some')",
    "aggregated in no known way": "g(x * x, x, aggregation_method=7)",
    "aggregated": "[g(x * x + x, x, aggregation_method=m)[0] for m in (0, 1, 2, None)]",
    "of integers": "g(tf.constant(3) * tf.constant(2), tf.constant(1))",
    "of an integer of it": "g(tf.cast(x, tf.int32), x)",
    "through an integer": "g(tf.cast(tf.cast(x, tf.int32), tf.float32) * x, x)",
    "of a truth value": "g(v > 1.0, v)",
    "through an index": "g(tf.cast(tf.argmax(v, 0), tf.float32) * x, [v, x])",
    "gather": "g(tf.gather(m, [0, 2, 0]), m)",
    "gather, matrix of indices": "g(tf.gather(m, [[0, 2], [0, 0]]), m)",
    "gather, other axis": "g(tf.gather(m, [0, 0], axis=1), m)",
    "gather and dense": "g([tf.gather(m, [0, 2, 0]), m * m], m)",
    "gather of something computed": "g(tf.gather(m * 2.0, [0, 2, 0]), m)",
    "gather from an unknown number of rows": "g(tf.gather(tf.placeholder_with_default(m, [None, 2]), [0, 2]), m)",
    "gather, weighted": "g(tf.gather(m, [2, 1]) * c([[1.0, 2.0], [3.0, 4.0]]), m)",
    "reductions": "g(tf.reduce_sum(m * m) + tf.reduce_mean(m) + tf.reduce_max(m), m)",
    "matmul": "g(tf.matmul(m, tf.transpose(m)), m)",
    "split": "g(tf.split(m, 3)[1] * 2.0, m)",
    "concat": "g(tf.concat([v, v * v], 0), v)",
    "stack and slice": "g(tf.stack([v, v * v])[1], v)",
    "reshape": "g(tf.reshape(tf.transpose(m), [-1]) * c([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), m)",
    "where": "g(tf.where(v > 1.5, v, v * 2.0) + tf.abs(-v) + tf.maximum(v, 1.5), v)",
    "complex without grad_ys": "g(tf.complex(x, x) * tf.complex(x, y), x)",
    "real part": "g(tf.real(z * z), z)",
    "imaginary part": "g(tf.imag(z * z * z), z)",
    "complex with grad_ys": "g(z * z, z, grad_ys=tf.constant([1 + 1j, 2j], tf.complex64))",
    "name scope": "[g(x * x, x, name='back')[0].name.split('/')[0] == 'back']",
}


def cases(tf):
    found = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    found.update({name: lambda tf, text=text: _values(tf, text) for name, text in EXPRESSIONS.items()})
    return found


def _values(tf, text):
    names = {
        "tf": tf,
        "g": tf.gradients,
        "c": lambda value: c(tf, value),
        "x": c(tf, 2.0),
        "y": c(tf, 5.0),
        "v": c(tf, [1.0, 2.0]),
        "m": c(tf, [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
        "z": tf.constant([1 + 2j, 3j], tf.complex64),
    }
    return _run(tf, eval(text, names))


def _run(tf, gradients):
    found = []
    with tf.Session() as session:
        for gradient in gradients:
            if isinstance(gradient, tf.IndexedSlices):
                found.append(["slices", *session.run([gradient.values, gradient.indices, gradient.dense_shape])])
            elif isinstance(gradient, tf.Tensor):
                found.append(session.run(gradient))
            else:
                found.append(gradient)
    return found


def case_stop_between(tf):
    x = c(tf, 2.0)
    y = x * x
    return _run(tf, tf.gradients(y * 3.0 + x, [x, y], stop_gradients=[y]))


def case_stop_at_sources(tf):
    x = c(tf, 0.0)
    y = 2.0 * x
    return _run(tf, tf.gradients(x + y, [x, y], stop_gradients=[x, y]))


def case_stop_at_the_target(tf):
    x = c(tf, 2.0)
    y = x * x
    return _run(tf, tf.gradients(y, [x], stop_gradients=y))


def case_intermediate_sources(tf):
    x = c(tf, 2.0)
    y = x * x
    return _run(tf, tf.gradients(y * y, [x, y]))


def case_two_graphs(tf):
    with tf.Graph().as_default():
        y = c(tf, 1.0)
    return _run(tf, tf.gradients(y, c(tf, 2.0)))


def case_device_of_the_forward_operation(tf):
    x = c(tf, 2.0)
    with tf.device("/job:w/task:1"):
        y = tf.exp(x)
    with tf.device("/job:w/task:1/device:CPU:0"):
        z = tf.exp(y)
    return [g.device for g in tf.gradients(z, [x, y], colocate_gradients_with_ops=True)]
