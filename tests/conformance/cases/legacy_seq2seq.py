"""tf.contrib.legacy_seq2seq, and the cells around cells of tf.contrib.rnn: variables, values, gradients, errors."""

import numpy as np

_numbers = np.random.RandomState(8)
ENCODED = _numbers.randint(0, 5, (4, 3)).astype(np.int32)
DECODED = _numbers.randint(0, 6, (3, 3)).astype(np.int32)
X = _numbers.standard_normal((4, 3, 2)).astype(np.float32)
WEIGHTS = np.array([[1, 1, 1], [1, 0.5, 0], [1, 0, 0]], np.float32)

_SYMBOLS = "e, d, cell, 5, 6, 3"
MODELS = {
    "basic": "tf.contrib.legacy_seq2seq.basic_rnn_seq2seq(x, x[:3], cell)",
    "tied": "tf.contrib.legacy_seq2seq.tied_rnn_seq2seq(x, x[:3], cell)",
    "tied in a scope": "tf.contrib.legacy_seq2seq.tied_rnn_seq2seq("
    "x, x[:3], cell, loop_function=lambda p, i: p[:, :2] * i, scope='mine')",
    "decoder": "tf.contrib.legacy_seq2seq.rnn_decoder("
    "x, cell.zero_state(3, tf.float32), cell, loop_function=lambda p, i: p[:, 1:3])",
    "embedding decoder": "tf.contrib.legacy_seq2seq.embedding_rnn_decoder("
    "d, cell.zero_state(3, tf.float32), cell, 6, 3)",
    "projection": "tf.contrib.legacy_seq2seq.embedding_rnn_decoder("
    "d, cell.zero_state(3, tf.float32), cell, 6, 3, feed_previous=True, "
    "output_projection=(w, b))",
    "without gradients": "tf.contrib.legacy_seq2seq.embedding_rnn_decoder("
    "d, cell.zero_state(3, tf.float32), cell, 6, 3, feed_previous=True, "
    "output_projection=(w, b), update_embedding_for_previous=False)",
    "embedding": "tf.contrib.legacy_seq2seq.embedding_rnn_seq2seq(e, d, cell, 5, 6, 3)",
    "embedding previous": "tf.contrib.legacy_seq2seq.embedding_rnn_seq2seq(" + _SYMBOLS + ", feed_previous=True)",
    "embedding either": "tf.contrib.legacy_seq2seq.embedding_rnn_seq2seq(" + _SYMBOLS + ", feed_previous=yes)",
    "embedding other": "tf.contrib.legacy_seq2seq.embedding_rnn_seq2seq("
    "" + _SYMBOLS + ", feed_previous=no, scope='mine')",
    "embedding projection": "tf.contrib.legacy_seq2seq.embedding_rnn_seq2seq("
    "" + _SYMBOLS + ", output_projection=(w, b))",
    "embedding tied": "tf.contrib.legacy_seq2seq.embedding_tied_rnn_seq2seq(e, d, cell, 6, 3)",
    "embedding tied previous": "tf.contrib.legacy_seq2seq.embedding_tied_rnn_seq2seq("
    "e, d, cell, 6, 3, feed_previous=True)",
    "embedding tied either": "tf.contrib.legacy_seq2seq.embedding_tied_rnn_seq2seq("
    "e, d, cell, 6, 3, feed_previous=yes)",
    "attention": "tf.contrib.legacy_seq2seq.embedding_attention_seq2seq(" + _SYMBOLS + ")",
    "attention previous": "tf.contrib.legacy_seq2seq.embedding_attention_seq2seq("
    "" + _SYMBOLS + ", feed_previous=True, num_heads=2)",
    "attention either": "tf.contrib.legacy_seq2seq.embedding_attention_seq2seq(" + _SYMBOLS + ", feed_previous=yes)",
    "attention first": "tf.contrib.legacy_seq2seq.embedding_attention_seq2seq("
    "" + _SYMBOLS + ", initial_state_attention=True)",
    "attention projection": "tf.contrib.legacy_seq2seq.embedding_attention_seq2seq("
    "" + _SYMBOLS + ", output_projection=(w, b), "
    "feed_previous=True)",
    "attention decoder": "tf.contrib.legacy_seq2seq.attention_decoder("
    "x, cell.zero_state(3, tf.float32), tf.stack(x, 1), cell, output_size=2)",
    "embedding attention decoder": "tf.contrib.legacy_seq2seq.embedding_attention_decoder("
    "d, cell.zero_state(3, tf.float32), tf.stack(x, 1), "
    "cell, 6, 3, output_size=6, feed_previous=True)",
    "many": "tf.contrib.legacy_seq2seq.one2many_rnn_seq2seq("
    "e, {'a': d, 'b': d[:2]}, cell, {'a': R.LSTMCell(4), 'b': R.LSTMCell(4)}, 5, "
    "{'a': 6, 'b': 6}, 3)",
    "many either": "tf.contrib.legacy_seq2seq.one2many_rnn_seq2seq("
    "e, {'a': d}, cell, {'a': R.LSTMCell(4)}, 5, {'a': 6}, 3, feed_previous=yes)",
}
CELLS = {
    "embedding": "tf.contrib.rnn.EmbeddingWrapper(R.GRUCell(3), 5, 2)",
    "input projection": "tf.contrib.rnn.InputProjectionWrapper(R.GRUCell(3), 4, activation=tf.tanh)",
    "output projection": "tf.contrib.rnn.OutputProjectionWrapper(R.BasicLSTMCell(3), 2, activation=tf.sigmoid)",
}


