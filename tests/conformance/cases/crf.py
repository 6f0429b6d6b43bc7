"""tf.contrib.crf: scores, norms, likelihoods with gradients, and the most probable tags."""

import numpy as np

_numbers = np.random.RandomState(2)
INPUTS = _numbers.standard_normal((3, 4, 5)).astype(np.float32)
TAGS = _numbers.randint(0, 5, (3, 4)).astype(np.int32)
BITMAP = _numbers.uniform(size=(3, 4, 5)) > 0.4
BITMAP[:, :, 2] = True
LENGTHS = np.array([4, 2, 0], np.int32)
TRANSITIONS = _numbers.standard_normal((5, 5)).astype(np.float32)


def cases(tf):
    found = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    for name, time in (("known", 4), ("one", 1), ("two", 2)):
        for kind in ("int32", "int64"):
            found[f"all of {name} steps, {kind}"] = lambda tf, time=time, kind=kind: all_of(tf, time, kind, time)
        found[f"all of {name} steps, computed"] = lambda tf, time=time: all_of(tf, time, "int32", None)
    return found


def all_of(tf, time, kind, static):
    C = tf.contrib.crf
    inputs = tf.placeholder(tf.float32, [None, static, 5])
    tags = tf.placeholder_with_default(TAGS[:, :time].astype(kind), [None, static])
    lengths = tf.constant(np.minimum(LENGTHS, time).astype(kind))
    transitions = tf.constant(TRANSITIONS)
    decoded, best = C.crf_decode(inputs, transitions, lengths)
    found = [
        C.crf_sequence_score(inputs, tags, lengths, transitions),
        C.crf_log_norm(inputs, lengths, transitions),
        C.crf_log_likelihood(inputs, tags, lengths, transitions)[0],
        C.crf_unary_score(tags, lengths, inputs),
        best,
    ]
    if static != 1:
        found.append(C.crf_binary_score(tags, lengths, transitions))
    # TensorFlow's gradient is a NaN where a whole sequence is masked.
    positive = tf.constant(np.maximum(np.minimum(LENGTHS, time), 1).astype(kind))
    bitmap = tf.constant(BITMAP[:, :time])
    multitag = C.crf_multitag_sequence_score(inputs, bitmap, positive, transitions)
    gradients = tf.gradients(tf.add_n(found), [inputs] if time == 1 else [inputs, transitions])
    with tf.Session() as session:
        ranks = [each.shape.ndims for each in (*found, decoded)] if static else None
        return [
            ranks,
            decoded.dtype.name,
            session.run([found, decoded, multitag, gradients], {inputs: INPUTS[:, :time]}),
        ]


def case_variable(tf):
    with tf.variable_scope("top", initializer=tf.constant_initializer(TRANSITIONS)):
        likelihood, transitions = tf.contrib.crf.crf_log_likelihood(*map(tf.constant, (INPUTS, TAGS, LENGTHS)))
    gradients = tf.gradients(likelihood, transitions)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        names = [variable.name for variable in tf.global_variables()]
        return [names, session.run([likelihood, transitions, gradients])]


def case_arrays(tf):
    return [list(tf.contrib.crf.viterbi_decode(INPUTS[0, :time], TRANSITIONS)) for time in (4, 2, 1)]


def case_cells(tf):
    C = tf.contrib.crf
    cells = [C.CrfForwardRnnCell(tf.constant(TRANSITIONS)), C.CrfDecodeForwardRnnCell(tf.constant(TRANSITIONS))]
    back = C.CrfDecodeBackwardRnnCell(5)
    found = [cell(tf.constant(INPUTS[:, 1]), tf.constant(INPUTS[:, 0])) for cell in cells]
    found.append(back(tf.constant(np.tile(TAGS[:, :1], [1, 5]) + np.arange(5, dtype=np.int32)), [[1], [0], [4]]))
    with tf.Session() as session:
        return [[[cell.state_size, cell.output_size] for cell in (*cells, back)], session.run(found)]


def case_training(tf):
    x = tf.constant(INPUTS)
    with tf.variable_scope("top", initializer=tf.zeros_initializer()):
        scores = tf.layers.dense(x, 5)
        lengths = tf.constant([4, 2, 3])
        likelihood, transitions = tf.contrib.crf.crf_log_likelihood(scores, tf.constant(TAGS), lengths)
    loss = -tf.reduce_mean(likelihood)
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    decoded, _ = tf.contrib.crf.crf_decode(scores, transitions, lengths)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        losses = [session.run([loss, train])[0] for _ in range(10)]
        return [losses, session.run(decoded)]
