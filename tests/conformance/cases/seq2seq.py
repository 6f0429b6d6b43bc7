"""tf.contrib.seq2seq: names of variables, static shapes, values and gradients of attention, decoders and beams."""

import numpy as np

_numbers = np.random.RandomState(5)
MEMORY = _numbers.standard_normal((3, 4, 6)).astype(np.float32)
LENGTHS = np.array([4, 2, 3], np.int32)
INPUTS = _numbers.standard_normal((3, 5, 2)).astype(np.float32)
STEPS = np.array([5, 3, 1], np.int32)
LOGITS = _numbers.standard_normal((3, 4, 5)).astype(np.float32)
TARGETS = _numbers.randint(0, 5, (3, 4)).astype(np.int32)
WEIGHTS = np.array([[1, 1, 1, 1], [1, 0.5, 0, 0], [0, 0, 0, 0]], np.float32)
EMBEDDING = _numbers.standard_normal((7, 2)).astype(np.float32)

MECHANISMS = {
    "luong": "S.LuongAttention(5, memory)",
    "luong lengths": "S.LuongAttention(5, memory, lengths, scale=True)",
    "luong hard": "S.LuongAttention(5, memory, lengths, probability_fn=S.hardmax)",
    "luong masked": "S.LuongAttention(5, memory, lengths, score_mask_value=-3.)",
    "luong own keys": "S.LuongAttention(5, memory, custom_key_value_fn=lambda k, v: (k * 2., v + 1.))",
    "bahdanau": "S.BahdanauAttention(4, memory)",
    "bahdanau normalized": "S.BahdanauAttention(4, memory, lengths, normalize=True)",
    "monotonic": "S.BahdanauMonotonicAttention(4, memory, lengths)",
    "monotonic normalized": "S.BahdanauMonotonicAttention(4, memory, normalize=True, score_bias_init=-.5)",
    "monotonic luong": "S.LuongMonotonicAttention(5, memory, lengths, scale=True, score_bias_init=.3)",
    "monotonic recursive": "S.LuongMonotonicAttention(5, memory, lengths, mode='recursive')",
    "monotonic hard": "S.LuongMonotonicAttention(5, memory, lengths, mode='hard')",
}
WRAPPERS = {
    "plain": "S.AttentionWrapper(cell, made)",
    "layer": "S.AttentionWrapper(cell, made, attention_layer_size=3)",
    "own layer": "S.AttentionWrapper(cell, made, attention_layer=tf.layers.Dense(2, activation=tf.tanh, name='mine'))",
    "output": "S.AttentionWrapper(cell, made, 3, output_attention=False, name='attending')",
    "history": "S.AttentionWrapper(cell, made, 3, alignment_history=True)",
    "input": "S.AttentionWrapper(cell, made, 2, cell_input_fn=lambda x, a: x + a)",
    "two": "S.AttentionWrapper(cell, [made, S.BahdanauAttention(4, memory)], attention_layer_size=[3, 2])",
    "two with history": "S.AttentionWrapper(cell, [made, S.BahdanauAttention(4, memory)], alignment_history=True)",
}
DECODERS = {
    "training": "S.TrainingHelper(x, n)",
    "time major training": "S.TrainingHelper(tf.transpose(x, [1, 0, 2]), n, time_major=True)",
    "scheduled never": "S.ScheduledEmbeddingTrainingHelper(x, n, E, 0.)",
    "scheduled outputs never": "S.ScheduledOutputTrainingHelper(x, n, 0., next_inputs_fn=lambda o: o[:, :2])",
    "scheduled outputs always": "S.ScheduledOutputTrainingHelper(x, n, 1., next_inputs_fn=lambda o: o[:, :2] * .5)",
    "scheduled beside": "S.ScheduledOutputTrainingHelper(x[:, :, :1], n, 1., auxiliary_inputs=x[:, :, 1:], "
    "next_inputs_fn=lambda o: o[:, :1])",
    "greedy": "S.GreedyEmbeddingHelper(E, tf.fill([tf.size(n)], 1), 2)",
    "greedy function": "S.GreedyEmbeddingHelper(lambda ids: tf.nn.embedding_lookup(E, ids), [1, 3, 0], 4)",
    "inference": "S.InferenceHelper(lambda o: o[:, :2] * 2., [2], tf.float32, x[:, 0], lambda s: s[:, 0] > .3)",
    "inference next": "S.InferenceHelper(lambda o: tf.argmax(o, -1), [], tf.int64, x[:, 0], lambda s: tf.equal(s, 4), "
    "lambda s: tf.nn.embedding_lookup(E, s))",
    "custom": "S.CustomHelper(lambda: (tf.equal(n, 0), x[:, 0]), lambda time, outputs, state: tf.fill([3], time), "
    "lambda time, outputs, state, sample_ids: (time + 1 >= n, x[:, 1], state))",
}
RUNS = {
    "plain": "",
    "imputed": "impute_finished=True",
    "time major": "output_time_major=True",
    "at most": "maximum_iterations=2",
    "computed limit": "maximum_iterations=tf.reduce_max(n) - 1, impute_finished=True",
    "named": "scope='other'",
}


