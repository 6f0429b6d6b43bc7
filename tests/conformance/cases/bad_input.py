"""Input that TensorFlow refuses: singular matrices; sizes, strides and axes that are 0, negative or out of range."""

import numpy as np


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def _outcomes(tf, uses, said=40):
    """The result of each use, or the class of its error and the beginning of the message."""
    found = {}
    for name, build in uses.items():
        with tf.Graph().as_default(), tf.Session() as session:
            try:
                found[name] = session.run(build())
            except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
                found[name] = [type(error).__name__, str(error).split("\n")[0].split(" [in ")[0][:said]]
    return found


_MATRICES = {
    "singular": [[1.0, 2.0], [2.0, 4.0]],
    "zero": [[0.0, 0.0], [0.0, 0.0]],
    "negative": [[-1.0, 0.0], [0.0, 1.0]],
    "nan": [[float("nan"), 0.0], [0.0, 1.0]],
    "one of two": [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 4.0]]],
    "not symmetric": [[1.0, 5.0], [0.0, 1.0]],
    "triangular": [[1.0, 0.0], [3.0, 0.0]],
}


def case_matrices(tf):
    functions = {
        "inverse": tf.matrix_inverse,
        "solve": lambda m: tf.matrix_solve(m, tf.ones_like(m)),
        "cholesky": tf.cholesky,
        "lower": lambda m: tf.matrix_triangular_solve(m, tf.ones_like(m)),
        "upper": lambda m: tf.matrix_triangular_solve(m, tf.ones_like(m), lower=False),
        "lu": tf.linalg.lu,
        "least squares": lambda m: tf.matrix_solve_ls(m, tf.ones_like(m), fast=False),
    }
    uses = {}
    for kind, function in functions.items():
        for name, matrix in _MATRICES.items():
            if (kind, name) != ("least squares", "nan"):
                uses[kind + " " + name] = lambda f=function, m=matrix: f(tf.constant(m))
    uses["eigenvalues"] = lambda: tf.self_adjoint_eig(tf.constant(_MATRICES["not symmetric"]))[0]
    uses["eigenvalues of nan"] = lambda: tf.self_adjoint_eig(tf.constant(_MATRICES["nan"]))[0]
    uses["square root"] = lambda: tf.linalg.sqrtm(tf.cast(tf.constant(_MATRICES["one of two"]), tf.complex64))
    uses["unknown shape"] = lambda: tf.matrix_solve_ls(
        tf.placeholder_with_default([[1.0, 2.0, 3.0]], None), tf.constant([[2.0]])
    )
    uses["tridiagonal"] = lambda: tf.linalg.tridiagonal_solve(
        tf.constant([[1.0, 1, 0], [2, 2, 2], [0, 1, 1]]), tf.ones([3, 1])
    )
    uses["tridiagonal zero"] = lambda: tf.linalg.tridiagonal_solve(
        tf.constant([[1.0, 1, 0], [0, 0, 0], [0, 1, 1]]), tf.ones([3, 1])
    )
    return _outcomes(tf, uses)


def case_gradient_of_cholesky(tf):
    matrix = tf.constant([[2.0, 9.0], [0.5, 3.0]])
    values = [tf.gradients(tf.cholesky(matrix), matrix)[0], tf.gradients(tf.self_adjoint_eig(matrix)[0][0], matrix)[0]]
    with tf.Session() as session:
        return session.run(values)


def case_axes(tf):
    uses = {}
    for axis in (5, -3, 2):
        for function in (tf.nn.softmax, tf.nn.log_softmax):
            uses[f"{function.__name__} {axis}"] = lambda f=function, a=axis: f(tf.ones([2, 3]), axis=a)
    uses["transpose"] = lambda: tf.transpose(tf.ones([2, 3]), [0, 3])
    return _outcomes(tf, uses)


