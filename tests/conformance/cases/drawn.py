"""Programs that the differential tester found to differ: NaN, repeated axes, unknown shapes, shapes that do not fit."""

import numpy as np

NAN, INF = float("nan"), float("inf")


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def _outcomes(tf, uses, said=0, config=None):
    """The result of each use, or the class of its error and the beginning of the message."""
    found = {}
    for name, build in uses.items():
        with tf.Graph().as_default(), tf.Session(config=config) as session:
            try:
                found[name] = session.run(build())
            except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
                found[name] = [type(error).__name__, str(error).split("\n")[0].split(" [in ")[0][:said]]
    return found


def _fed(tf, value, shape=None):
    return tf.placeholder_with_default(tf.constant(value), shape)


def case_not_a_number(tf):
    x = [NAN, 1.0, -2.0, 0.0]
    scores = {"minus": [1.0, 300.0, -INF], "nan": [1.0, 300.0, NAN], "finite": [1.0, 3.0, 2.0]}
    uses = {
        "sign": lambda: tf.sign(_fed(tf, x)),
        "abs": lambda: tf.abs(_fed(tf, x)),
        "max of none": lambda: tf.reduce_max(_fed(tf, x), []),
        "min of one": lambda: tf.reduce_min(_fed(tf, [x]), 0),
        "max of one": lambda: tf.reduce_max(_fed(tf, NAN)),
        "max": lambda: tf.reduce_max(_fed(tf, x)),
        "digamma": lambda: tf.is_inf(tf.digamma(_fed(tf, [0.0, -1.0, -2.0, -0.5, INF, -INF]))),
        "lgamma": lambda: tf.lgamma(_fed(tf, [0.0, -1.0, INF, -INF])),
    }
    for name, row in scores.items():
        uses["in_top_k " + name] = lambda r=row: tf.nn.in_top_k(_fed(tf, [r]), [1], 1)

    def slope(function):
        given = _fed(tf, x)
        return tf.gradients(function(given), given)

    uses["slope of abs"] = lambda: slope(tf.abs)
    return _outcomes(tf, uses)


def _ways(tf, uses):
    """The outcomes of uses on kernels and in executables."""
    compiled = tf.ConfigProto()
    compiled.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_2
    return [_outcomes(tf, uses), _outcomes(tf, uses, config=compiled)]


def _slope(tf, function, value):
    """Builds the gradient alone: with a known shape, it needs no result of ``function``."""

    def build():
        given = _fed(tf, value, np.shape(value))
        return tf.convert_to_tensor(tf.gradients(function(given), given)[0])

    return build


def case_gradients_alone(tf):
    """Gradients of operations that fail."""
    singular, x = [[1.0, 2.0], [2.0, 4.0]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]

    def labelled(v):
        labels = _fed(tf, [0, 1, 5], [3])
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=v)

    functions = {
        "inverse": (tf.matrix_inverse, singular),
        "determinant": (tf.matrix_determinant, singular),
        "logdet": (lambda v: tf.linalg.slogdet(v)[1], singular),
        "cholesky": (tf.cholesky, [[1.0, 2.0], [2.0, 1.0]]),
        "solve": (lambda v: tf.matrix_solve(v, tf.ones_like(v)), singular),
        "triangular": (lambda v: tf.matrix_triangular_solve(v, tf.ones_like(v)), [[0.0, 0.0], [1.0, 1.0]]),
        "good inverse": (tf.matrix_inverse, [[1.0, 2.0], [2.0, 5.0]]),
        "good determinant": (tf.matrix_determinant, [[1.0, 2.0], [2.0, 5.0]]),
        "labels": (labelled, x),
        "gather_nd": (lambda v: tf.gather_nd(v, _fed(tf, [[5, 1]], [1, 2])), x),
        "slice": (lambda v: tf.slice(v, _fed(tf, [2, 0], [2]), [3, 1]), x),
        "band": (lambda v: tf.matrix_band_part(v, _fed(tf, 7, []), 0), x),
        "lengths": (lambda v: tf.reverse_sequence(v, _fed(tf, [1, 2, 9], [3]), 1), x),
        "segments": (lambda v: tf.unsorted_segment_sum(v, _fed(tf, [0, 1, 9], [3]), 3), x),
        "scatter": (lambda v: tf.scatter_nd(_fed(tf, [[0], [1], [9]], [3, 1]), v, [3, 2]), x),
    }
    return _ways(tf, {name: _slope(tf, *use) for name, use in functions.items()})