def cases(tf):
    found = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    for name, text in MODELS.items():
        found["model, " + name] = lambda tf, text=text: run_model(tf, text)
    for name, text in CELLS.items():
        found["cell, " + name] = lambda tf, text=text: run_cell(tf, text)
    return found


def initializer(shape, dtype=None, partition_info=None):
    return np.sin(np.arange(np.prod(shape), dtype=np.float32) + 1).reshape(shape)


def leaves(value):
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in leaves(value[key])]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


def results(tf, found, sources=()):
    tensors = leaves(found)
    weighted = [
        tf.reduce_sum(leaf * tf.cos(tf.reshape(tf.to_float(tf.range(tf.size(leaf))), tf.shape(leaf))))
        for leaf in tensors
    ]
    gradients = tf.gradients(tf.add_n(weighted), [*sources, *tf.trainable_variables()])
    gradients = [None if g is None else tf.convert_to_tensor(g) for g in gradients]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        values = session.run([tensors, [g for g in gradients if g is not None]])
    return [[variable.name for variable in tf.global_variables()], [g is None for g in gradients], values]


def run_model(tf, text):
    names = {"tf": tf, "L": tf.contrib.legacy_seq2seq, "R": tf.nn.rnn_cell}
    names["e"], names["d"] = [tf.constant(row) for row in ENCODED], [tf.constant(row) for row in DECODED]
    names["x"] = [tf.constant(row) for row in X]
    names["yes"], names["no"] = tf.placeholder_with_default(True, []), tf.placeholder_with_default(False, [])
    names["w"], names["b"] = tf.constant(initializer([4, 6])), tf.constant(initializer([6]))
    with tf.variable_scope("top", initializer=initializer):
        names["cell"] = tf.nn.rnn_cell.LSTMCell(4)
        found = eval(text, names)
    return results(tf, found)


def run_cell(tf, text):
    with tf.variable_scope("top", initializer=initializer):
        cell = eval(text, {"tf": tf, "C": tf.contrib.rnn, "R": tf.nn.rnn_cell})
        steps = [tf.constant(row) for row in (ENCODED if "Embedding" in text else X)]
        found = tf.nn.static_rnn(cell, steps, dtype=tf.float32)
    return [str(cell.state_size), str(cell.output_size), results(tf, found)]


def case_stacks(tf):
    R, C = tf.nn.rnn_cell, tf.contrib.rnn
    x, n = tf.constant(X.transpose([1, 0, 2])), [4, 2, 0]
    with tf.variable_scope("top", initializer=initializer):
        dynamic = C.stack_bidirectional_dynamic_rnn(
            [R.GRUCell(3), R.GRUCell(2)], [R.GRUCell(3), R.LSTMCell(2)], x, dtype=tf.float32, sequence_length=n
        )
        static = C.stack_bidirectional_rnn(
            [R.GRUCell(3), R.GRUCell(2)],
            [R.GRUCell(3), R.GRUCell(2)],
            tf.unstack(x, axis=1),
            initial_states_fw=[tf.ones([3, 3]), tf.ones([3, 2])],
            initial_states_bw=[tf.ones([3, 3]), tf.ones([3, 2])],
            scope="other",
        )
    return results(tf, [dynamic, static], [x])


