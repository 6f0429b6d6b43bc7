"""`tf.contrib.rnn`: variables, outputs, states and gradients of the cells; refusals."""

import numpy as np

_numbers = np.random.RandomState(7)
X = _numbers.standard_normal((3, 4, 6)).astype(np.float32)
LENGTHS = np.array([4, 2, 0], np.int32)

CELLS = {
    "attention": "tf.contrib.rnn.AttentionCellWrapper(tf.contrib.rnn.GRUCell(3), 2)",
    "attention, one state": "tf.contrib.rnn.AttentionCellWrapper(tf.contrib.rnn.GRUCell(3), 2, 4, 5, 6, "
    "state_is_tuple=False)",
    "attention of lstm": "tf.contrib.rnn.AttentionCellWrapper(tf.contrib.rnn.BasicLSTMCell(3), 3, attn_size=2)",
    "block": "tf.contrib.rnn.LSTMBlockCell(3, forget_bias=.5, cell_clip=.2, use_peephole=True)",
    "compiled": "tf.contrib.rnn.CompiledWrapper(tf.contrib.rnn.GRUCell(3))",
    "coupled": "tf.contrib.rnn.CoupledInputForgetGateLSTMCell(3)",
    "coupled, all": "tf.contrib.rnn.CoupledInputForgetGateLSTMCell(4, use_peepholes=True, num_proj=2, proj_clip=.2, "
    "num_unit_shards=2, num_proj_shards=3, forget_bias=.5, state_is_tuple=False, activation=tf.sigmoid)",
    "coupled, normed": "tf.contrib.rnn.CoupledInputForgetGateLSTMCell(3, layer_norm=True, norm_gain=.5, norm_shift=.1)",
    "grouped": "tf.contrib.rnn.GLSTMCell(4, number_of_groups=2)",
    "grouped projection": "tf.contrib.rnn.GLSTMCell(4, num_proj=2, number_of_groups=2, forget_bias=0.)",
    "gru block": "tf.contrib.rnn.GRUBlockCell(3)",
    "gru block of names": "tf.contrib.rnn.GRUBlockCellV2(3)",
    "highway": "tf.contrib.rnn.HighwayWrapper(tf.contrib.rnn.GRUCell(6))",
    "highway of two gates": "tf.contrib.rnn.HighwayWrapper(tf.contrib.rnn.GRUCell(6), "
    "couple_carry_transform_gates=False, carry_bias_init=.5)",
    "independent": "tf.contrib.rnn.IndRNNCell(3)",
    "independent gru": "tf.contrib.rnn.IndyGRUCell(3, bias_initializer=tf.constant_initializer(.2))",
    "independent lstm": "tf.contrib.rnn.IndyLSTMCell(3, forget_bias=.3)",
    "intersection": "tf.contrib.rnn.IntersectionRNNCell(6)",
    "intersection projected": "tf.contrib.rnn.IntersectionRNNCell(3, num_in_proj=3, forget_bias=0., "
    "y_activation=tf.tanh)",
    "layer norm": "tf.contrib.rnn.LayerNormBasicLSTMCell(3, forget_bias=.5)",
    "layer norm off": "tf.contrib.rnn.LayerNormBasicLSTMCell(3, layer_norm=False, activation=tf.nn.relu)",
    "nas": "tf.contrib.rnn.NASCell(3)",
    "nas projected": "tf.contrib.rnn.NASCell(3, num_proj=2, use_bias=True)",
    "sru": "tf.contrib.rnn.SRUCell(3)",
    "update gate": "tf.contrib.rnn.UGRNNCell(3, forget_bias=.5, activation=tf.nn.relu)",
}