def cases(tf):
    found = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    for name, mechanism in MECHANISMS.items():
        found["mechanism, " + name] = lambda tf, text=mechanism: run_mechanism(tf, text)
    for name, wrapper in WRAPPERS.items():
        found["wrapper, " + name] = lambda tf, text=wrapper: run_wrapper(tf, text)
    pairs = [(helper, "at most") for helper in DECODERS] + [("training", run) for run in RUNS]
    pairs += [("greedy", "computed limit"), ("custom", "imputed")]
    for helper, run in pairs:
        found["decoder, " + helper + ", " + run] = lambda tf, a=helper, b=run: run_decoder(tf, DECODERS[a], RUNS[b])
    return found


def initializer(shape, dtype=None, partition_info=None):
    return np.sin(np.arange(np.prod(shape), dtype=np.float32) + 1).reshape(shape)


def leaves(value):
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


def results(tf, found, feeds, sources):
    tensors = [leaf.stack() if hasattr(leaf, "stack") else leaf for leaf in leaves(found)]
    weighted = [
        tf.reduce_sum(leaf * tf.cos(tf.reshape(tf.to_float(tf.range(tf.size(leaf))), tf.shape(leaf))))
        for leaf in tensors
        if leaf.dtype == tf.float32
    ]
    gradients = tf.gradients(tf.add_n(weighted), sources + tf.trainable_variables())
    gradients = [None if g is None else tf.convert_to_tensor(g) for g in gradients]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        values = session.run([tensors, [g for g in gradients if g is not None]], feeds)
    return [[variable.name for variable in tf.global_variables()], [g is None for g in gradients], values]


def shapes(found):
    return [str(leaf.shape) for leaf in leaves(found) if hasattr(leaf, "op")]


def run_mechanism(tf, text):
    memory = tf.placeholder(tf.float32, [None, None, 6])
    with tf.variable_scope("top", initializer=initializer):
        made = eval(text, {"tf": tf, "S": tf.contrib.seq2seq, "memory": memory, "lengths": tf.constant(LENGTHS)})
        state = made.initial_state(3, tf.float32)
        first = made(tf.constant(MEMORY[:, 0, :5]), state)
    return [shapes([made.keys, made.values, state, first]), results(tf, [state, first], {memory: MEMORY}, [memory])]


def attentive(tf, wrapper, memory, x):
    S = tf.contrib.seq2seq
    made = S.LuongAttention(5, memory, tf.constant(LENGTHS), scale=True)
    cell = tf.nn.rnn_cell.GRUCell(5)
    return eval(wrapper, {"tf": tf, "S": S, "memory": memory, "cell": cell, "made": made, "x": x})


