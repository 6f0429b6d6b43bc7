"""Random losses, rates, optimizers, metrics, feature columns and datasets, and the functions that run them."""

from dice import INTEGERS, ORDINARY, SPECIAL


def losses(d):
    shape = [d.whole(1, 3), d.whole(1, 3)]
    x, y = d.floats(shape, d.choice((ORDINARY, ORDINARY, SPECIAL))), d.floats(shape, [0.0, 1.0, 0.5])
    weights = d.choice(("1.0", "0.0", d.floats([shape[0], 1], [0.0, 1.0, 2.0]), d.floats(d.shape(), [0.0, 1.0])))
    reduction = d.choice(
        ("NONE", "SUM", "MEAN", "SUM_OVER_BATCH_SIZE", "SUM_BY_NONZERO_WEIGHTS", "SUM_OVER_NONZERO_WEIGHTS")
    )
    name = d.choice(
        [
            "absolute_difference",
            "mean_squared_error",
            "log_loss",
            "huber_loss",
            "hinge_loss",
            "sigmoid_cross_entropy",
            "softmax_cross_entropy",
        ]
    )
    if name == "softmax_cross_entropy":
        weights = d.choice(("1.0", d.floats([shape[0]], [0.0, 1.0])))
    order = (y, x)
    return f"tf.losses.{name}({order[0]}, {order[1]}, weights={weights}, reduction=tf.losses.Reduction.{reduction})"


def rates(d):
    step, rate = d.whole(0, 30), d.choice((0.0, 0.1, 1.0))
    return d.choice(
        (
            f"tf.train.exponential_decay({rate}, {step}, {d.whole(1, 9)}, 0.9, staircase={d.flag()})",
            f"tf.train.polynomial_decay({rate}, {step}, {d.whole(1, 9)}, 0.01, power={d.choice((0.5, 1.0, 2.0))}, cycle={d.flag()})",
            f"tf.train.inverse_time_decay({rate}, {step}, {d.whole(1, 9)}, 0.5, staircase={d.flag()})",
            f"tf.train.natural_exp_decay({rate}, {step}, {d.whole(1, 9)}, 0.5)",
            f"tf.train.cosine_decay({rate}, {step}, {d.whole(1, 20)})",
            f"tf.train.cosine_decay_restarts({rate}, {step}, {d.whole(1, 20)})",
            f"tf.train.linear_cosine_decay({rate}, {step}, {d.whole(1, 20)})",
            f"tf.train.piecewise_constant({step}, [5, 10], [1.0, 0.5, 0.1])",
        )
    )


def optimizer(d):
    rate = d.choice(("0.0", "0.1", "1.0"))
    made = d.choice(
        (
            f"GradientDescentOptimizer({rate})",
            f"MomentumOptimizer({rate}, 0.9, use_nesterov={d.flag()})",
            "AdagradOptimizer({}, {})".format(rate, d.choice(("0.1", "1.0"))),
            f"AdagradDAOptimizer({rate}, tf.train.get_or_create_global_step())",
            f"AdadeltaOptimizer({rate}, 0.9)",
            "AdamOptimizer({}, {}, 0.9)".format(rate, d.choice(("0.0", "0.9"))),
            "RMSPropOptimizer({}, 0.8, {}, centered={})".format(rate, d.choice(("0.0", "0.9")), d.flag()),
            "FtrlOptimizer({}, {}, {}, {}, {})".format(
                rate,
                d.choice(("-0.5", "0.0")),
                d.choice(("0.1", "1.0")),
                d.choice(("0.0", "0.1")),
                d.choice(("0.0", "0.5")),
            ),
            "ProximalGradientDescentOptimizer({}, {}, {})".format(
                rate, d.choice(("0.0", "0.1")), d.choice(("0.0", "0.1"))
            ),
            "ProximalAdagradOptimizer({}, 0.1, {}, {})".format(
                rate, d.choice(("0.0", "0.1")), d.choice(("0.0", "0.1"))
            ),
        )
    )
    rows = d.whole(1, 3)
    given = d.floats([rows, 2], d.choice((ORDINARY, ORDINARY, SPECIAL)))
    gradient = d.floats([rows, 2], d.choice((ORDINARY, ORDINARY, SPECIAL)))
    ids = [d.whole(0, rows - 1) for _ in range(rows)] if d.random() < 0.5 else None
    return f"optimize(tf, tf.train.{made}, {given}, {gradient}, {ids}, {d.whole(1, 3)})"


