"""Sequence examples, sparse tensors as text, and loops over cells by hand."""

import numpy as np


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def run(tf, fetches, feeds=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feeds)


def caught(tf, fetches, feeds=None):
    """The value, or the class of the error of the run."""
    try:
        return run(tf, fetches, feeds)
    except tf.errors.OpError as error:
        return "run: " + type(error).__name__


def refused(build):
    """The class of the error that building gives, or "builds"."""
    try:
        build()
    except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
        return type(error).__name__
    return "builds"


def message(tf, label, words, scores=None, tags=None):
    ints = [tf.train.Feature(int64_list=tf.train.Int64List(value=word)) for word in words]
    lists = {"words": tf.train.FeatureList(feature=ints)}
    if scores is not None:
        floats = [tf.train.Feature(float_list=tf.train.FloatList(value=score)) for score in scores]
        lists["scores"] = tf.train.FeatureList(feature=floats)
    if tags is not None:
        texts = [tf.train.Feature(bytes_list=tf.train.BytesList(value=tag)) for tag in tags]
        lists["tags"] = tf.train.FeatureList(feature=texts)
    context = {"label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label]))}
    return tf.train.SequenceExample(
        context=tf.train.Features(feature=context), feature_lists=tf.train.FeatureLists(feature_list=lists)
    ).SerializeToString()


def features(tf):
    context = {"label": tf.FixedLenFeature([], tf.int64), "more": tf.VarLenFeature(tf.string)}
    sequences = {
        "words": tf.VarLenFeature(tf.int64),
        "scores": tf.FixedLenSequenceFeature([2], tf.float32, allow_missing=True),
        "tags": tf.FixedLenSequenceFeature([], tf.string, allow_missing=True),
    }
    return context, sequences


def case_one_sequence(tf):
    data = message(tf, 7, [[1], [2, 3], []], [[0.5, 1.0], [1.5, 2.0], [2.5, 3.0]], [[b"a"], [b"b"], [b"c"]])
    found = tf.parse_single_sequence_example(data, *features(tf))
    shapes = [found[1]["scores"].shape.as_list(), found[1]["tags"].shape.as_list(), found[0]["label"].shape.as_list()]
    return [shapes, run(tf, [[part[key] for key in sorted(part)] for part in found])]


def case_a_sequence_that_lacks_lists(tf):
    found = tf.parse_single_sequence_example(message(tf, 7, []), *features(tf))
    return run(tf, [[part[key] for key in sorted(part)] for part in found])


def case_a_required_list_that_is_not_there(tf):
    wanted = {"scores": tf.FixedLenSequenceFeature([2], tf.float32)}
    return caught(tf, tf.parse_single_sequence_example(message(tf, 7, []), None, wanted)[1]["scores"])


def case_a_list_of_another_type(tf):
    wanted = {"words": tf.FixedLenSequenceFeature([], tf.float32)}
    return caught(tf, tf.parse_single_sequence_example(message(tf, 7, [[1]]), None, wanted)[1]["words"])


def case_steps_of_another_length(tf):
    wanted = {"words": tf.FixedLenSequenceFeature([], tf.int64)}
    return caught(tf, tf.parse_single_sequence_example(message(tf, 7, [[1], [1, 2]]), None, wanted)[1]["words"])


def case_many_sequences(tf):
    data = [
        message(tf, 7, [[1], [2, 3], []], [[0.5, 1.0], [1.5, 2.0], [2.5, 3.0]], [[b"a"], [b"b"], [b"c"]]),
        message(tf, 8, []),
        message(tf, 9, [[4, 5, 6]], [[3.5, 4.0]], [[b"d"]]),
    ]
    found = tf.io.parse_sequence_example(data, *features(tf))
    return run(tf, [[part[key] for key in sorted(part)] for part in found])


def case_no_features_of_sequences(tf):
    return [
        refused(lambda: tf.parse_single_sequence_example(b"")),
        refused(lambda: tf.io.parse_sequence_example([b""])),
        refused(lambda: tf.parse_single_sequence_example(b"", None, {"a": tf.FixedLenFeature([], tf.int64)})),
    ]


def case_sparse_as_text(tf):
    s = tf.SparseTensor([[0, 0], [0, 2], [2, 1]], [1.0, 2.0, 3.0], [3, 4])
    many = tf.serialize_many_sparse(s)
    back = tf.deserialize_many_sparse(many, tf.float32)
    one = tf.serialize_sparse(s)
    two = tf.deserialize_many_sparse(tf.stack([one, one]), tf.float32, rank=3)
    return [
        one.shape.as_list(),
        many.shape.as_list(),
        [two.indices.shape.as_list(), two.dense_shape.shape.as_list()],
        run(tf, [back, two, tf.shape(many), tf.shape(one)]),
    ]


def case_sparse_as_text_of_other_types(tf):
    s = tf.SparseTensor([[0, 1], [1, 0]], ["a", "b"], [2, 2])
    value = tf.SparseTensorValue(np.array([[0, 1]], np.int64), np.array([5], np.int64), np.array([2, 2], np.int64))
    return [
        run(tf, tf.deserialize_many_sparse(tf.serialize_many_sparse(s), tf.string)),
        run(tf, tf.deserialize_many_sparse(tf.serialize_many_sparse(value), tf.int64)),
        caught(tf, tf.deserialize_many_sparse(tf.serialize_many_sparse(s), tf.float32)),
        caught(tf, tf.deserialize_many_sparse([["a", "b", "c"]], tf.float32)),
        refused(lambda: tf.serialize_sparse(3)),
    ]


def case_sparse_as_text_through_a_batch(tf):
    number = tf.placeholder(tf.int64, [])
    s = tf.SparseTensor(tf.reshape(tf.range(number), [-1, 1]), tf.ones([number]), tf.reshape(number, [1]))
    queue = tf.FIFOQueue(10, tf.string, shapes=[[3]])
    put = queue.enqueue(tf.serialize_sparse(s))
    got = tf.deserialize_many_sparse(queue.dequeue_many(2), tf.float32, rank=2)
    with tf.Session() as session:
        session.run(put, {number: 1})
        session.run(put, {number: 3})
        return session.run(tf.sparse_tensor_to_dense(got))


def loop(tf, lengths, steps=4):
    inputs = tf.constant(np.linspace(-1, 1, 24).reshape(4, 2, 3).astype(np.float32))
    array = tf.TensorArray(tf.float32, size=steps).unstack(inputs)
    cell = tf.nn.rnn_cell.BasicRNNCell(2)

    def loop_fn(time, cell_output, cell_state, loop_state):
        state = cell.zero_state(2, tf.float32) if cell_output is None else cell_state
        finished = time >= lengths
        done = tf.reduce_all(finished)
        following = tf.cond(done, lambda: tf.zeros([2, 3]), lambda: array.read(time))
        return finished, following, state, cell_output, None if loop_state is None else loop_state + 1

    return cell, loop_fn


def seeded(tf):
    return tf.variable_scope("net", initializer=tf.constant_initializer(0.25))


def case_raw_rnn(tf):
    with seeded(tf):
        outputs, state, loop_state = tf.nn.raw_rnn(*loop(tf, tf.constant([4, 2])))
        return [type(outputs).__name__, run(tf, [outputs.stack(), state]), loop_state is None]


def case_raw_rnn_of_no_steps(tf):
    with seeded(tf):
        _, state, _ = tf.nn.raw_rnn(*loop(tf, tf.constant([0, 0])))
        return run(tf, state)


def case_raw_rnn_with_a_state_of_the_loop(tf):
    cell = tf.nn.rnn_cell.BasicRNNCell(2)

    def loop_fn(time, cell_output, cell_state, loop_state):
        if cell_output is None:
            return time >= [3, 3], tf.ones([2, 1]), cell.zero_state(2, tf.float32), tf.zeros([5]), tf.constant(0)
        emitted = tf.concat([cell_output, cell_output, cell_output[:, :1]], 1)
        return time >= [3, 3], cell_output[:, :1], cell_state, emitted, loop_state + 10

    with seeded(tf):
        outputs, state, loop_state = tf.nn.raw_rnn(cell, loop_fn)
        return run(tf, [outputs.stack(), state, loop_state])


def case_raw_rnn_names(tf):
    with tf.variable_scope("net"):
        tf.nn.raw_rnn(*loop(tf, tf.constant([4, 2])))
    return [v.name for v in tf.global_variables()]


def case_raw_rnn_refused(tf):
    cell = tf.nn.rnn_cell.BasicRNNCell(2)
    return [refused(lambda: tf.nn.raw_rnn(3, lambda *args: args)), refused(lambda: tf.nn.raw_rnn(cell, 3))]


def case_gradient_of_raw_rnn(tf):
    with seeded(tf):
        outputs, _, _ = tf.nn.raw_rnn(*loop(tf, tf.constant([4, 2])))
    variables = sorted(tf.trainable_variables(), key=lambda v: v.name)
    return run(tf, tf.gradients(tf.reduce_sum(outputs.stack()), variables))