def case_failures_in_loops(tf):
    """Indices out of range, divisions by zero and singular matrices in loops and branches."""
    table = [1.0, 2.0, 3.0]

    def loop(most, step, start=0.0):
        return tf.while_loop(lambda i, v: i < _fed(tf, most, []), lambda i, v: (i + 1, step(i, v)), [0, start])[1]

    def row(i):
        return tf.gather(_fed(tf, table, [3]), i)

    def inner(n):
        return loop(3, lambda i, v: tf.cond(i > 1, lambda: v + row(i + _fed(tf, n, []) - 2), lambda: v))

    def written(n):
        array = tf.TensorArray(tf.float32, 3, clear_after_read=False)
        return loop(n, lambda i, v: v.write(i, 1.0), array).stack()

    uses = {}
    for n in (2, 5):
        uses.update(
            {
                f"loop {n}": lambda n=n: loop(n, lambda i, v: v + row(i)),
                f"condition {n}": lambda n=n: tf.while_loop(
                    lambda i, v: row(i) < n + 0.5, lambda i, v: (i + 1, v * 2), (0, 1.0)
                )[1],
                f"taken branch {n}": lambda n=n: tf.cond(_fed(tf, True, []), lambda: row(n), lambda: 0.0),
                f"other branch {n}": lambda n=n: tf.cond(_fed(tf, False, []), lambda: row(n), lambda: 0.0),
                f"map {n}": lambda n=n: tf.map_fn(row, _fed(tf, [0, 1, n], [3]), dtype=tf.float32),
                f"scan {n}": lambda n=n: tf.scan(lambda v, i: v + row(i), _fed(tf, [0, 1, n], [3]), 0.0),
                f"branch in a loop {n}": lambda n=n: inner(n),
                f"loop in a loop {n}": lambda n=n: loop(3, lambda i, v: loop(n, lambda j, w: w + row(j), v)),
                f"division {n}": lambda n=n: loop(3, lambda i, v: v + 7 // (5 - i * _fed(tf, n, [])), 1),
                f"element {n}": lambda n=n: loop(n, lambda i, v: v + _fed(tf, table, [3])[i]),
                f"array {n}": lambda n=n: written(n),
                f"inverse {n}": lambda n=n: tf.map_fn(
                    tf.matrix_inverse, _fed(tf, [[[1.0, 2.0], [2.0, 2.0 + n]], [[1.0, 2.0], [2.0, 9.0 - n]]], [2, 2, 2])
                ),
            }
        )
    return _ways(tf, uses)


def case_vectors(tf):
    """Ids and elements whose rank or number is first known in a run."""
    x, uses = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], {}
    for ids in ([0, 1], [0, 1, 1, 2], [0], [[0, 1, 1]], [0, 0, 2]):
        for kind in ("sum", "mean", "max", "min", "prod"):
            uses[f"{kind} {ids}"] = lambda k=kind, i=ids: getattr(tf, "segment_" + k)(_fed(tf, x), _fed(tf, i))
        uses[f"no ids {ids}"] = lambda i=ids: tf.segment_max(_fed(tf, x), _fed(tf, np.zeros([len(i) - 1], np.int32)))
        uses[f"chosen {ids}"] = lambda i=ids: tf.sparse_segment_sum(_fed(tf, x), _fed(tf, [0, 1]), _fed(tf, i))
    for value in ("a", 1, [["a"]], ["b", "a", "b"]):
        uses[f"unique {value}"] = lambda v=value: tf.unique(_fed(tf, v))
        uses[f"counts {value}"] = lambda v=value: tf.unique_with_counts(_fed(tf, v))
        uses[f"difference {value}"] = lambda v=value: tf.setdiff1d(_fed(tf, v), _fed(tf, v))
    return _outcomes(tf, uses, said=20)