def metric(d):
    count = d.whole(1, 4)
    predictions = d.floats([count], d.choice(([0.0, 0.2, 0.5, 0.7, 1.0], [0.0, 1.0], ORDINARY)))
    labels = d.floats([count], d.choice(([0.0, 1.0], [0.0, 1.0], ORDINARY)))
    weights = d.choice(("None", d.floats([count], [0.0, 1.0, 2.0]), "0.5"))
    whole = d.ints([count], 0, 2, "int64")
    scores = d.floats([count, 3])
    both = f"labels={labels}, predictions={predictions}, weights={weights}"
    code = d.choice(
        (
            f"mean({predictions}, {weights})",
            f"accuracy({both})",
            f"auc({both}, num_thresholds={d.whole(3, 9)})",
            "auc({}, num_thresholds=5, curve='PR', summation_method={!r})".format(
                both, d.choice(("trapezoidal", "careful_interpolation", "minoring", "majoring"))
            ),
            f"precision({both})",
            f"recall({both})",
            f"true_positives({both})",
            f"false_positives({both})",
            f"false_negatives_at_thresholds(labels={labels}, predictions={predictions}, thresholds=[0.2, 0.6])",
            f"precision_at_thresholds({both}, thresholds=[0.2, 0.5])",
            f"recall_at_thresholds({both}, thresholds=[0.2, 0.5])",
            f"sensitivity_at_specificity({both}, specificity=0.5, num_thresholds=7)",
            f"specificity_at_sensitivity({both}, sensitivity=0.5, num_thresholds=7)",
            f"mean_squared_error({both})",
            f"root_mean_squared_error({both})",
            f"mean_absolute_error({both})",
            f"mean_relative_error({both}, normalizer={labels})",
            f"mean_cosine_distance({labels}[tf.newaxis], {predictions}[tf.newaxis], 1)",
            f"mean_iou({whole}, {whole}, 3)",
            f"mean_per_class_accuracy({whole}, tf.argmax({scores}, 1), 3)",
            f"percentage_below({predictions}, 0.5, {weights})",
            f"mean_tensor({scores})",
            f"recall_at_k({whole}, {scores}, {d.whole(1, 3)})",
            f"precision_at_k({whole}, {scores}, {d.whole(1, 3)})",
            f"average_precision_at_k({whole}[:, tf.newaxis], {scores}, {d.whole(1, 3)})",
        )
    )
    return f"measure(tf, lambda: tf.metrics.{code})"


def columns(d):
    numbers = d.floats([d.whole(1, 3), d.whole(1, 2)], d.choice((ORDINARY, SPECIAL)))
    words, ids = d.text([2, 2]), d.ints([2, 2], -1, 4, d.choice(INTEGERS))
    which = d.choice(("n", "w", "i"))
    categorical = {
        "w": d.choice(
            (
                f"C.categorical_column_with_hash_bucket('w', {d.whole(1, 5)})",
                f"C.categorical_column_with_vocabulary_list('w', ['a', 'b', '1'], num_oov_buckets={d.whole(0, 2)})",
                f"C.categorical_column_with_vocabulary_list('w', ['a', 'ab'], default_value={d.whole(-1, 1)})",
                f"C.crossed_column(['w', 'i'], {d.whole(2, 9)})",
            )
        ),
        "i": d.choice(
            (
                f"C.categorical_column_with_identity('i', {d.whole(2, 6)})",
                f"C.categorical_column_with_identity('i', {d.whole(2, 6)}, default_value=0)",
                "C.categorical_column_with_hash_bucket('i', 3, tf.int64)",
                "C.categorical_column_with_vocabulary_list('i', [0, 2, 3])",
            )
        ),
        "n": f"C.bucketized_column(C.numeric_column('n', [{d.whole(1, 2)}]), [0.0, 1.0, 2.0])",
    }[which]
    dense = d.choice(
        (
            f"C.indicator_column({categorical})",
            "C.embedding_column({}, 2, combiner={!r}, initializer=tf.constant_initializer(np.arange(20.0).reshape(10, 2)[:1].repeat(9, 0)[0, 0]))".format(
                categorical, d.choice(("mean", "sum", "sqrtn"))
            ),
            "C.numeric_column('n', [{}], normalizer_fn={})".format(
                d.whole(1, 2), d.choice(("None", "lambda v: v * 2.0"))
            ),
            categorical,
        )
    )
    features = f"{{'n': {numbers}, 'w': {words}, 'i': {ids}}}"
    use = d.choice(("C.input_layer({}, [{}])", "C.linear_model({}, [{}])"))
    return f"initialised(tf, lambda C: {use.format(features, dense)})"


