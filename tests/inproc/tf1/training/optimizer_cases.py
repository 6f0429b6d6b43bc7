"""A small model that every optimizer trains for 100 steps, in the API of TensorFlow 1.x.

Runs under TensorFlow's Python 3.7 too. A weight matrix gets dense gradients, a table of embeddings sparse ones with
equal indices; both exist in float32 and float64.
"""

import numpy as np

STEPS = 100
ONLY_FLOAT32 = ("proximal_gradient_descent", "proximal_adagrad")  # TensorFlow's optimizers accept no other type
RECORDED = (1, 10, 100)

CASES = {
    "gradient_descent": ("GradientDescentOptimizer", {"learning_rate": 0.1}),
    "momentum": ("MomentumOptimizer", {"learning_rate": 0.05, "momentum": 0.9}),
    "nesterov": ("MomentumOptimizer", {"learning_rate": 0.05, "momentum": 0.9, "use_nesterov": True}),
    "adagrad": ("AdagradOptimizer", {"learning_rate": 0.3}),
    "adadelta": ("AdadeltaOptimizer", {"learning_rate": 1.0, "rho": 0.9, "epsilon": 1e-6}),
    "adam": ("AdamOptimizer", {"learning_rate": 0.05}),
    "rmsprop": ("RMSPropOptimizer", {"learning_rate": 0.02, "momentum": 0.5}),
    "rmsprop_centered": ("RMSPropOptimizer", {"learning_rate": 0.02, "centered": True, "epsilon": 1e-3}),
    "ftrl": ("FtrlOptimizer", {"learning_rate": 0.5, "l1_regularization_strength": 0.01}),
    "ftrl_power": (
        "FtrlOptimizer",
        {"learning_rate": 0.2, "learning_rate_power": -0.3, "l2_regularization_strength": 0.1},
    ),
    "ftrl_shrinkage": ("FtrlOptimizer", {"learning_rate": 0.5, "l2_shrinkage_regularization_strength": 0.1}),
    "proximal_gradient_descent": (
        "ProximalGradientDescentOptimizer",
        {"learning_rate": 0.1, "l1_regularization_strength": 0.02, "l2_regularization_strength": 0.1},
    ),
    "proximal_adagrad": (
        "ProximalAdagradOptimizer",
        {"learning_rate": 0.3, "l1_regularization_strength": 0.01, "l2_regularization_strength": 0.05},
    ),
    "adagrad_da": (
        "AdagradDAOptimizer",
        {"learning_rate": 0.5, "l1_regularization_strength": 0.001, "l2_regularization_strength": 0.01},
    ),
}


def initial(name, dtype):
    random = np.random.RandomState(len(name))
    return random.uniform(-1, 1, {"weight": (3, 2), "table": (6, 2)}[name]).astype(dtype)


def batches(dtype):
    random = np.random.RandomState(7)
    target = np.array([[1.0, -2.0], [0.5, 0.25], [-1.0, 3.0]])
    for _ in range(STEPS):
        x = random.uniform(-1, 1, (8, 3))
        yield x.astype(dtype), x.dot(target).astype(dtype), random.randint(0, 5, 4).astype("int32")


def run(tf, optimizer, arguments, dtype):
    """Returns the values of all variables by name, after each of the RECORDED steps."""
    with tf.Graph().as_default():
        weight = tf.Variable(initial("weight", dtype), name="weight")
        table = tf.Variable(initial("table", dtype), name="table")
        step = tf.Variable(np.int64(0), trainable=False, name="global_step")
        x = tf.placeholder(dtype, [None, 3])
        y = tf.placeholder(dtype, [None, 2])
        rows = tf.placeholder("int32", [None])
        errors = tf.square(tf.matmul(x, weight) - y)
        loss = tf.reduce_mean(errors) + tf.reduce_sum(tf.square(tf.gather(table, rows) - 0.5))
        if optimizer == "AdagradDAOptimizer":
            arguments = dict(arguments, global_step=step)
        train = getattr(tf.train, optimizer)(**arguments).minimize(loss, global_step=step)
        kept = tf.global_variables()
        result = {}
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for number, (x_value, y_value, row_value) in enumerate(batches(dtype), 1):
                sess.run(train, {x: x_value, y: y_value, rows: row_value})
                if number in RECORDED:
                    values = sess.run(kept)
                    names = [variable.name for variable in kept]
                    result[str(number)] = dict(zip(names, (np.asarray(a).tolist() for a in values)))  # noqa: B905 - 3.7
        return result


def types(name):
    return ("float32",) if name in ONLY_FLOAT32 else ("float32", "float64")


def run_all(tf):
    return {
        name: {dtype: run(tf, optimizer, arguments, dtype) for dtype in types(name)}
        for name, (optimizer, arguments) in CASES.items()
    }