def run_wrapper(tf, wrapper):
    memory, x = tf.constant(MEMORY), tf.constant(INPUTS)
    with tf.variable_scope("top", initializer=initializer):
        cell = attentive(tf, wrapper, memory, x)
        helper = tf.contrib.seq2seq.TrainingHelper(x, STEPS)
        start = cell.zero_state(3, tf.float32)
        decoder = tf.contrib.seq2seq.BasicDecoder(cell, helper, start)
        found = tf.contrib.seq2seq.dynamic_decode(decoder, impute_finished=True)
    sizes = [str(cell.output_size), str(cell.state_size.attention), str(cell.state_size.cell_state)]
    return [sizes, results(tf, found, {}, [memory, x])]


def run_decoder(tf, helper, run):
    x, n = tf.placeholder(tf.float32, [3, None, 2]), tf.placeholder(tf.int32, [3])
    S = tf.contrib.seq2seq
    with tf.variable_scope("top", initializer=initializer):
        E = tf.get_variable("E", [7, 2])
        names = {"tf": tf, "S": S, "x": x, "n": n, "E": E}
        made = eval(helper, names)
        cell = tf.nn.rnn_cell.LSTMCell(5)
        decoder = S.BasicDecoder(cell, made, cell.zero_state(3, tf.float32), tf.layers.Dense(7, name="out"))
        if "auxiliary" in helper:
            decoder = S.BasicDecoder(cell, made, cell.zero_state(3, tf.float32))
        found = eval("S.dynamic_decode(decoder, " + run + ")", dict(names, decoder=decoder))
    static = [str(found[0].rnn_output.shape), str(found[2].shape)]
    kinds = [type(found[0]).__name__, type(found[1]).__name__]
    return [static, kinds, results(tf, found, {x: INPUTS, n: STEPS}, [x])]


def case_empty_sequences(tf):
    x = tf.placeholder(tf.float32, [2, 3, 2])
    cell = tf.nn.rnn_cell.GRUCell(2)
    decoder = tf.contrib.seq2seq.BasicDecoder(
        cell, tf.contrib.seq2seq.TrainingHelper(x, [0, 0]), cell.zero_state(2, tf.float32)
    )
    with tf.variable_scope("top", initializer=initializer):
        outputs, _, lengths = tf.contrib.seq2seq.dynamic_decode(decoder)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run([tf.shape(outputs.rnn_output), lengths], {x: INPUTS[:2, :3]})


def beams(tf, cell, start, **more):
    S = tf.contrib.seq2seq
    E = tf.get_variable("E", [7, 2], initializer=tf.constant_initializer(EMBEDDING))
    decoder = S.BeamSearchDecoder(cell, E, [1, 0, 3], 2, start, 3, **more)
    return S.dynamic_decode(decoder, maximum_iterations=6)


def searched(tf, found):
    outputs, state, lengths = found
    steps = outputs.beam_search_decoder_output
    static = shapes([outputs.predicted_ids, steps.scores, steps.parent_ids, state.log_probs, lengths])
    tensors = [outputs.predicted_ids, steps.scores, steps.predicted_ids, steps.parent_ids, state.log_probs]
    tensors += [state.finished, state.lengths, lengths, leaves(state.cell_state), state.accumulated_attention_probs]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [static, session.run([leaf.stack() if hasattr(leaf, "stack") else leaf for leaf in leaves(tensors)])]


def case_beams(tf):
    with tf.variable_scope("top", initializer=initializer):
        cell = tf.nn.rnn_cell.LSTMCell(5)
        start = tf.contrib.seq2seq.tile_batch(cell.zero_state(3, tf.float32), 3)
        return searched(tf, beams(tf, cell, start, output_layer=tf.layers.Dense(7, name="out")))


def case_beams_with_length_penalty(tf):
    with tf.variable_scope("top", initializer=initializer):
        cell = tf.nn.rnn_cell.GRUCell(7)
        return searched(tf, beams(tf, cell, cell.zero_state(9, tf.float32), length_penalty_weight=0.8))