def dataset(d):
    count = d.whole(0, 7)
    code = d.choice((f"D.range({count})", f"D.from_tensor_slices(np.arange({max(count, 1)}, dtype=np.int64) * 3 % 5)"))
    for _ in range(d.whole(1, 4)):
        code += d.choice(
            (
                ".map(lambda v: v + 1)",
                ".map(lambda v: v * 2, num_parallel_calls=2)",
                ".filter(lambda v: tf.reduce_all(tf.equal(v % 2, 0)))",
                f".take({d.whole(-1, 4)})",
                f".skip({d.whole(-1, 3)})",
                f".repeat({d.whole(0, 2)})",
                f".batch({d.whole(1, 3)}, drop_remainder={d.flag()})",
                f".shard({d.whole(1, 3)}, {d.whole(0, 2)})",
                ".concatenate(D.range(2))",
                ".flat_map(lambda v: D.from_tensors(v).repeat(2))",
                f".interleave(lambda v: D.from_tensors(v).repeat(3), cycle_length={d.whole(1, 3)}, block_length={d.whole(1, 2)})",
                ".window({}, {}, {}, {}).flat_map(lambda w: w.batch(5))".format(
                    d.whole(1, 3), d.choice(("None", "1", "2")), d.whole(1, 2), d.flag()
                ),
                ".cache()",
                ".prefetch(1)",
                ".apply(tf.data.experimental.unbatch())",
                ".apply(tf.data.experimental.scan(np.int64(0), lambda s, v: (s + 1, v + s)))",
                ".apply(tf.data.experimental.enumerate_dataset(3)).map(lambda i, v: v + i)",
                ".apply(tf.data.experimental.ignore_errors())",
                ".apply(tf.data.experimental.take_while(lambda v: tf.reduce_all(v < 4)))",
                ".apply(tf.data.experimental.unique())",
                ".apply(tf.data.experimental.group_by_window(lambda v: v % 2, lambda k, w: w.batch(3), 2))",
                ".apply(tf.data.experimental.dense_to_sparse_batch(2, [3])).map(lambda s: tf.sparse_tensor_to_dense(s))",
                f".padded_batch({d.whole(1, 3)}, [])",
                ".map(lambda v: tf.fill([tf.cast(v % 3, tf.int32)], v)).padded_batch(2, [None])",
            )
        )
    return f"elements(tf, lambda D: {code})"


# Functions for expressions --------------------------------------------------------------------------------------------


def optimize(tf, optimizer, given, gradient, ids, steps):
    """The variable and its slots after some steps with one gradient, dense or of rows ``ids``."""
    shape = [int(size) for size in _run(tf, tf.shape(given))]
    variable = tf.Variable(_run(tf, given), name="v", dtype=tf.float32)
    gradient = tf.constant(_run(tf, gradient), tf.float32, shape)
    if ids is not None:
        gradient = tf.IndexedSlices(gradient, tf.constant(ids), tf.constant(shape))
    step = tf.train.get_or_create_global_step()
    train = optimizer.apply_gradients([(gradient, variable)], global_step=step)
    _run(tf, tf.global_variables_initializer())
    for _ in range(steps):
        _run(tf, train)
    names = optimizer.get_slot_names()
    return [variable] + [optimizer.get_slot(variable, name) for name in sorted(names)]


def measure(tf, create):
    """A metric's value before and after each of two updates."""
    value, update = create()
    _run(tf, [tf.local_variables_initializer(), tf.tables_initializer()])
    return [_run(tf, each) for each in (value, update, value, update, value)]


def initialised(tf, create):
    """The result of a layer of feature columns."""
    result = create(tf.feature_column)
    _run(tf, [tf.global_variables_initializer(), tf.tables_initializer()])
    return result


def elements(tf, create):
    """All elements of a dataset, at most 40."""
    following = create(tf.data.Dataset).make_one_shot_iterator().get_next()
    found = []
    try:
        while len(found) < 40:
            found.append(_run(tf, following))
    except tf.errors.OutOfRangeError:
        pass
    return found


def _run(tf, fetches):
    return tf.get_default_session().run(fetches)