def case_blocks(tf):
    image = [[[[1.0]] * 4] * 4]
    none = [[0, 0], [0, 0]]
    return _outcomes(
        tf,
        {
            "space_to_batch 0": lambda: tf.space_to_batch(image, none, 0),
            "batch_to_space 0": lambda: tf.batch_to_space(image, none, 0),
            "batch_to_space -1": lambda: tf.batch_to_space(image, none, -1),
            "space_to_batch_nd": lambda: tf.space_to_batch_nd(image, [0, 1], none),
            "batch_to_space_nd": lambda: tf.batch_to_space_nd(image, [0, 1], none),
            "padding": lambda: tf.space_to_batch_nd(image, [2, 2], [[-1, 1], [0, 0]]),
            "crop": lambda: tf.batch_to_space_nd(tf.ones([4, 2, 2, 1]), [2, 2], [[5, 0], [0, 0]]),
            "space_to_depth 0": lambda: tf.space_to_depth(image, 0),
            "space_to_depth 3": lambda: tf.space_to_depth(image, 3),
            "depth_to_space 2": lambda: tf.depth_to_space(image, 2),
        },
    )


def case_windows(tf):
    """Strides, rates and windows over the batch and the channels."""
    image, volume = [[[[1.0]] * 4] * 4], [[[[[1.0]] * 2] * 2] * 2]
    one = [1, 1, 1, 1]
    uses = {}
    for windows in ([1, 1, 1, 2], [2, 1, 1, 1], [1, -1, 1, 1]):
        added = {
            "conv2d": lambda w: tf.nn.conv2d(image, tf.ones([2, 2, 1, 1]), w, "SAME"),
            "dilations": lambda w: tf.nn.conv2d(image, tf.ones([2, 2, 1, 1]), one, "SAME", dilations=w),
            "depthwise": lambda w: tf.nn.depthwise_conv2d_native(image, tf.ones([2, 2, 1, 1]), w, "SAME"),
            "dilation2d": lambda w: tf.nn.dilation2d(tf.constant(image), tf.ones([2, 2, 1]), w, one, "SAME"),
            "ksizes": lambda w: tf.extract_image_patches(image, w, one, one, "SAME"),
            "rates": lambda w: tf.extract_image_patches(image, one, one, w, "SAME"),
        }
        uses.update({f"{k} {windows}": lambda f=f, w=windows: f(w) for k, f in added.items()})
    uses["max_pool"] = lambda: tf.nn.max_pool(image, [2, 1, 1, 1], one, "SAME")
    uses["avg_pool"] = lambda: tf.nn.avg_pool(image, one, [2, 1, 1, 1], "SAME")
    uses["conv3d"] = lambda: tf.nn.conv3d(volume, tf.ones([1, 1, 1, 1, 1]), [1, 1, 1, 1, 2], "SAME")
    uses["max_pool3d"] = lambda: tf.nn.max_pool3d(volume, [1, 1, 1, 1, 2], [1, 1, 1, 1, 1], "SAME")
    return _outcomes(tf, uses)


def case_sizes(tf):
    """Numbers of parts, bins, samples and elements that are 0 or negative."""
    x, image = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[[[1.0]] * 4] * 4]
    whole = {
        "split": lambda k: tf.split(x, k, 1),
        "linspace": lambda k: tf.linspace(0.0, 1.0, k),
        "histogram": lambda k: tf.histogram_fixed_width(x, [0.0, 1.0], k),
        "resize": lambda k: tf.image.resize_bilinear(image, [k, 2]),
        "resize_nearest": lambda k: tf.image.resize_nearest_neighbor(image, [k, 2]),
        "crop_and_resize": lambda k: tf.image.crop_and_resize(image, [[0.0, 0, 1, 1]], [0], [k, 2]),
        "num_sampled": lambda k: tf.nn.uniform_candidate_sampler([[0]], 1, k, True, 5),
        "range_max": lambda k: tf.nn.log_uniform_candidate_sampler([[0]], 1, 1, True, k),
        "beam_width": lambda k: tf.nn.ctc_beam_search_decoder(tf.ones([2, 1, 3]), [2], beam_width=k)[1],
        "top_paths": lambda k: tf.nn.ctc_beam_search_decoder(tf.ones([2, 1, 3]), [2], top_paths=k)[1],
        "random_uniform": lambda k: tf.random_uniform([2], 0, k, tf.int32),
    }
    uses = {f"{k} {n}": lambda f=f, n=n: f(n) for k, f in whole.items() for n in (0, -1)}
    uses["range"] = lambda: tf.range(5, 0)
    uses["range down"] = lambda: tf.range(0, 5, -1)
    uses["sequence_mask"] = lambda: tf.sequence_mask([1, 2], -1)
    uses["multinomial"] = lambda: tf.multinomial(x, -1)
    return _outcomes(tf, uses, said=20)


