"""Places that a step computes and that are out of bounds, and integers divided by zero."""


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


def computed(tf, *values):
    """Values that only the step knows."""
    found = [tf.Variable(value) for value in values]
    return [v + 0 for v in found]


def case_gather_past_the_end(tf):
    (i,) = computed(tf, 5)
    return caught(tf, tf.gather([1.0, 2.0], i))


def case_gather_before_the_beginning(tf):
    (i,) = computed(tf, -1)
    return caught(tf, tf.gather([1.0, 2.0], i))


def case_gather_nd_past_the_end(tf):
    (i,) = computed(tf, [[0, 3]])
    return caught(tf, tf.gather_nd([[1.0, 2.0]], i))


def case_slice_past_the_end(tf):
    (i,) = computed(tf, [2])
    return caught(tf, tf.slice([1, 2, 3], i, [2]))


def case_slice_before_the_beginning(tf):
    (i,) = computed(tf, [-1])
    return caught(tf, tf.slice([1, 2, 3], i, [2]))


def case_strided_slice_past_the_end(tf):
    (i,) = computed(tf, 2)
    x = tf.constant([1, 2, 3])
    return [caught(tf, x[i : i + 3]), caught(tf, x[i + 4 :]), caught(tf, x[i - 4 : i])]


def case_index_past_the_end(tf):
    (i,) = computed(tf, 3)
    return caught(tf, tf.constant([1, 2, 3])[i])


def case_negative_index(tf):
    (i,) = computed(tf, -1)
    return caught(tf, tf.constant([1, 2, 3])[i])


def case_index_before_the_beginning(tf):
    (i,) = computed(tf, -4)
    return caught(tf, tf.constant([1, 2, 3])[i])


def case_division_by_zero(tf):
    a, b = computed(tf, 7, 0)
    x, y = computed(tf, 7.0, 0.0)
    found = [caught(tf, op(a, b)) for op in (tf.div, tf.floordiv, tf.mod, tf.truncatediv, tf.truncatemod, tf.floor_div)]
    return found + [str(caught(tf, op(x, y))) for op in (tf.div, tf.floordiv, tf.truediv)] + [str(caught(tf, a / b))]


def case_division_by_zero_in_an_array(tf):
    a, b = computed(tf, [7, 8], [1, 0])
    return [caught(tf, a // b), caught(tf, a % b)]


def case_division_by_a_fed_zero(tf):
    a, b = tf.placeholder(tf.int64), tf.placeholder(tf.int64)
    return [caught(tf, a // b, {a: 7, b: 0}), caught(tf, a % b, {a: 7, b: 0}), caught(tf, a // b, {a: -7, b: 2})]


def case_one_hot_out_of_range(tf):
    (i,) = computed(tf, [0, 5, -1])
    return caught(tf, tf.one_hot(i, 3))


def case_scatter_nd_out_of_range(tf):
    (i,) = computed(tf, [[0], [5]])
    return caught(tf, tf.scatter_nd(i, [1.0, 2.0], [3]))


def case_embedding_lookup_out_of_range(tf):
    (i,) = computed(tf, [0, 5])
    return caught(tf, tf.nn.embedding_lookup(tf.constant([[1.0], [2.0]]), i))


def case_dynamic_partition_out_of_range(tf):
    (i,) = computed(tf, [0, 5])
    return caught(tf, tf.dynamic_partition([1.0, 2.0], i, 2))


def case_scatter_nd_update_out_of_range(tf):
    v = tf.Variable([1.0, 2.0])
    (i,) = computed(tf, [[5]])
    return caught(tf, tf.scatter_nd_update(v, i, [3.0]))


def case_gather_of_a_variable_along_another_dimension(tf):
    v = tf.Variable([[1.0, 2.0]])
    good, bad = computed(tf, [1, 0], [1, 2])
    return [caught(tf, tf.gather(v, good, axis=1)), caught(tf, tf.gather(v, bad, axis=1))]


def case_division_by_zero_in_a_loop_that_changes_a_variable(tf):
    v = tf.Variable(0)

    def body(i):
        with tf.control_dependencies([tf.assign_add(v, 1)]):
            return i + 8 // (2 - i)

    return caught(tf, tf.while_loop(lambda i: i < 9, body, [2]))
