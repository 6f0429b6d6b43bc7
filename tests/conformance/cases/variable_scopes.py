"""get_variable and the scopes that say what it does."""

import numpy as np


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def op(tf, name="x"):
    return tf.constant(1.0, name=name).name


def case_names(tf):
    found = []
    with tf.variable_scope("a"):
        found += [tf.get_variable("v", [2]).name, op(tf)]
        with tf.variable_scope("b"):
            found += [tf.get_variable("v", [2]).name, op(tf), tf.Variable(1.0, name="w").name]
        with tf.name_scope("n"):
            found += [tf.get_variable("u", [2]).name, op(tf), tf.Variable(1.0, name="w").name]
    with tf.variable_scope("a", reuse=True):
        found += [tf.get_variable("v", [2]).name, op(tf)]
    with tf.variable_scope("a"):
        found += [tf.get_variable("z", []).name, op(tf), tf.Variable(1.0, name="w").name]
    return found


def case_default_names(tf):
    found = []

    def visit(depth=0):
        with tf.variable_scope(None, default_name="d"):
            found.extend([op(tf), tf.get_variable_scope().name])
            if depth:
                visit(depth - 1)

    visit(1)
    visit(1)
    with tf.variable_scope("s"):
        visit()
        visit()
    with tf.variable_scope("s", reuse=None):
        visit()
    with tf.variable_scope("d"):
        found.append(op(tf))
    visit()
    return found


def case_scope_objects(tf):
    with tf.variable_scope("a") as a:
        first = tf.get_variable("v", [])
    found = [a.name, a.original_name_scope, op(tf)]
    with tf.variable_scope("b"):
        with tf.variable_scope(a, reuse=True) as again:
            found += [tf.get_variable("v", []) is first, again.name, again.original_name_scope, op(tf)]
        with tf.variable_scope(a):
            found += [tf.get_variable("w", []).name, op(tf)]
            with tf.variable_scope("c") as c:
                found += [c.name, c.original_name_scope, tf.get_variable("v", []).name, op(tf)]
    with tf.variable_scope(tf.get_variable_scope()):
        found += [op(tf), tf.get_variable("top", []).name]
    with tf.variable_scope(a, auxiliary_name_scope=False):
        found += [op(tf), tf.get_variable("q", []).name]
    with tf.variable_scope("e", auxiliary_name_scope=False), tf.name_scope("f"):
        found += [op(tf), tf.get_variable("q", []).name]
    with tf.variable_scope(""):
        found += [op(tf), tf.get_variable("empty", []).name]
    return found


def case_multi_part_names(tf):
    with tf.variable_scope("a/b"):
        found = [tf.get_variable("v/w", []).name, op(tf), tf.get_variable_scope().original_name_scope]
    with tf.variable_scope("a/b", reuse=True):
        found += [tf.get_variable("v/w", []).name, op(tf)]
    return found


def case_twice(tf):
    tf.get_variable("v", [])
    tf.get_variable("v", [])


def case_reuse_of_what_is_not_there(tf):
    with tf.variable_scope("a", reuse=True):
        tf.get_variable("v", [])


def case_auto_reuse(tf):
    found = []
    for _ in range(2):
        with tf.variable_scope("a", reuse=tf.AUTO_REUSE):
            found.append(tf.get_variable("v", []).name)
            with tf.variable_scope("b"):
                found.append(tf.get_variable("v", []).name)
    return [*found, len(tf.global_variables())]


def case_reuse_is_inherited(tf):
    with tf.variable_scope("a"):
        with tf.variable_scope("b"):
            v = tf.get_variable("v", [])
        tf.get_variable_scope().reuse_variables()
        with tf.variable_scope("b", reuse=False):
            return [tf.get_variable("v", []) is v, tf.get_variable_scope().reuse]


def case_reuse_with_another_shape(tf):
    tf.get_variable("v", [2])
    with tf.variable_scope("", reuse=True):
        tf.get_variable("v", [3])


def case_reuse_with_another_type(tf):
    tf.get_variable("v", [2])
    with tf.variable_scope("", reuse=True):
        tf.get_variable("v", [2], dtype=tf.int32)


def case_reuse_without_a_shape(tf):
    v = tf.get_variable("v", [2])
    with tf.variable_scope("", reuse=True):
        return tf.get_variable("v") is v