GRIDS = {
    "time and frequency": "tf.contrib.rnn.TimeFreqLSTMCell(2, feature_size=6, use_peepholes=True, cell_clip=.5)",
    "grid": "tf.contrib.rnn.GridLSTMCell(2, feature_size=4, frequency_skip=1, num_frequency_blocks=[3])",
    "grid, all": "tf.contrib.rnn.GridLSTMCell(2, True, False, .3, num_unit_shards=2, forget_bias=.5, feature_size=2, "
    "frequency_skip=1, num_frequency_blocks=[2, 1], start_freqindex_list=[0, 4], end_freqindex_list=[3, 6])",
    "grid, shared": "tf.contrib.rnn.GridLSTMCell(2, use_peepholes=True, "
    "share_time_frequency_weights=True, feature_size=4, "
    "frequency_skip=2, num_frequency_blocks=[2], state_is_tuple=False)",
    "grid, coupled": "tf.contrib.rnn.GridLSTMCell(2, use_peepholes=True, couple_input_forget_gates=True, "
    "feature_size=4, "
    "frequency_skip=2, num_frequency_blocks=[2])",
    "grid both ways": "tf.contrib.rnn.BidirectionalGridLSTMCell(2, use_peepholes=True, feature_size=4, "
    "frequency_skip=2, "
    "num_frequency_blocks=[2], backward_slice_offset=1)",
    "grid both ways, back": "tf.contrib.rnn.BidirectionalGridLSTMCell(2, feature_size=4, frequency_skip=2, "
    "num_frequency_blocks=[2], backward_slice_offset=-1)",
}

FUSED = {
    "static": "tf.contrib.rnn.FusedRNNCellAdaptor(tf.contrib.rnn.GRUCell(3))",
    "dynamic": "tf.contrib.rnn.FusedRNNCellAdaptor(tf.contrib.rnn.GRUCell(3), use_dynamic_rnn=True)",
    "reversed": "tf.contrib.rnn.TimeReversedFusedRNN(tf.contrib.rnn.FusedRNNCellAdaptor("
    "tf.contrib.rnn.GRUCell(3), use_dynamic_rnn=True))",
    "block": "tf.contrib.rnn.LSTMBlockFusedCell(3)",
    "block, all": "tf.contrib.rnn.LSTMBlockFusedCell(3, forget_bias=.5, cell_clip=.4, use_peephole=True, name='cell')",
    "block reversed": "tf.contrib.rnn.TimeReversedFusedRNN(tf.contrib.rnn.LSTMBlockFusedCell(3))",
}

REFUSED = {
    "no attention": "tf.contrib.rnn.AttentionCellWrapper(tf.contrib.rnn.GRUCell(3), 0)",
    "attention of tuples": "tf.contrib.rnn.AttentionCellWrapper(tf.contrib.rnn.BasicLSTMCell(3), 2, "
    "state_is_tuple=False)",
    "attention of nothing": "tf.contrib.rnn.AttentionCellWrapper(None, 2)",
    "groups": "tf.contrib.rnn.GLSTMCell(5, number_of_groups=2)",
    "groups of projections": "tf.contrib.rnn.GLSTMCell(4, num_proj=3, number_of_groups=2)",
    "groups of inputs": "tf.contrib.rnn.GLSTMCell(5, number_of_groups=5)(tf.zeros([2, 6]), (tf.zeros([2, "
    "5]), tf.zeros([2, 5])))",
    "intersection": "tf.contrib.rnn.IntersectionRNNCell(3)(tf.zeros([2, 6]), tf.zeros([2, 3]))",
    "highway": "tf.contrib.rnn.HighwayWrapper(tf.contrib.rnn.GRUCell(3))(tf.zeros([2, 6]), tf.zeros([2, 3]))",
    "unknown columns": "tf.contrib.rnn.UGRNNCell(3)(tf.placeholder(tf.float32, [2, None]), tf.zeros([2, 3]))",
    "shards": "tf.contrib.rnn.CoupledInputForgetGateLSTMCell(1, num_unit_shards=9)(tf.zeros([2, 2]), "
    "(tf.zeros([2, 1]),) * 2)",
    "no blocks": "tf.contrib.rnn.GridLSTMCell(2)",
    "other blocks": "tf.contrib.rnn.GridLSTMCell(2, feature_size=4, frequency_skip=1, num_frequency_blocks=[2])("
    "tf.zeros([2, 6]), tf.contrib.rnn.GridLSTMCell(2, num_frequency_blocks=[2]).zero_state(2, tf.float32))",
    "convolution": "tf.contrib.rnn.ConvLSTMCell(2, [3, 2], 1, [3])",
    "both sizes": "tf.contrib.rnn.GRUBlockCell(3, 3)",
    "no size": "tf.contrib.rnn.GRUBlockCell()",
    "no state": "tf.contrib.rnn.LSTMBlockFusedCell(3)(tf.zeros([2, 2, 2]))",
    "one state": "tf.contrib.rnn.LSTMBlockFusedCell(3)(tf.zeros([2, 2, 2]), initial_state=[tf.zeros([2, 3])])",
}