def case_at_run_time(tf):
    """Empty loops, ranks that are first known in a run, and gradients at NaN and of repeated indices."""
    sparse = tf.SparseTensorValue([[0, 1], [0, 2]], np.array([2.0, 3.0], np.float32), [1, 3])
    nan = [[NAN, 1.0], [2.0, INF]]

    def stitched(v):
        return tf.dynamic_stitch([tf.range(2), [1, 1]], [v, 2.0 * v])

    loops = {
        "no turns": lambda: tf.map_fn(tf.tanh, tf.zeros([0])),
        "no rows": lambda: tf.map_fn(tf.tanh, _fed(tf, np.zeros([0, 2], np.float32), [None, 2])),
    }
    uses = {
        "product": lambda: tf.sparse_tensor_dense_matmul(
            tf.SparseTensor.from_value(sparse), _fed(tf, [[1.0], [2.0], [3.0]])
        ),
        "mask": lambda: tf.sequence_mask(_fed(tf, [3, 0])),
        "two channels": lambda: tf.image.rgb_to_hsv(_fed(tf, [[[[1.0, 2.0]]]])),
        "scalar": lambda: tf.where(_fed(tf, True)),
        "half": lambda: tf.diag_part(_fed(tf, [1.0])),
        "band": lambda: tf.matrix_band_part(1.0, 0, 1),
        "counts": lambda: tf.unique_with_counts(7),
        "octal": lambda: tf.strings.format("{}", _fed(tf, ["\u00e9", "a"])),
        "join": lambda: tf.reduce_join(_fed(tf, "a"), [-1]),
        "nowhere": lambda: tf.tensor_scatter_add(_fed(tf, np.zeros([4, 0], np.float32)), [[1]], tf.zeros([1, 0])),
        "few parts": lambda: tf.dynamic_stitch([[0, 1], _fed(tf, [2, 3])], [[1.0, 2.0], _fed(tf, [1.0])]),
        "sort": lambda: tf.sort([1.0, 2.0], 1),
        "stitch": _slope(tf, stitched, [1.0, 2.0]),
        "least": _slope(tf, lambda v: tf.minimum(v, 1.0), nan),
        "greatest": _slope(tf, lambda v: tf.maximum(1.0, v), nan),
    }
    return [_outcomes(tf, loops), *_ways(tf, uses)]


def case_repeated_axes(tf):
    x = [[1.0, 2.0], [3.0, 4.0]]
    uses = {}
    for axes in ([1, 1], [1, -1], [1, 0, 1]):
        for name in ("reduce_sum", "reduce_max", "reduce_mean"):
            uses[f"{name} {axes}"] = lambda n=name, a=axes: getattr(tf, n)(_fed(tf, x), a)
    return _outcomes(tf, uses)


def case_unknown_rank(tf):
    x = [[1.0, 4.0], [3.0, 2.0]]
    return _outcomes(
        tf,
        {
            "tensordot 1": lambda: tf.tensordot(_fed(tf, x), _fed(tf, x), 1),
            "tensordot 0": lambda: tf.tensordot(_fed(tf, [1.0, 2.0]), _fed(tf, x), 0),
            "tensordot axes": lambda: tf.tensordot(_fed(tf, x), tf.constant(x), [[0, -1], [1, 0]]),
            "sort": lambda: tf.sort(_fed(tf, x)),
            "reduce_join": lambda: tf.reduce_join(_fed(tf, [["a", "b"], ["c", "d"]]), 0, separator="+"),
            "reduce_join of none": lambda: tf.reduce_join(tf.zeros([0, 2], tf.string), 0),
            "reduce_join of a scalar": lambda: tf.reduce_join("a"),
            "unbatch": lambda: (
                tf.data.Dataset.range(3).apply(tf.data.experimental.unbatch()).make_one_shot_iterator().get_next()
            ),
            "reduce_join axis": lambda: tf.reduce_join(_fed(tf, ["a"]), 2),
            "reduce_join known axis": lambda: tf.reduce_join(["a"], 2),
        },
    )