def case_bad_reuse(tf):
    with tf.variable_scope("a", reuse="yes"):
        pass


def case_reuse_of_a_default_name(tf):
    with tf.variable_scope(None, "a", reuse=True):
        pass


def case_no_name(tf):
    with tf.variable_scope(None):
        pass


def case_name_of_another_type(tf):
    with tf.variable_scope(3):
        pass


def case_no_shape(tf):
    tf.get_variable("v")


def case_unknown_shape(tf):
    tf.get_variable("v", [None, 2])


def case_value_and_shape(tf):
    tf.get_variable("v", [2], initializer=tf.constant([1.0, 2.0]))


def case_value_and_type(tf):
    tf.get_variable("v", dtype=tf.int32, initializer=tf.constant([1.0, 2.0]))


def case_initializers(tf):
    variables = [
        tf.get_variable("value", initializer=[1.0, 2.0]),
        tf.get_variable("tensor", initializer=tf.constant([1, 2])),
        tf.get_variable("number", initializer=3),
        tf.get_variable("function", initializer=lambda: tf.ones([2])),
        tf.get_variable("zeros", [2], initializer=tf.zeros_initializer),
        tf.get_variable("zeros_made", [2], initializer=tf.zeros_initializer()),
        tf.get_variable("ones", [2], dtype=tf.int32, initializer=tf.ones_initializer),
        tf.get_variable("constant", [2, 2], initializer=tf.constant_initializer([1.0, 2.0, 3.0])),
        tf.get_variable("scalar", [2], dtype=tf.float64, initializer=tf.constant_initializer(4)),
        tf.get_variable("default", [2], dtype=tf.int32),
        tf.get_variable("default_bool", [2], dtype=tf.bool),
        tf.get_variable("identity", [2, 3], initializer=tf.initializers.identity(2.0)),
        tf.get_variable("filled", [2], initializer=lambda shape, dtype=None, partition_info=None: tf.fill(shape, 7.0)),
    ]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [[v.name, v.dtype.name, np.asarray(sess.run(v)).tolist()] for v in variables]


def case_default_initializer_of_strings(tf):
    tf.get_variable("v", [2], dtype=tf.string)


def drawn(tf, initializer, shape):
    """Kind of distribution that an initializer draws from: whether all is within a bound, and the deviation."""
    with tf.Session() as sess:
        value = sess.run(initializer(shape))
    return [str(value.dtype), list(value.shape), round(float(np.abs(value).max()), 1), round(float(value.std()), 1)]


def case_random_initializers(tf):
    # Scaled so that one digit tells.
    shape, scale = [200, 100], 1e4
    made = [
        tf.random_uniform_initializer(-3.0, 3.0),
        tf.random_normal_initializer(stddev=0.0),
        tf.variance_scaling_initializer(scale=scale, mode="fan_in", distribution="uniform"),
        tf.variance_scaling_initializer(scale=scale, mode="fan_out", distribution="uniform"),
        tf.variance_scaling_initializer(scale=scale, mode="fan_avg", distribution="uniform"),
        tf.uniform_unit_scaling_initializer(factor=50.0),
    ]
    return [drawn(tf, initializer, shape)[:3] for initializer in made]


def case_fans_of_convolutions(tf):
    uniform = tf.variance_scaling_initializer(scale=1e4, mode="fan_in", distribution="uniform")
    out = tf.variance_scaling_initializer(scale=1e4, mode="fan_out", distribution="uniform")
    shapes = [[5, 5, 8, 64], [3, 100, 50], [3000], [60, 60]]
    return [round(drawn(tf, initializer, shape)[2]) for initializer in [uniform, out] for shape in shapes]


def case_configuration_of_initializers(tf):
    made = [
        tf.zeros_initializer(),
        tf.ones_initializer(),
        tf.constant_initializer(2.0),
        tf.random_uniform_initializer(0, 1, 3),
        tf.random_normal_initializer(1.0, 2.0, 4),
        tf.truncated_normal_initializer(),
        tf.glorot_uniform_initializer(5),
        tf.variance_scaling_initializer(2.0, "fan_out", "uniform"),
        tf.orthogonal_initializer(2.0),
        tf.uniform_unit_scaling_initializer(),
        tf.initializers.identity(),
        tf.glorot_normal_initializer(),
    ]
    configs = [initializer.get_config() for initializer in made]
    again = [type(i).from_config(c).get_config() == c for i, c in zip(made, configs)]  # noqa: B905 - runs on Python 3.7
    return [configs, again]