def case_beams_with_attention(tf):
    memory = tf.placeholder_with_default(MEMORY, [3, None, 6])
    return attended(tf, memory, coverage_penalty_weight=0.3, length_penalty_weight=0.5)


def case_beams_with_computed_sizes(tf):
    return attended(tf, tf.placeholder_with_default(MEMORY, [None, None, 6]))


def case_beams_that_keep_their_order(tf):
    return attended(tf, tf.constant(MEMORY), reorder_tensor_arrays=False)


def case_beams_with_elements_of_known_shape(tf):
    return attended(tf, tf.constant(MEMORY))


def attended(tf, memory, **more):
    with tf.variable_scope("top", initializer=initializer):
        memory = tf.contrib.seq2seq.tile_batch(memory, 3)
        made = tf.contrib.seq2seq.LuongAttention(5, memory, tf.contrib.seq2seq.tile_batch(tf.constant(LENGTHS), 3))
        cell = tf.nn.rnn_cell.GRUCell(5)
        cell = tf.contrib.seq2seq.AttentionWrapper(cell, made, 3, alignment_history=True)
        start = cell.zero_state(9, tf.float32)
        return searched(tf, beams(tf, cell, start, output_layer=tf.layers.Dense(7, name="out"), **more))


def case_tiles(tf):
    x = tf.placeholder(tf.float32, [None, 4])
    found = tf.contrib.seq2seq.tile_batch((x, tf.constant([1, 2, 3])), 2)
    with tf.Session() as session:
        return [shapes(found), session.run(found, {x: MEMORY[:2, :, 0]})]


def case_trees(tf):
    numbers = np.random.RandomState(3)
    ids = numbers.randint(0, 5, (4, 2, 3)).astype(np.int32)
    parents = numbers.randint(0, 3, (4, 2, 3)).astype(np.int32)
    found = [tf.contrib.seq2seq.gather_tree(ids, parents, lengths, 4) for lengths in ([4, 4], [4, 2], [9, 0])]
    with tf.Session() as session:
        return [shapes(found), session.run(found)]


def case_losses(tf):
    flags = ("average_across_timesteps", "average_across_batch", "sum_over_timesteps", "sum_over_batch")
    logits = tf.constant(LOGITS)
    found = []
    for number in range(16):
        chosen = {flag: bool(number >> index & 1) for index, flag in enumerate(flags)}
        try:
            loss = tf.contrib.seq2seq.sequence_loss(logits, tf.constant(TARGETS), tf.constant(WEIGHTS), **chosen)
            with tf.Session() as session:
                found.append([str(loss.shape), session.run([loss, tf.gradients(loss, logits)])])
        except ValueError:
            found.append("ValueError")
    return found


def case_own_loss(tf):
    def own(labels, logits):
        return tf.to_float(labels) * logits[:, 0]

    loss = tf.contrib.seq2seq.sequence_loss(
        tf.constant(LOGITS), tf.constant(TARGETS), tf.constant(WEIGHTS), softmax_loss_function=own
    )
    with tf.Session() as session:
        return session.run(loss)


def case_monotonic(tf):
    p = tf.constant(np.random.RandomState(1).uniform(size=(3, 4)).astype(np.float32))
    before = tf.nn.softmax(tf.constant(MEMORY[:, :, 0]))
    hard = tf.to_float(p > 0.5)
    found = [tf.contrib.seq2seq.monotonic_attention(p, before, mode) for mode in ("recursive", "parallel")]
    found += [tf.contrib.seq2seq.monotonic_attention(hard, tf.one_hot([0, 2, 1], 4), "hard")]
    found += [tf.contrib.seq2seq.safe_cumprod(p, axis=1, exclusive=True), tf.contrib.seq2seq.hardmax(p)]
    with tf.Session() as session:
        return [shapes(found), session.run([found, tf.gradients(found[0], [p, before]), tf.gradients(found[1], p)])]


