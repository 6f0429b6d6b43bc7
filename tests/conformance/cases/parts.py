"""Variables made in parts by the oldest function for it."""


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def make(tf, *args, **kwargs):
    parts = tf.create_partitioned_variables(*args, **kwargs)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [[v.op.name, v.dtype.name, session.run(v)] for v in parts]


def case_two_parts(tf):
    return make(tf, [3, 2], [2, 1], tf.ones_initializer(), name="w")


def case_columns_without_a_name(tf):
    return make(tf, [1, 4], [1, 3], tf.zeros_initializer(), tf.int32) + make(tf, [2], [2], tf.zeros_initializer())


def case_in_a_scope(tf):
    with tf.variable_scope("s"):
        found = make(tf, [2], [2], tf.zeros_initializer(), name="w", trainable=False, collections=["mine", "variables"])
    return [found, len(tf.get_collection("mine")), len(tf.trainable_variables())]


def case_again(tf):
    first = tf.create_partitioned_variables([2], [2], tf.zeros_initializer(), name="w")
    again = tf.create_partitioned_variables([2], [2], tf.zeros_initializer(), name="w", reuse=True)
    return [v.op.name for v in first + again] + [first[0] is again[0]]


def case_taken(tf):
    tf.create_partitioned_variables([2], [2], tf.zeros_initializer(), name="w")
    return [v.op.name for v in tf.create_partitioned_variables([2], [2], tf.zeros_initializer(), name="w")]


def case_other_lengths(tf):
    return make(tf, [2, 3], [2], tf.zeros_initializer())


def case_without_dimensions(tf):
    return make(tf, [], [], tf.zeros_initializer())


def case_two_dimensions_cut(tf):
    return make(tf, [2, 2], [2, 2], tf.zeros_initializer())


def case_the_whole(tf):
    return make(tf, [2, 2], [1, 1], tf.zeros_initializer(), name="w")


def update(tf, *args, **kwargs):
    found = tf.batch_scatter_update(*args, **kwargs)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(found)


def case_batch_scatter_update(tf):
    return update(tf, tf.Variable([[1, 2, 3], [4, 5, 6]]), [[0, 2], [1, 0]], [[10, 20], [30, 40]])


def case_batch_scatter_update_of_vectors(tf):
    v = tf.Variable([[[1.0, 2.0], [3.0, 4.0]]])
    return update(tf, v, [[1]], [[[7.0, 8.0]]], use_locking=False, name="n")


def case_batch_scatter_update_of_a_vector(tf):
    return update(tf, tf.Variable([1, 2, 3]), [2, 0], [9, 8])


def case_batch_scatter_update_with_int64(tf):
    return update(tf, tf.Variable([[1, 2], [3, 4]]), tf.constant([[1], [0]], tf.int64), [[5], [6]])