def case_bad_variance_scaling(tf):
    tf.variance_scaling_initializer(mode="fan")


def case_bad_constant(tf):
    tf.constant_initializer({"a": 1})


def case_defaults_of_scopes(tf):
    with tf.variable_scope("a", initializer=tf.constant_initializer(2.0), dtype=tf.float64) as a:
        v = tf.get_variable("v", [2])
        with tf.variable_scope("b", initializer=tf.constant_initializer(3.0)):
            w = tf.get_variable("w", [2])
            x = tf.get_variable("x", [2], initializer=tf.zeros_initializer(), dtype=tf.float32)
        a.set_initializer(tf.ones_initializer())
        y = tf.get_variable("y", [2])
    with tf.variable_scope(a):
        z = tf.get_variable("z", [])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [[t.dtype.name, sess.run(t).tolist()] for t in [v, w, x, y, z]]


def case_regularizers(tf):
    def double(value):
        return tf.reduce_sum(value) * 2.0

    with tf.variable_scope("a", regularizer=double):
        tf.get_variable("v", [2])
        tf.get_variable("w", [2], regularizer=tf.no_regularizer)
        with tf.variable_scope("b", regularizer=tf.no_regularizer):
            tf.get_variable("x", [2])
        tf.get_variable("y", [2], regularizer=tf.reduce_sum)
    with tf.variable_scope("a", regularizer=double, reuse=True):
        tf.get_variable("v", [2])
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    return [[loss.name.rpartition("/")[0], loss.op.colocation_groups()] for loss in losses]


def case_custom_getter(tf):
    asked = []

    def inner(getter, name, *args, **kwargs):
        asked.append([name, kwargs["shape"], kwargs["trainable"]])
        return getter(name + "_changed", *args, **kwargs)

    def outer(getter, name, *args, **kwargs):
        asked.append("outer " + name)
        return getter("o_" + name, *args, **kwargs)

    with tf.variable_scope("a", custom_getter=outer), tf.variable_scope("b", custom_getter=inner):
        v = tf.get_variable("v", [2], trainable=False)
        w = tf.get_variable("w", [2], custom_getter=outer)
    return [asked, v.name, w.name]


def case_bad_custom_getter(tf):
    tf.get_variable("v", [2], custom_getter=3)


def case_caching_device(tf):
    with tf.variable_scope("a", caching_device="/job:worker"):
        v = tf.get_variable("v", [2])
    return [v.device, v.value().device]


def case_collections_and_trainable(tf):
    tf.get_variable("a", [], trainable=False)
    tf.get_variable("b", [], collections=["x", "y"])
    tf.get_local_variable("c", [])
    with tf.variable_scope("s") as scope:
        tf.get_variable("d", [])
        inside = [
            [v.name for v in found]
            for found in [
                scope.global_variables(),
                scope.trainable_variables(),
                scope.local_variables(),
                scope.get_collection("x"),
            ]
        ]
    keys = ["variables", "trainable_variables", "local_variables", "x", "y"]
    return [[v.name for v in tf.get_collection(key)] for key in keys] + inside


def parts(variable):
    return [
        [v.name, str(v.shape), v.device, v._get_save_slice_info().spec, v._get_save_slice_info().full_name]
        for v in variable
    ]


def case_partitions(tf):
    v = tf.get_variable("v", [7, 2], partitioner=tf.fixed_size_partitioner(3))
    with tf.variable_scope("s", partitioner=tf.fixed_size_partitioner(2, axis=1)):
        w = tf.get_variable("w", initializer=tf.reshape(tf.range(8.0), [2, 4]))
        x = tf.get_variable("x", [])
    with tf.variable_scope("s", partitioner=tf.fixed_size_partitioner(2, axis=1), reuse=True):
        again = tf.get_variable("w", [2, 4])
    joined = tf.convert_to_tensor(w)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        values = [sess.run(t).tolist() for t in [joined, w.as_tensor(), tf.add(w, 1.0)]]
        sess.run(w.assign(tf.ones([2, 4])))
        values.append(sess.run(joined).tolist())
        sess.run(w.assign_add([tf.ones([2, 2]), tf.zeros([2, 2])]))
        values.append(sess.run(joined).tolist())
    return [
        v.name,
        v.dtype.name,
        str(v.shape),
        parts(v),
        parts(w),
        x.name,
        again is w,
        joined.name,
        values,
        [t.name for t in tf.global_variables()],
    ]