def case_clones(tf):
    memory = tf.constant(MEMORY)
    cell = attentive(tf, "S.AttentionWrapper(cell, made, 3)", memory, None)
    state = cell.zero_state(3, tf.float32)
    with tf.Session() as session:
        cloned = session.run(state.clone(cell_state=tf.ones([3, 5])).cell_state)
    try:
        state.clone(cell_state=tf.ones([3, 4]))
    except ValueError as error:
        return [cloned, type(error).__name__]
    return cloned


def case_initial_cell_state(tf):
    S = tf.contrib.seq2seq
    cell = tf.nn.rnn_cell.GRUCell(5)
    with tf.variable_scope("top", initializer=initializer):
        made = S.LuongAttention(5, tf.constant(MEMORY))
        wrapper = S.AttentionWrapper(cell, made, initial_cell_state=tf.ones([3, 5]))
        output, state = wrapper(tf.constant(INPUTS[:, 0]), wrapper.zero_state(3, tf.float32))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [[v.name for v in tf.global_variables()], session.run([output, state.cell_state])]


def case_scheduled_samples(tf):
    """Every next input is a sample: of one class where its logit is far larger."""
    S = tf.contrib.seq2seq
    E = tf.constant(EMBEDDING)
    cell = tf.nn.rnn_cell.GRUCell(5)
    far = tf.layers.Dense(7, kernel_initializer=tf.zeros_initializer(), name="out", bias_initializer=peak)
    helper = S.ScheduledEmbeddingTrainingHelper(tf.constant(INPUTS), STEPS, E, 1.0)
    with tf.variable_scope("top", initializer=initializer):
        decoder = S.BasicDecoder(cell, helper, cell.zero_state(3, tf.float32), far)
        outputs, state, _ = S.dynamic_decode(decoder, impute_finished=True)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run([outputs, state])


def peak(shape, dtype=None, partition_info=None):
    return np.eye(7, dtype=np.float32)[3] * 1000


def case_samples(tf):
    S = tf.contrib.seq2seq
    helper = S.SampleEmbeddingHelper(tf.constant(EMBEDDING), [0, 1, 2], 6, softmax_temperature=0.01)
    found = helper.sample(0, tf.constant(LOGITS[:, 0] * 100), None)
    with tf.Session() as session:
        return [found.dtype.name, session.run(found), session.run(helper.initialize()[0])]


def error(tf, call):
    S, R = tf.contrib.seq2seq, tf.nn.rnn_cell
    x = tf.placeholder(tf.float32, [3, 4, 2])
    names = {"tf": tf, "S": S, "R": R, "x": x, "memory": tf.constant(MEMORY), "cell": R.GRUCell(5)}
    try:
        names["made"] = S.LuongAttention(5, tf.constant(MEMORY))
        eval(call, names)
    except Exception as caught:  # noqa: BLE001 - the class is the outcome
        return type(caught).__name__
    return None