def cases(tf):
    found = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    for name, cell in CELLS.items():
        found["cell " + name] = lambda tf, cell=cell: dynamic(tf, cell)
    for name, cell in GRIDS.items():
        found["cell " + name] = lambda tf, cell=cell: one_step(tf, cell)
    for name, cell in FUSED.items():
        found["fused " + name] = lambda tf, cell=cell: fused(tf, cell)
    for name, text in REFUSED.items():
        found["refused " + name] = lambda tf, text=text: str(eval(text, {"tf": tf, "C": tf.contrib.rnn}))
    return found


def initializer(shape, dtype=None, partition_info=None):
    return np.sin(np.arange(np.prod(shape), dtype=np.float32) + 1).reshape(shape) * 0.7


def flatten(value):
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in flatten(item)]
    return [value]


def results(tf, found, sources, feeds):
    """Names of variables, shapes, values, and gradients of a weighted sum."""
    leaves = flatten(found)
    weighted = [
        tf.reduce_sum(leaf * tf.cos(tf.reshape(tf.to_float(tf.range(tf.size(leaf))), tf.shape(leaf))))
        for leaf in leaves
    ]
    variables = sorted(tf.trainable_variables(), key=lambda v: v.name)
    gradients = tf.gradients(tf.add_n(weighted), [*sources, *variables])
    random = [v for v in tf.global_variables() if v.op.name.endswith("kernel_u")]
    fixed = [tf.assign(v, initializer(v.shape.as_list())) for v in random]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(fixed)
        values = session.run([leaves, [g for g in gradients if g is not None]], feeds)
    names = sorted([v.name, v.shape.as_list()] for v in tf.global_variables())
    return [names, [leaf.shape.as_list() for leaf in leaves], [g is None for g in gradients], values]


def make(tf, cell):
    return eval(cell, {"tf": tf, "C": tf.contrib.rnn})


def sizes(cell):
    return [[str(size) for size in flatten(cell.state_size)], str(cell.output_size), type(cell.state_size).__name__]


def dynamic(tf, text):
    x, n = tf.placeholder(tf.float32, [None, None, 6]), tf.placeholder(tf.int32, [None])
    with tf.variable_scope("top", initializer=initializer):
        cell = make(tf, text)
        found = tf.nn.dynamic_rnn(cell, x, n, dtype=tf.float32)
    return [sizes(cell), results(tf, found, [x], {x: X, n: LENGTHS})]


def one_step(tf, text):
    x = tf.placeholder(tf.float32, [3, 6])
    with tf.variable_scope("top", initializer=initializer):
        cell = make(tf, text)
        flat = flatten(cell.state_size)
        states = [tf.constant(np.cos(np.arange(3.0 * size).reshape(3, size)), tf.float32) for size in flat]
        state = type(cell.state_size)(*states) if isinstance(cell.state_size, tuple) else states[0]
        found = cell(x, state)
    return [sizes(cell), results(tf, found, [x, *states], {x: X[:, 1]})]


def fused(tf, text):
    x = tf.placeholder(tf.float32, [4, None, 6])
    found = []
    for scope, arguments in (("whole", {}), ("lengths", {"sequence_length": LENGTHS})):
        with tf.variable_scope(scope, initializer=initializer):
            cell = make(tf, text)
            found.append(cell(x, dtype=tf.float32, **arguments))
    with tf.variable_scope("list", initializer=initializer):
        cell = make(tf, text)
        begin = tf.ones([3, 3])
        block = "Block" in text
        listed = cell(x if block else tf.unstack(x), initial_state=(begin, begin) if block else begin)
        found.append([listed[0] if block else list(listed[0]), listed[1]])
    names, _, *rest = results(tf, found, [x], {x: X.transpose(1, 0, 2)})  # static shapes say more than TensorFlow's
    return [names, *rest]


def convolved(tf, text, shape):
    x = tf.constant(np.sin(np.arange(float(np.prod([2, *shape])))).reshape([2, *shape]), tf.float32)
    with tf.variable_scope("top", initializer=initializer):
        cell = make(tf, text)
        state = cell.zero_state(2, tf.float32)
        once, after = cell(x, state)
    return [sizes(cell), results(tf, [once, after], [x], {})]