def case_partitions_are_reused_without_a_partitioner(tf):
    v = tf.get_variable("v", [4], partitioner=tf.fixed_size_partitioner(2))
    with tf.variable_scope("", reuse=True):
        return tf.get_variable("v", [4]) is v


def case_partitioned_twice(tf):
    tf.get_variable("v", [4], partitioner=tf.fixed_size_partitioner(2))
    tf.get_variable("v", [4], partitioner=tf.fixed_size_partitioner(2))


def case_partitioned_otherwise(tf):
    tf.get_variable("v", [4], partitioner=tf.fixed_size_partitioner(2))
    with tf.variable_scope("", reuse=True):
        tf.get_variable("v", [4], partitioner=tf.fixed_size_partitioner(4))


def case_partitioned_and_then_not(tf):
    tf.get_variable("v", [4], partitioner=tf.fixed_size_partitioner(2))
    tf.get_variable("v", [4])


def case_two_axes(tf):
    tf.get_variable("v", [4, 4], partitioner=lambda **_: [2, 2])


def case_bad_partitioner(tf):
    tf.get_variable("v", [4, 4], partitioner=[2, 1])


def case_partitioners(tf):
    shapes = [[7, 2], [100, 3], [1, 5], [13], [1000, 1000]]
    found = []
    for size in [1, 7, 8, 64, 100, 1 << 20]:
        for shape in shapes:
            for dtype in [tf.float32, tf.string]:
                arguments = {"shape": tf.TensorShape(shape), "dtype": dtype}
                found.append(
                    [
                        list(tf.variable_axis_size_partitioner(size)(**arguments)),
                        list(tf.variable_axis_size_partitioner(size, max_shards=3)(**arguments)),
                        list(tf.min_max_variable_partitioner(5, min_slice_size=size)(**arguments)),
                        list(tf.fixed_size_partitioner(5)(**arguments)),
                    ]
                )
    return found


def case_old_form(tf):
    x = tf.constant(1.0)
    with tf.variable_op_scope([x], None, "old") as scope:
        return [scope.name, tf.get_variable("v", []).name]


def case_as_a_decorator_is_not_needed_but_reentry_is(tf):
    scope = tf.variable_scope("a")
    with scope:
        first = tf.get_variable("v", []).name
    with scope:
        return [first, tf.get_variable("w", []).name, op(tf)]


def case_names_of_initializers(tf):
    with tf.variable_scope("s"):
        tf.get_variable("v", [3, 4])
        tf.get_variable("w", [2], initializer=tf.truncated_normal_initializer(stddev=0.1))
    return [[o.name, o.type, [t.name for t in o.inputs]] for o in tf.get_default_graph().get_operations()]


def case_templates(tf):
    def scale(x, factor):
        return x * tf.get_variable("v", initializer=factor, dtype=None)

    found = []
    double = tf.make_template("scale", scale, factor=2.0)
    again = tf.make_template("scale", scale)
    exact = tf.make_template("scale", scale, unique_name_="exactly")
    found.append([double.name, double.variable_scope is None])
    results = [double(3.0), double(4.0), again(5.0, factor=3.0), again(5.0, factor=3.0), exact(1.0, factor=4.0)]
    early = tf.make_template("scale", scale, create_scope_now_=True)
    with tf.variable_scope("outer"):
        results.append(early(1.0, factor=5.0))
    found += [result.name for result in results]
    found += [[v.name for v in t.trainable_variables] for t in [double, again, exact, early]]
    found.append([t.variable_scope_name for t in [double, again, exact, early]])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [*found, [sess.run(result).tolist() for result in results]]


def case_a_template_that_makes_other_variables_later(tf):
    names = iter(["a", "b"])
    template = tf.make_template("t", lambda: tf.get_variable(next(names), []))
    template()
    template()