def case_shapes_in_a_run(tf):
    """Shapes that are known when a step runs, and do not fit."""
    x = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    return _outcomes(
        tf,
        {
            "tile": lambda: tf.tile(_fed(tf, x), _fed(tf, [2])),
            "where": lambda: tf.where(_fed(tf, [True, False]), _fed(tf, [1.0]), _fed(tf, [2.0, 3.0])),
            "lrn": lambda: tf.nn.lrn(_fed(tf, x)),
            "band": lambda: tf.matrix_band_part(_fed(tf, x), 3, 0),
            "cholesky": lambda: tf.cholesky(_fed(tf, x)),
            "dynamic_partition": lambda: tf.dynamic_partition(_fed(tf, x), tf.zeros([0], tf.int32), 2),
            "convolution": lambda: tf.nn.conv2d(_fed(tf, [[[[1.0]]]]), tf.ones([3, 3, 1, 1]), [1, 1, 1, 1], "VALID"),
            "weights": lambda: tf.losses.mean_squared_error(
                _fed(tf, [[1.0, 2.0]]), _fed(tf, [[1.0, 3.0]]), weights=_fed(tf, [[1.0], [2.0], [3.0]])
            ),
            "weights of sizes": lambda: tf.losses.mean_squared_error(
                _fed(tf, [1.0, 2.0], [None]), _fed(tf, [1.0, 3.0], [None]), weights=_fed(tf, [1.0, 2.0, 3.0], [None])
            ),
            "grey": lambda: tf.image.rgb_to_grayscale(_fed(tf, [[[1.0]]])),
            "diag": lambda: tf.diag(1.0),
            "transpose": lambda: tf.transpose(x, [0, 0]),
            "sparse_split": lambda: [
                part.values
                for part in tf.sparse_split(sp_input=tf.SparseTensor([[0, 0]], [1.0], [1, 2]), num_split=3, axis=1)
            ],
            "scalar blocks": lambda: tf.space_to_batch_nd(1.0, [2], [[0, 0]]),
            "no columns": lambda: tf.convert_to_tensor(
                (lambda v: tf.gradients(tf.boolean_mask(v, [True, True]), v)[0])(tf.zeros([2, 0]))
            ),
        },
    )


def case_queues_and_accumulators(tf):
    def queue():
        return tf.FIFOQueue(3, [tf.float32, tf.int32], [[2], []])

    def rows(shape, *gradients):
        accumulator = tf.SparseConditionalAccumulator(tf.float32, shape=shape)
        session = tf.get_default_session()
        for gradient in gradients[:-1]:
            session.run(accumulator.apply_grad(*gradient))
        return accumulator.apply_grad(*gradients[-1])

    one = np.ones([1, 2], np.float32)
    return _outcomes(
        tf,
        {
            "enqueue": lambda: queue().enqueue([_fed(tf, [1.0, 2.0, 3.0]), 1]),
            "enqueue_many": lambda: queue().enqueue_many([_fed(tf, [[1.0, 2.0, 3.0]]), [1]]),
            "unequal": lambda: queue().enqueue_many([_fed(tf, [[1.0, 2.0]]), _fed(tf, [1, 2])]),
            "padding": lambda: tf.PaddingFIFOQueue(3, [tf.float32], [[None, 2]]).enqueue([_fed(tf, [[1.0]])]),
            "dense": lambda: tf.ConditionalAccumulator(tf.float32, shape=[2]).apply_grad(_fed(tf, [1.0])),
            "values": lambda: rows([3, 2], ([0], _fed(tf, [[1.0, 2.0, 3.0]]))),
            "count": lambda: rows([3, 2], ([0, 1], _fed(tf, one))),
            "dense shape": lambda: rows([3, 2], ([0], _fed(tf, one), [4, 2])),
            "scalar": lambda: rows([3, 2], ([0], _fed(tf, 1.0))),
            "second": lambda: rows(None, ([0], _fed(tf, [[1.0, 2.0, 3.0]])), ([0], _fed(tf, one))),
        },
        said=55,
    )


def case_learning_rates(tf):
    """Rates that must be greater than 0."""

    def trained(optimizer, sparse):
        variable = tf.Variable([1.0, 2.0])
        gradient = (
            tf.IndexedSlices(tf.constant([1.0]), tf.constant([0]), tf.constant([2]))
            if sparse
            else tf.constant([1.0, 1.0])
        )
        step = optimizer.apply_gradients([(gradient, variable)])
        tf.get_default_session().run(tf.global_variables_initializer())
        with tf.control_dependencies([step]):
            return tf.identity(variable.read_value())

    uses = {}
    for rate in (0.0, -0.1):
        for sparse in (False, True):
            for name in ("Ftrl", "ProximalAdagrad", "ProximalGradientDescent", "GradientDescent"):
                make = getattr(tf.train, name + "Optimizer")
                uses[f"{name} {rate} {sparse}"] = lambda m=make, r=rate, s=sparse: trained(m(r), s)
    return _outcomes(tf, uses, said=27)