def case_sizes(tf):
    C = tf.contrib.rnn
    x = tf.placeholder(tf.float32, [None, 3, 2])
    known = C.best_effort_input_batch_size([tf.placeholder(tf.float32, [2, None]), x])
    turned = C.transpose_batch_time(x)
    with tf.Session() as session:
        other = tf.placeholder(tf.float32, [None, None])
        computed = session.run(C.best_effort_input_batch_size([other]), {other: X[:, :, 0]})
        layers = issubclass(tf.nn.rnn_cell.GRUCell, tf.contrib.rnn.LayerRNNCell)
        return [layers, int(known), turned.shape.as_list(), session.run(turned, {x: X}), computed]


def case_losses(tf):
    L = tf.contrib.legacy_seq2seq
    logits = [tf.constant(row @ initializer([2, 6])) for row in X[:3]]
    targets, weights = [tf.constant(row) for row in DECODED], [tf.constant(row) for row in WEIGHTS]

    def own(labels, logits):
        return logits[:, 0] * tf.to_float(labels)

    found = [
        L.sequence_loss_by_example(logits, targets, weights),
        L.sequence_loss_by_example(logits, targets, weights, average_across_timesteps=False),
        L.sequence_loss_by_example(logits, targets, weights, softmax_loss_function=own),
        L.sequence_loss(logits, targets, weights),
        L.sequence_loss(logits, targets, weights, average_across_batch=False),
        L.sequence_loss(logits, targets, weights, False, False, own),
    ]
    with tf.Session() as session:
        return session.run([found, tf.gradients(found[3], logits)])


def case_buckets(tf):
    L = tf.contrib.legacy_seq2seq
    e, d = [tf.constant(row) for row in ENCODED], [tf.constant(row) for row in DECODED]
    weights = [tf.constant(row) for row in WEIGHTS]

    def model(encoder, decoder):
        return L.embedding_attention_seq2seq(encoder, decoder, tf.nn.rnn_cell.GRUCell(4), 5, 6, 3)

    with tf.variable_scope("top", initializer=initializer):
        outputs, losses = L.model_with_buckets(e, d, d, weights, [(2, 2), (4, 3)], model)
        last = [(4, 3)]
        _, more = L.model_with_buckets(e, d, d, weights, last, lambda a, b: (outputs[1], None), per_example_loss=True)
    return results(tf, [outputs, losses, more])


def error(tf, text):
    names = {"tf": tf, "L": tf.contrib.legacy_seq2seq, "R": tf.nn.rnn_cell, "C": tf.contrib.rnn}
    names["cell"], names["x"] = tf.nn.rnn_cell.GRUCell(3), [tf.constant(row) for row in X]
    try:
        eval(text, names)
    except Exception as caught:  # noqa: BLE001 - the class is the outcome
        return type(caught).__name__
    return None


def case_errors(tf):
    calls = (
        "tf.contrib.legacy_seq2seq.attention_decoder([], None, tf.ones([3, 2, 2]), cell)",
        "tf.contrib.legacy_seq2seq.attention_decoder(x, None, tf.ones([3, 2, 2]), cell, num_heads=0)",
        "tf.contrib.legacy_seq2seq.attention_decoder(x, None, tf.placeholder(tf.float32, [3, 2, None]), cell)",
        "tf.contrib.legacy_seq2seq.sequence_loss_by_example(x, x, x[1:])",
        "tf.contrib.legacy_seq2seq.model_with_buckets(x, x, x, x, [(5, 2)], None)",
        "tf.contrib.legacy_seq2seq.model_with_buckets(x, x, x[:1], x, [(4, 2)], None)",
        "tf.contrib.legacy_seq2seq.one2many_rnn_seq2seq(x, {'a': x}, cell, {'b': cell}, 3, {'a': 3}, 3)",
        "tf.contrib.legacy_seq2seq.one2many_rnn_seq2seq(x, {'a': x}, 3, {'a': cell}, 3, {'a': 3}, 3)",
        "tf.contrib.rnn.EmbeddingWrapper(cell, 0, 3)",
        "tf.contrib.rnn.EmbeddingWrapper(3, 2, 3)",
        "tf.contrib.rnn.OutputProjectionWrapper(cell, 0)",
        "tf.contrib.rnn.InputProjectionWrapper(3, 2)",
        "C.stack_bidirectional_rnn([], [cell], x)",
        "C.stack_bidirectional_rnn([cell], (cell,), x)",
        "C.stack_bidirectional_dynamic_rnn([cell], [cell, cell], x)",
        "C.stack_bidirectional_dynamic_rnn([cell], [cell], x, initial_states_fw=3)",
        "C.best_effort_input_batch_size([tf.ones([3])])",
    )
    return [error(tf, call) for call in calls]