def case_errors(tf):
    calls = (
        "S.LuongAttention(5, tf.placeholder(tf.float32, [3, 4, None]))",
        "S.LuongAttention(4, memory)(tf.ones([3, 5]), None)",
        "S.LuongAttention(4, memory, probability_fn=3)(tf.ones([3, 4]), None)",
        "S.AttentionWrapper(cell, 3)",
        "S.AttentionWrapper(cell, [3])",
        "S.AttentionWrapper(3, made)",
        "S.AttentionWrapper(cell, made, [3, 4])",
        "S.AttentionWrapper(cell, made, 3, attention_layer=tf.layers.Dense(2))",
        "S.AttentionWrapper(cell, made, cell_input_fn=3)",
        "S.AttentionWrapper(cell, made)(tf.ones([3, 2]), tf.ones([3, 5]))",
        "S.AttentionWrapper(cell, made).zero_state(4, tf.float32)",
        "S.TrainingHelper(x, [[1, 2, 3]])",
        "S.BasicDecoder(cell, 3, None)",
        "S.BasicDecoder(3, S.TrainingHelper(x, [1, 2, 3]), None)",
        "S.BasicDecoder(cell, S.TrainingHelper(x, [1, 2, 3]), None, output_layer=3)",
        "S.dynamic_decode(3)",
        "S.dynamic_decode(S.BasicDecoder(cell, S.TrainingHelper(x, [1, 2, 3]), tf.zeros([3, 5])), "
        "maximum_iterations=[1])",
        "S.GreedyEmbeddingHelper(tf.ones([3, 2]), 1, 2)",
        "S.GreedyEmbeddingHelper(tf.ones([3, 2]), [1], [2])",
        "S.ScheduledEmbeddingTrainingHelper(x, [1, 2, 3], tf.ones([3, 2]), [[.5]])",
        "S.ScheduledOutputTrainingHelper(x, [1, 2, 3], [[.5]])",
        "S.CustomHelper(None, None, None).batch_size",
        "S.sequence_loss(tf.ones([3, 2]), tf.ones([3, 2]), tf.ones([3, 2]))",
        "S.sequence_loss(tf.ones([3, 2, 1]), tf.ones([3]), tf.ones([3, 2]))",
        "S.sequence_loss(tf.ones([3, 2, 1]), tf.ones([3, 2]), tf.ones([3]))",
        "S.monotonic_attention(tf.ones([3, 2]), tf.ones([3, 2]), 'other')",
        "S.tile_batch(tf.constant(1.), 2)",
        "S.BeamSearchDecoder(cell, tf.ones([5, 2]), [[1]], 2, tf.zeros([3, 5]), 3)",
        "S.BeamSearchDecoder(cell, tf.ones([5, 2]), [1], [2], tf.zeros([3, 5]), 3)",
        "S.BeamSearchDecoder(cell, tf.ones([5, 2]), [1], 2, tf.zeros([4, 5]), 3)",
        "S.BeamSearchDecoder(cell, tf.ones([5, 2]), [1], 2, tf.zeros([3, 5]), 3, output_layer=3)",
        "S.BeamSearchDecoder(cell, tf.ones([5, 2]), [1], 2, tf.zeros([3, 5]), 3, coverage_penalty_weight=1.)"
        ".initialize()",
        "S.AttentionMechanism().alignments_size",
        "S.gather_tree([[1]], [[1]], [1], 1)",
    )
    return [error(tf, call) for call in calls]


def case_lengths_that_are_zero(tf):
    """Fails when the step runs."""
    n = tf.placeholder(tf.int32, [3])
    made = tf.contrib.seq2seq.LuongAttention(5, tf.constant(MEMORY), n)
    alignments, _ = made(tf.constant(MEMORY[:, 0, :5]), None)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        try:
            session.run(alignments, {n: [1, 0, 2]})
        except tf.errors.InvalidArgumentError as caught:
            return type(caught).__name__
    return None


def case_fields_and_bases(tf):
    tuples = (
        tf.contrib.seq2seq.AttentionWrapperState,
        tf.contrib.seq2seq.BasicDecoderOutput,
        tf.contrib.seq2seq.BeamSearchDecoderOutput,
        tf.contrib.seq2seq.BeamSearchDecoderState,
        tf.contrib.seq2seq.FinalBeamSearchDecoderOutput,
    )
    helpers = (
        tf.contrib.seq2seq.CustomHelper,
        tf.contrib.seq2seq.GreedyEmbeddingHelper,
        tf.contrib.seq2seq.InferenceHelper,
        tf.contrib.seq2seq.ScheduledOutputTrainingHelper,
    )
    mechanisms = (
        tf.contrib.seq2seq.BahdanauAttention,
        tf.contrib.seq2seq.BahdanauMonotonicAttention,
        tf.contrib.seq2seq.LuongMonotonicAttention,
    )
    found = [list(each._fields) for each in tuples]
    found.append([issubclass(each, tf.contrib.seq2seq.Helper) for each in helpers])
    found.append([issubclass(each, tf.contrib.seq2seq.AttentionMechanism) for each in mechanisms])
    return [found, issubclass(tf.contrib.seq2seq.BeamSearchDecoder, tf.contrib.seq2seq.Decoder)]
