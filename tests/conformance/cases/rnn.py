"""Recurrent networks: names of variables, outputs, states, gradients."""

import numpy as np

_numbers = np.random.RandomState(11)
X = _numbers.standard_normal((3, 4, 2)).astype(np.float32)
LENGTHS = np.array([4, 2, 0], np.int32)

CELLS = {
    "basic": "R.BasicRNNCell(3)",
    "relu": "R.BasicRNNCell(3, activation=tf.nn.relu, name='cell')",
    "gru": "R.GRUCell(3)",
    "gru with biases": "R.GRUCell(3, bias_initializer=tf.constant_initializer(.5))",
    "lstm": "R.BasicLSTMCell(3)",
    "lstm in one": "R.BasicLSTMCell(3, forget_bias=.5, state_is_tuple=False)",
    "full lstm": "R.LSTMCell(3)",
    "peepholes": "R.LSTMCell(3, use_peepholes=True, cell_clip=.4)",
    "projection": "R.LSTMCell(4, num_proj=2, proj_clip=.3, use_peepholes=True)",
    "block": "tf.contrib.rnn.LSTMBlockCell(3)",
    "peephole block": "tf.contrib.rnn.LSTMBlockCell(3, use_peephole=True, forget_bias=0.)",
    "two": "R.MultiRNNCell([R.BasicLSTMCell(3), R.GRUCell(2)])",
    "two in one": "R.MultiRNNCell([R.GRUCell(3), R.GRUCell(2)], state_is_tuple=False)",
    "dropout that keeps": "R.DropoutWrapper(R.BasicLSTMCell(3), input_keep_prob=1., output_keep_prob=1.)",
    "residual": "R.ResidualWrapper(R.GRUCell(2))",
    "device": "R.DeviceWrapper(R.GRUCell(2), '/cpu:0')",
}

RUNS = {
    "dynamic": "tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)",
    "lengths": "tf.nn.dynamic_rnn(cell, x, sequence_length=n, dtype=tf.float32, scope='named')",
    "time major": "tf.nn.dynamic_rnn(cell, tf.transpose(x, [1, 0, 2]), n, time_major=True, dtype=tf.float32)",
    "from a state": "tf.nn.dynamic_rnn(cell, x, initial_state=cell.zero_state(3, tf.float32))",
    "static": "tf.nn.static_rnn(cell, tf.unstack(x, 4, 1), dtype=tf.float32)",
    "static lengths": "tf.nn.static_rnn(cell, tf.unstack(x, 4, 1), dtype=tf.float32, sequence_length=n)",
}


def cases(tf):
    found = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    pairs = [(cell, "lengths") for cell in CELLS] + [("lstm", run) for run in RUNS] + [("two", run) for run in RUNS]
    for cell, run in pairs:
        found[cell + ", " + run] = lambda tf, cell=cell, run=run: run_one(tf, CELLS[cell], RUNS[run])
    return found


def initializer(shape, dtype=None, partition_info=None):
    return np.sin(np.arange(np.prod(shape), dtype=np.float32) + 1).reshape(shape)


def flatten(value):
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in flatten(item)]
    return [value]


def names(values):
    return [value.name for value in values]


def results(tf, found, feeds, sources):
    leaves = flatten(found)
    weighted = [
        tf.reduce_sum(leaf * tf.cos(tf.reshape(tf.to_float(tf.range(tf.size(leaf))), tf.shape(leaf))))
        for leaf in leaves
    ]
    gradients = tf.gradients(tf.add_n(weighted), sources + tf.trainable_variables())
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        values = session.run([leaves, [g for g in gradients if g is not None]], feeds)
    return [[leaf.shape.as_list() for leaf in leaves], [g is None for g in gradients], values]


def run_one(tf, cell, run):
    x = tf.placeholder(tf.float32, [3 if "static" in run or "zero_state" in run else None, 4, 2])
    n = tf.placeholder(tf.int32, [None])
    with tf.variable_scope("top", initializer=initializer):
        made = eval(cell, {"tf": tf, "R": tf.nn.rnn_cell})
        found = eval(run, {"tf": tf, "cell": made, "x": x, "n": n})
    sizes = [flatten(made.state_size), flatten(made.output_size), type(made.state_size).__name__]
    return [names(tf.global_variables()), sizes, results(tf, found, {x: X, n: LENGTHS}, [x])]


def case_unknown_numbers_of_steps(tf):
    x = tf.placeholder(tf.float32, [None, None, 2])
    with tf.variable_scope("top", initializer=initializer):
        found = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(3), x, dtype=tf.float32)
    first = results(tf, found, {x: X}, [x])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [first, session.run(found, {x: X[:1, :3]})]


def case_both_ways(tf):
    x = tf.placeholder(tf.float32, [None, 4, 2])
    n = tf.placeholder_with_default(LENGTHS, [None])
    R = tf.nn.rnn_cell
    with tf.variable_scope("top", initializer=initializer):
        one = tf.nn.bidirectional_dynamic_rnn(R.GRUCell(3), R.BasicLSTMCell(2), x, n, dtype=tf.float32)
        other = tf.nn.bidirectional_dynamic_rnn(R.GRUCell(3), R.GRUCell(3), x, dtype=tf.float32, scope="other")
    return [names(tf.global_variables()), results(tf, [one, other], {x: X}, [x])]