def case_convolutions(tf):
    found = []
    for text, shape in (
        ("tf.contrib.rnn.Conv1DLSTMCell(input_shape=[5, 2], output_channels=3, kernel_shape=[3])", [5, 2]),
        (
            "tf.contrib.rnn.Conv2DLSTMCell(input_shape=[3, 4, 2], output_channels=2, kernel_shape=[2, 3], "
            "use_bias=False)",
            [3, 4, 2],
        ),
        ("tf.contrib.rnn.ConvLSTMCell(1, [5, 2], 3, [3], skip_connection=True, forget_bias=.5, name='cell')", [5, 2]),
    ):
        with tf.Graph().as_default():
            found.append(convolved(tf, text, shape))
    return found


def case_a_convolution_in_three_dimensions(tf):
    text = "tf.contrib.rnn.Conv3DLSTMCell(input_shape=[2, 3, 2, 1], output_channels=1, kernel_shape=[1, 2, 2])"
    return convolved(tf, text, [2, 3, 2, 1])


def case_a_convolution_along_time(tf):
    x = tf.constant(np.sin(np.arange(60.0)).reshape(2, 3, 5, 2), tf.float32)
    with tf.variable_scope("top", initializer=initializer):
        cell = tf.contrib.rnn.Conv1DLSTMCell(input_shape=[5, 2], output_channels=3, kernel_shape=[3])
        found = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
    return results(tf, found, [x], {})


def case_phases(tf):
    x = tf.placeholder(tf.float32, [3, 4, 6])
    times = tf.constant(np.cumsum(np.abs(X[:, :, :1]), 1), tf.float32)
    shapes = []
    for options in ({}, {"use_peepholes": True, "trainable_ratio_on": False, "leak": 0.01}):
        with tf.variable_scope("peep" if options else "plain", initializer=initializer):
            cell = tf.contrib.rnn.PhasedLSTMCell(3, ratio_on=0.4, **options)
            shapes.append(tf.nn.dynamic_rnn(cell, (times, x), dtype=tf.float32))
    named = {v.op.name.split("/")[-1]: v for v in tf.global_variables()}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        period, phase = session.run([named["period"], named["phase"]])
        bounds = [
            bool((period >= 1).all() and (period <= 1000).all()),
            bool((phase >= 0).all() and (phase <= period).all()),
        ]
    names = sorted([v.name, v.shape.as_list(), v in tf.trainable_variables()] for v in tf.global_variables())
    assign = [
        tf.assign(v, {"period": [1.0, 2.0, 0.5], "phase": [0.1, 0.5, 0.3]}[v.op.name.split("/")[-1]])
        for v in tf.global_variables()
        if v.op.name.split("/")[-1] in ("period", "phase")
    ]
    variables = sorted(tf.trainable_variables(), key=lambda v: v.name)
    leaves = flatten(shapes)
    gradients = tf.gradients(tf.add_n([tf.reduce_sum(leaf * leaf) for leaf in leaves]), [x, *variables])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(assign)
        return [bounds, names, session.run([leaves, gradients], {x: X})]


def case_dropout_of_candidates(tf):
    x = tf.constant(X)
    with tf.variable_scope("top", initializer=initializer):
        cell = tf.contrib.rnn.LayerNormBasicLSTMCell(3, dropout_keep_prob=tf.constant(1.0), dropout_prob_seed=4)
        kept, _ = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
    with tf.variable_scope("other", initializer=initializer):
        cell = tf.contrib.rnn.LayerNormBasicLSTMCell(3, dropout_keep_prob=0.5)
        dropped, _ = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        a, b = session.run([kept, dropped])
    return [a.tolist(), bool(np.abs(a - b).max() > 1e-3)]


def case_a_block_trained(tf):
    x = tf.constant(X.transpose(1, 0, 2))
    with tf.variable_scope("top", initializer=initializer):
        out, _ = tf.contrib.rnn.LSTMBlockFusedCell(3)(x, dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(out - 0.5))
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [float(session.run([loss, train])[0]) for _ in range(6)]


def case_bases(tf):
    return [
        issubclass(tf.contrib.rnn.FusedRNNCellAdaptor, tf.contrib.rnn.FusedRNNCell),
        issubclass(tf.contrib.rnn.Conv1DLSTMCell, tf.contrib.rnn.ConvLSTMCell),
        issubclass(tf.contrib.rnn.LSTMBlockFusedCell, tf.contrib.rnn.LSTMBlockWrapper),
    ]