def case_shapes_that_do_not_fit(tf):
    """Sizes that no operation should broadcast, drop or ignore."""
    return _outcomes(
        tf,
        {
            "scattered rows": lambda: tf.tensor_scatter_add(tf.zeros([4, 1]), [[3], [1], [0]], [[1.0]]),
            "scattered fed rows": lambda: tf.tensor_scatter_sub(tf.zeros([4]), [[3], [1]], _fed(tf, [1.0])),
            "scattered to nothing": lambda: tf.scatter_nd([[1]], tf.zeros([1, 0]), [4, 0]),
            "scattered to nothing, fed": lambda: tf.scatter_nd(_fed(tf, [[1]]), tf.zeros([1, 0]), _fed(tf, [4, 0])),
            "lengths": lambda: tf.reverse_sequence(_fed(tf, [[1, 2], [3, 4]]), _fed(tf, [1]), 1),
            "targets": lambda: tf.nn.in_top_k(_fed(tf, [[1.0], [2.0]]), _fed(tf, [0]), 1),
            "sparse values": lambda: tf.sparse_to_dense(_fed(tf, [0, 1]), [4], _fed(tf, [1.0, 2.0, 3.0])),
            "no sparse values": lambda: tf.sparse_to_dense(tf.zeros([0], tf.int64), [4], _fed(tf, [1.0])),
            "elements of a scalar": lambda: tf.gather_nd(_fed(tf, 1.0), [[0]]),
            "paddings": lambda: tf.pad(_fed(tf, 1.0), []),
            "reflected paddings": lambda: tf.pad(_fed(tf, 1.0), [], "REFLECT"),
            "norm along nothing": lambda: tf.linalg.norm(_fed(tf, 2.0), axis=[]),
            "norm along three": lambda: tf.linalg.norm(_fed(tf, [[[2.0]]]), axis=[0, 1, 2]),
            "concatenation": lambda: tf.sparse_concat(2, [tf.SparseTensor([[0, 0]], [1.0], [2, 2])] * 2).indices,
            "cropped": lambda: tf.image.central_crop(_fed(tf, [[[1.0]]]), 0.5),
            "keys": lambda: (
                tf.data.Dataset.range(4)
                .batch(2)
                .apply(tf.data.experimental.group_by_window(lambda v: v % 2, lambda k, w: w, 2))
                .make_one_shot_iterator()
                .get_next()
            ),
        },
        said=0,
    )


def case_not_a_number_in_rows(tf):
    """NaN in gradients of activations and in Ftrl's updates, and unordered sparse tensors."""
    nan, infinity = float("nan"), float("inf")

    def trained(gradient):
        variable = tf.Variable([nan, 1.0, 2.0, -infinity])
        step = tf.train.FtrlOptimizer(0.5).apply_gradients([(gradient, variable)])
        tf.get_default_session().run(tf.global_variables_initializer())
        with tf.control_dependencies([step]):
            return tf.as_string(tf.identity(variable.read_value()), precision=3)

    def pulled(function):
        given = _fed(tf, [nan, 0.5, 0.0])
        return tf.as_string(tf.gradients(function(given), given, tf.constant([0.0, 1.0, 1.0]))[0], precision=3)

    def together(function):
        backwards = tf.SparseTensor([[1, 1], [0, 1], [0, 0]], _fed(tf, [1.0, 2.0, 3.0]), [2, 2])
        found = function(backwards, backwards)
        return [found.indices, found.values]

    uses = {
        "rows": lambda: trained(tf.IndexedSlices(_fed(tf, [1.0, nan, 2.0, 1.0]), tf.range(4), tf.constant([4]))),
        "dense": lambda: trained(_fed(tf, [1.0, nan, 2.0, 1.0])),
        "selu": lambda: pulled(tf.nn.selu),
        "elu": lambda: pulled(tf.nn.elu),
        "maximum": lambda: together(tf.sparse_maximum),
        "minimum": lambda: together(tf.sparse_minimum),
        "sum": lambda: together(tf.sparse_add),
    }
    return _outcomes(tf, uses, said=0)