def case_both_ways_step_by_step(tf):
    x = tf.placeholder(tf.float32, [3, 4, 2])
    R = tf.nn.rnn_cell
    steps = tf.unstack(x, 4, 1)
    with tf.variable_scope("top", initializer=initializer):
        one = tf.nn.static_bidirectional_rnn(R.GRUCell(3), R.GRUCell(2), steps, dtype=tf.float32)
        other = tf.nn.static_bidirectional_rnn(
            R.GRUCell(3), R.GRUCell(2), steps, dtype=tf.float32, sequence_length=LENGTHS, scope="other"
        )
    return [names(tf.global_variables()), results(tf, [one, other], {x: X}, [x])]


def case_cells_by_themselves(tf):
    R = tf.nn.rnn_cell
    x = tf.constant(X[:, 0])
    with tf.variable_scope("top", initializer=initializer):
        cell = R.BasicLSTMCell(3)
        state = cell.zero_state(3, tf.float32)
        output, state = cell(x, state)
        output, state = cell(x, state)
        gru = R.GRUCell(2)
        other, _ = gru(x, tf.ones([3, 2]))
        scoped, _ = R.GRUCell(2)(x, tf.ones([3, 2]), scope="mine")
    found = [names(tf.global_variables()), type(state).__name__, state.c.shape.as_list(), cell.name]
    found += [names(cell.trainable_weights), cell.built]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [found, session.run([output, state, other, scoped])]


def case_own_cell(tf):
    class Sum(tf.nn.rnn_cell.RNNCell):
        @property
        def state_size(self):
            return 2

        @property
        def output_size(self):
            return 2

        def __call__(self, inputs, state, scope=None):
            with tf.variable_scope(scope or type(self).__name__):
                w = tf.get_variable("w", [2], initializer=tf.constant_initializer(0.5))
                return inputs * w, state + inputs

    x = tf.placeholder(tf.float32, [None, 4, 2])
    found = tf.nn.dynamic_rnn(Sum(), x, dtype=tf.float32)
    return [names(tf.global_variables()), results(tf, found, {x: X}, [x])]


def case_shared_cells(tf):
    x = tf.constant(X)
    with tf.variable_scope("top", initializer=initializer):
        cell = tf.nn.rnn_cell.GRUCell(2)
        first, state = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
        second, _ = tf.nn.dynamic_rnn(cell, first, initial_state=state)
        tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(2), x, dtype=tf.float32, scope="again")
    return [names(tf.global_variables()), results(tf, [first, second], {}, [x])]


def error(tf, call):
    try:
        eval(call, {"tf": tf, "R": tf.nn.rnn_cell, "x": tf.placeholder(tf.float32, [3, 4, 2])})
    except Exception as caught:  # noqa: BLE001 - the class is the outcome
        return type(caught).__name__
    return None


def case_errors(tf):
    return [
        error(tf, call)
        for call in (
            "tf.nn.dynamic_rnn(R.GRUCell(2), x)",
            "tf.nn.dynamic_rnn(3, x, dtype=tf.float32)",
            "tf.nn.static_rnn(R.GRUCell(2), [], dtype=tf.float32)",
            "R.MultiRNNCell([])",
            "tf.nn.dynamic_rnn(R.GRUCell(2), x, sequence_length=[[1, 2, 3]], dtype=tf.float32)",
            "R.DropoutWrapper(R.GRUCell(2), input_keep_prob=2.)",
            "R.DropoutWrapper(3)",
            "R.MultiRNNCell([R.BasicLSTMCell(2)], state_is_tuple=False)",
            "tf.nn.dynamic_rnn(R.GRUCell(2), tf.placeholder(tf.float32, [3, 4, None]), dtype=tf.float32)",
            "[tf.nn.dynamic_rnn(R.GRUCell(2), x, dtype=tf.float32) for _ in range(2)]",
        )
    ]


def case_training(tf):
    """A classifier of sequences, trained with clipped gradients."""
    x, y = tf.placeholder(tf.float32, [None, 4, 2]), tf.placeholder(tf.int64, [None])
    with tf.variable_scope("top", initializer=initializer):
        cells = [tf.nn.rnn_cell.BasicLSTMCell(3) for _ in range(2)]
        outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.MultiRNNCell(cells), x, dtype=tf.float32)
        logits = tf.layers.dense(outputs[:, -1], 2)
    loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
    optimizer = tf.train.GradientDescentOptimizer(0.5)
    gradients, variables = zip(*optimizer.compute_gradients(loss))  # noqa: B905 - not in Python 3.7
    gradients, norm = tf.clip_by_global_norm(gradients, 0.5)
    train = optimizer.apply_gradients(zip(gradients, variables))  # noqa: B905
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [session.run([loss, norm, train], {x: X, y: [0, 1, 1]})[:2] for _ in range(4)]