def case_confusion_matrix_of_columns(tf):
    """Labels or predictions in one column, and arguments that do not fit."""
    return _in_turn(
        tf,
        [
            lambda: tf.confusion_matrix([[1], [2]], [1, 2]),
            lambda: tf.confusion_matrix([1, 2], [[1], [2]]),
            lambda: tf.confusion_matrix([1, 2, 3], [[1, 2, 3]]),
            lambda: tf.confusion_matrix([1, 2, 3], [1, 2]),
        ],
    )


def case_ranks_in_a_run(tf):
    """Ranks that only a run shows to be too small, and arguments of transforms."""
    scalar, vector = tf.placeholder_with_default(1.0, None), tf.placeholder_with_default([1.0], None)
    return _in_turn(
        tf,
        [
            lambda: tf.matrix_diag(scalar),
            lambda: tf.matrix_diag_part(vector),
            lambda: tf.matrix_set_diag(vector, vector),
            lambda: tf.matrix_set_diag([1.0], [1.0]),
            lambda: tf.cumsum([1, 2], 3),
            lambda: tf.cumprod([1, 2], -3),
            lambda: tf.signal.dct(np.ones(1, np.float32), type=1),
            lambda: tf.signal.rfft(np.zeros(0, np.float32)),
            lambda: tf.signal.irfft2d(np.zeros((0, 0), np.complex64)),
        ],
    )


def case_sparse_accumulator_shapes(tf):
    """The dense shape of averaged rows, and of gradients that do not fit."""
    free = tf.SparseConditionalAccumulator(tf.float32, [])
    fixed = tf.SparseConditionalAccumulator(tf.float32, [2, 2, None])
    rows = np.ones([2, 2], np.float32)
    return _in_turn(
        tf,
        [
            lambda: [free.apply_grad([0, 1], rows), free.apply_grad([0, 2], rows, [3, 2])],
            lambda: list(free.take_indexed_slices_grad(1)),
            lambda: fixed.apply_grad([0], np.ones([1, 2, 3], np.float32), [2, 2]),
            lambda: fixed.apply_grad([0], np.ones([1, 3, 3], np.float32), [2, 3, 3]),
            lambda: fixed.apply_grad([0], np.ones([1, 2, 3], np.float32), [2, 2, 3]),
        ],
    )


def case_templates(tf):
    """Names of templates with a scope of their own, and functions that create variables in each call."""

    def linear(x):
        weights = tf.get_variable("w", [2], initializer=tf.zeros_initializer())
        state = tf.get_variable("s", [2], initializer=tf.zeros_initializer(), trainable=False)
        return tf.add(x * weights, state, name="sum")

    found = []
    for _ in range(2):
        template = tf.make_template("part", linear, create_scope_now_=True)
        found.append([template([1.0, 2.0]).name for _ in range(2)])
        found.append([variable.name for variable in template.trainable_variables])
        found.append([variable.name for variable in template.non_trainable_variables])
    careless = tf.make_template("careless", lambda: tf.Variable([1.0]))
    careless()
    return [found, _in_turn(tf, [careless, lambda: tf.make_template(None, linear)])]


def case_elements_of_generators(tf):
    """Parts of elements that are tuples where the structure has a tensor, and structures that do not fit."""

    def first(generator, types):
        return tf.data.Dataset.from_generator(generator, types).make_one_shot_iterator().get_next()

    return _in_turn(
        tf,
        [
            lambda: first(lambda: [{"a": (1, 2), "b": [[1], [2]]}], {"a": tf.int64, "b": tf.int32}),
            lambda: first(lambda: [((1, 2), 3)], (tf.int64, tf.float32)),
            lambda: first(lambda: [{"a": 1}], {"a": tf.int64, "b": tf.int32}),
            lambda: first(lambda: [(1, 2, 3)], (tf.int64, tf.float32)),
        ],
    )


def _in_turn(tf, calls):
    """The value that a run of each call gives, or the class of its error."""
    found = []
    for call in calls:
        try:
            made = call()
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                found.append(session.run(made))
        except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
            found.append(type(error).__name__)
    return found
