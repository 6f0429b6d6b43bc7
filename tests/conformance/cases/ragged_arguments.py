"""Each operation of TensorFlow 1.15's list of operations that take ragged tensors: forms of values, gradients, errors.

``ragged_dispatch.py`` has the meaning of each; these cases apply all of them to the same forms of arguments. They leave
out types for which TensorFlow 1.15 lacks a kernel, defects of its dispatch, and arguments that TensorFlow 2 added.
"""

UNARY = """
    debugging.check_numerics identity ones_like zeros_like clip_by_value|-0.5,0.5 bitwise.invert abs acos math.acosh
    math.angle math.asin math.asinh math.atan math.atanh cast|int32 math.ceil math.conj cos math.cosh math.digamma
    math.erf math.erfc exp math.expm1 floor math.imag math.is_finite math.is_inf math.is_nan lgamma log math.log1p
    math.log_sigmoid logical_not negative math.real math.reciprocal math.rint round math.rsqrt saturate_cast|uint8 sign
    sin math.sinh sqrt square tan io.decode_compressed strings.to_number strings.to_hash_bucket|7 strings.as_string
    io.decode_base64 io.encode_base64 strings.regex_full_match|'[a-z]' strings.regex_replace|'[a-z]','x' strings.strip
    strings.to_hash_bucket_fast|7 strings.to_hash_bucket_strong|7,[1,2] strings.substr|0,1 strings.length
    strings.unicode_script"""
BINARY = """
    bitwise.bitwise_and bitwise.bitwise_or bitwise.bitwise_xor bitwise.left_shift bitwise.right_shift add math.atan2
    complex math.divide_no_nan divide equal floordiv math.floormod greater greater_equal less less_equal logical_and
    logical_or math.logical_xor maximum minimum multiply not_equal pow realdiv math.squared_difference subtract truediv
    truncatediv truncatemod"""
REDUCTIONS = "sum prod mean any all"
SEGMENTS = "sum prod min max mean sqrt_n"


def found(tf, path):
    value = tf
    for name in path.split("."):
        value = getattr(value, name)
    return value


def call(tf, entry):
    """The function of an entry of ``UNARY``, with the further arguments bound."""
    path, _, rest = entry.partition("|")
    function = found(tf, path)
    if path == "cast" or path == "saturate_cast":
        return lambda x, **kwargs: function(x, getattr(tf, rest), **kwargs)
    more = eval("(" + rest + ",)") if rest else ()
    if path == "debugging.check_numerics":
        more = ("bad",)
    return lambda x, **kwargs: function(x, *more, **kwargs)


FORMS = {
    "two ragged dimensions": lambda tf: tf.ragged.constant([[[0.25, 0.5], []], [], [[0.75]]]),
    "rows of vectors": lambda tf: tf.ragged.constant([[[0.25, 0.5]], [], [[0.75, 0.125]]], ragged_rank=1),
    "splits of int32": lambda tf: tf.ragged.constant([[0.25, 0.5], [0.75]], row_splits_dtype=tf.int32),
    "nothing": lambda tf: tf.ragged.constant([[], []], tf.float32),
    "whole numbers": lambda tf: tf.ragged.constant([[1, 2], [], [3]]),
    "int64": lambda tf: tf.ragged.constant([[1, 2], [], [3]], tf.int64),
    "truth": lambda tf: tf.ragged.constant([[True, False], [], [True]]),
    "texts": lambda tf: tf.ragged.constant([["a", "bC"], [], [" 7"]]),
    "complex": lambda tf: tf.ragged.constant([[1 + 2j, 0.5j], [2 - 1j]], tf.complex64),
}

LEFT_OUT = {
    # Types without a kernel.
    "acos": "whole numbers, int64, complex",
    "math.asin": "whole numbers, int64, complex",
    "math.atan": "whole numbers, int64, complex",
    "math.reciprocal": "whole numbers, int64",
    "math.atan2": "gradients with a scalar, gradients of a scalar",
    "tan": "whole numbers, int64",
    "round": "complex",
    "cast": "texts",
    "realdiv": "whole numbers, int64, whole with a scalar",
    "truncatediv": "complex, by name, named, of a scalar, of a column, with a scalar, with a column, "
    "vectors with a vector",
    "truncatemod": "gradients, gradients with a column, gradients with a scalar, gradients of a scalar",
    # TensorFlow's process ends, as it does for reduce_min and reduce_max.
    "add": "texts, with a text",
    # Their names for strings do not dispatch, although the list has them.
    "strings.to_number": "texts",
    "strings.to_hash_bucket": "texts",
}
"""For each function, forms that are left out."""


def forms(name):
    """The forms of arguments of a function."""
    out = LEFT_OUT.get(name, "").split(", ")
    return {form: make for form, make in FORMS.items() if form not in out}


def numbers(tf):
    return tf.ragged.constant([[0.25, 0.5], [], [0.75]])


def others(tf):
    return tf.ragged.constant([[0.5, 0.125], [], [2.0]])


def cases(tf):
    made = {}
    for entry in UNARY.split():
        made[entry.partition("|")[0]] = _unary(entry)
    for path in BINARY.split():
        made[path] = _binary(path)
    for name in REDUCTIONS.split():
        made["reduce_" + name] = _reduction(name)
    for name in SEGMENTS.split():
        made["unsorted_segment_" + name] = _segments(name)
    made.update({name[5:]: _each(case) for name, case in globals().items() if name.startswith("each_")})
    return made


def _each(case):
    return lambda tf: _outcomes(tf, case(tf))


def _outcomes(tf, parts):
    """What each of the functions gives, or the class of its error."""
    made = {}
    with tf.Session() as session:
        fetches = {}
        for name, part in parts.items():
            try:
                fetches[name] = part()
            except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
                made[name] = "raises " + type(error).__name__
        for name, fetch in fetches.items():
            made[name] = _run(session, fetch)
    return made


def _run(session, fetch):
    try:
        return _described(session.run(fetch), fetch)
    except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
        return "raises " + type(error).__name__


def _described(value, fetch):
    dtype = getattr(fetch, "dtype", None)
    return [_plain(value), dtype.name if dtype is not None else None]


def _plain(value):
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if hasattr(value, "to_list"):
        value = value.to_list()
    elif hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, complex):
        return [_plain(value.real), _plain(value.imag)]
    if isinstance(value, float):
        return "nan" if value != value else str(value) if abs(value) == float("inf") else round(value, 4)
    return value


def _gradients(tf, function, *values):
    """The gradients of a function by the innermost values of ragged tensors, and by tensors."""
    leaves = [value.flat_values if hasattr(value, "flat_values") else value for value in values]
    result = function(*values)
    found = tf.gradients(getattr(result, "flat_values", result), leaves)
    return [tf.constant("none") if each is None else tf.convert_to_tensor(each) for each in found]


def _unary(entry):
    def run(tf):
        function = call(tf, entry)
        parts = {name: lambda form=form: function(form(tf)) for name, form in forms(entry.partition("|")[0]).items()}
        parts["gradient"] = lambda: _gradients(tf, function, numbers(tf))[0]
        parts["gradient of two"] = lambda: _gradients(tf, function, FORMS["two ragged dimensions"](tf))[0]
        parts["named"] = lambda: function(numbers(tf), name="own")
        parts["of sparse"] = lambda: function(tf.SparseTensor([[0]], [1.0], [2]))
        parts["in a list"] = lambda: function([numbers(tf)])
        return _outcomes(tf, parts)

    return run


def _binary(path):
    def run(tf):
        function = found(tf, path)

        def column():
            return tf.constant([[2.0], [3.0], [4.0]])

        parts = {}
        for name, form in forms(path).items():
            parts[name] = lambda form=form: function(form(tf), form(tf))
        parts["with a scalar"] = lambda: function(numbers(tf), 2)
        parts["of a scalar"] = lambda: function(2, numbers(tf))
        parts["whole with a scalar"] = lambda: function(FORMS["whole numbers"](tf), 2)
        parts["whole with a fraction"] = lambda: function(FORMS["whole numbers"](tf), 2.5)
        parts["with a column"] = lambda: function(numbers(tf), column())
        parts["of a column"] = lambda: function(column(), numbers(tf))
        parts["with a text"] = lambda: function(numbers(tf), "a")
        parts["with whole numbers"] = lambda: function(numbers(tf), FORMS["whole numbers"](tf))
        parts["with other rows"] = lambda: function(numbers(tf), tf.ragged.constant([[1.0], [2.0], [3.0, 4.0]]))
        parts["with fewer rows"] = lambda: function(numbers(tf), tf.ragged.constant([[1.0, 2.0], []]))
        parts["with other splits"] = lambda: function(
            numbers(tf), tf.ragged.constant([[0.5, 0.125], [], [2.0]], row_splits_dtype=tf.int32)
        )
        parts["vectors with a vector"] = lambda: function(FORMS["rows of vectors"](tf), [2.0, 4.0])
        parts["with a matrix that does not fit"] = lambda: function(numbers(tf), [[1.0, 2.0], [3.0, 4.0]])
        parts["with nothing"] = lambda: function(numbers(tf), None)
        parts["with a sparse tensor"] = lambda: function(numbers(tf), tf.SparseTensor([[0, 0]], [1.0], [3, 2]))
        parts["gradients"] = lambda: _gradients(tf, function, numbers(tf), others(tf))
        parts["gradients with a column"] = lambda: _gradients(tf, function, numbers(tf), column())
        parts["gradients with a scalar"] = lambda: _gradients(tf, function, numbers(tf), tf.constant(2.0))
        parts["gradients of a scalar"] = lambda: _gradients(tf, function, tf.constant(2.0), numbers(tf))
        parts["by name"] = lambda: function(numbers(tf), y=others(tf))
        parts["named"] = lambda: function(numbers(tf), others(tf), name="own")
        out = LEFT_OUT.get(path, "").split(", ")
        return _outcomes(tf, {name: part for name, part in parts.items() if name not in out})

    return run


def _reduction(name):
    def run(tf):
        function = getattr(tf, "reduce_" + name)
        parts = {}
        for form in forms("reduce_" + name):
            for axis in (None, 0, 1, -1, [0, 1]) if form != "texts" else ():
                parts[form + ", " + str(axis)] = lambda form=form, axis=axis: function(FORMS[form](tf), axis)
        for axis in (None, 0, 1):
            parts["gradient, " + str(axis)] = lambda axis=axis: _gradients(
                tf, lambda x: function(x, axis), tf.ragged.constant([[0.25, 0.5], [0.125], [0.75]])
            )[0]
            parts["gradient with an empty row, " + str(axis)] = lambda axis=axis: _gradients(
                tf, lambda x: function(x, axis), numbers(tf)
            )[0]
        for axis in (1, 2, [1, 2]):
            parts["gradient of three, " + str(axis)] = lambda axis=axis: _gradients(
                tf, lambda x: function(x, axis), FORMS["two ragged dimensions"](tf)
            )[0]
        parts["beyond"] = lambda: function(numbers(tf), 2)
        parts["far before"] = lambda: function(numbers(tf), -3)
        parts["twice"] = lambda: function(numbers(tf), [1, -1])
        parts["no axes"] = lambda: function(numbers(tf), [])
        parts["unknown axis"] = lambda: function(numbers(tf), tf.placeholder_with_default(1, []))
        parts["constant axis"] = lambda: function(numbers(tf), tf.constant(1))
        parts["old argument"] = lambda: function(numbers(tf), reduction_indices=1)
        parts["both arguments"] = lambda: function(numbers(tf), 1, reduction_indices=1)
        return _outcomes(tf, parts)

    return run


def _segments(name):
    def run(tf):
        function = getattr(tf.math, "unsorted_segment_" + name)
        parts = {}
        for form in FORMS:
            parts[form] = lambda form=form: function(FORMS[form](tf), [1, 0, 1], 3)
        parts["ids of values"] = lambda: function(numbers(tf), tf.ragged.constant([[2, 0], [], [2]]), 3)
        parts["ids of other rows"] = lambda: function(numbers(tf), tf.ragged.constant([[2], [0], [2]]), 3)
        parts["ids as int64"] = lambda: function(
            numbers(tf), tf.constant([1, 0, 1], tf.int64), tf.constant(2, tf.int64)
        )
        parts["negative ids"] = lambda: function(numbers(tf), [-1, 0, 0], 2)
        parts["too large ids"] = lambda: function(numbers(tf), [5, 0, 0], 2)
        parts["too few ids"] = lambda: function(numbers(tf), [0, 0], 2)
        parts["fractional ids"] = lambda: function(numbers(tf), [0.5, 0.0, 0.0], 2)
        parts["a tensor by ragged ids"] = lambda: function([1.0, 2.0], tf.ragged.constant([[0], [1]]), 2)
        parts["ids of other splits"] = lambda: function(
            numbers(tf), tf.ragged.constant([[2, 0], [], [2]], row_splits_dtype=tf.int32), 3
        )
        parts["gradient"] = lambda: _gradients(tf, lambda x: function(x, [1, 0, 1], 3), numbers(tf))[0]
        parts["gradient of values"] = lambda: _gradients(
            tf, lambda x: function(x, tf.ragged.constant([[2, 0], [], [2]]), 3), numbers(tf)
        )[0]
        return _outcomes(tf, parts)

    return run


def whole(tf):
    return FORMS["whole numbers"](tf)


def deep(tf):
    return tf.ragged.constant([[[1, 2], []], [], [[3], [4, 5, 6]]])


def texts(tf):
    return FORMS["texts"](tf)


def narrow(tf):
    return tf.ragged.constant([[1, 2], [], [3]], row_splits_dtype=tf.int32)


def each_add_n(tf):
    return {
        "one": lambda: tf.add_n([numbers(tf)]),
        "none": lambda: tf.add_n([]),
        "with a tensor": lambda: tf.add_n([numbers(tf), tf.constant([1.0, 2.0, 3.0])]),
        "with a matrix": lambda: tf.add_n([numbers(tf), tf.ones([3, 2])]),
        "other rows": lambda: tf.add_n([numbers(tf), tf.ragged.constant([[1.0], [2.0], [3.0]])]),
        "fewer rows": lambda: tf.add_n([numbers(tf), tf.ragged.constant([[1.0], [2.0]])]),
        "other types": lambda: tf.add_n([numbers(tf), whole(tf)]),
        "other ranks": lambda: tf.add_n([whole(tf), deep(tf)]),
        "texts": lambda: tf.add_n([texts(tf), texts(tf)]),
        "other splits": lambda: tf.add_n([whole(tf), narrow(tf)]),
        "a tuple": lambda: tf.add_n((numbers(tf), numbers(tf))),
        "gradients": lambda: _gradients(tf, lambda *parts: tf.add_n(list(parts)), numbers(tf), others(tf)),
        "three dimensions": lambda: tf.add_n([deep(tf), deep(tf)]),
    }


def each_join(tf):
    return {
        "one": lambda: tf.strings.join([texts(tf)]),
        "none": lambda: tf.strings.join([]),
        "separator": lambda: tf.strings.join([texts(tf), texts(tf)], separator="-"),
        "vector": lambda: tf.strings.join([texts(tf), ["x", "y", "z"]]),
        "numbers": lambda: tf.strings.join([texts(tf), numbers(tf)]),
        "other rows": lambda: tf.strings.join([texts(tf), tf.ragged.constant([["a"], ["b"], ["c"]])]),
        "a tuple": lambda: tf.strings.join((texts(tf), "!")),
    }


def each_reduce_join(tf):
    def three():
        return tf.ragged.constant([[["a", "b"], []], [], [["c"]]])

    parts = {
        str(axis): lambda axis=axis: tf.strings.reduce_join(texts(tf), axis)
        for axis in (None, 0, 1, -1, [0, 1], [1, 0])
    }
    parts.update(
        {
            "three " + str(axis): lambda axis=axis: tf.strings.reduce_join(three(), axis, separator="+")
            for axis in (0, 1, 2, -1, [1, 2])
        }
    )
    parts["separator"] = lambda: tf.strings.reduce_join(texts(tf), 1, separator=", ")
    parts["beyond"] = lambda: tf.strings.reduce_join(texts(tf), 2)
    parts["numbers"] = lambda: tf.strings.reduce_join(numbers(tf), 1)
    parts["old"] = lambda: tf.reduce_join(texts(tf), 1)
    return parts


def each_concat(tf):
    return {
        "one": lambda: tf.concat([whole(tf)], 0),
        "none": lambda: tf.concat([], 0),
        "alone": lambda: tf.concat(whole(tf), 0),
        "beyond": lambda: tf.concat([whole(tf), whole(tf)], 2),
        "before": lambda: tf.concat([whole(tf), whole(tf)], -3),
        "unknown axis": lambda: tf.concat([whole(tf), whole(tf)], tf.placeholder_with_default(0, [])),
        "other rows": lambda: tf.concat([whole(tf), tf.ragged.constant([[1], [2]])], 1),
        "other ranks": lambda: tf.concat([whole(tf), deep(tf)], 0),
        "a vector": lambda: tf.concat([whole(tf), [1, 2]], 0),
        "other types": lambda: tf.concat([whole(tf), numbers(tf)], 0),
        "a list of floats": lambda: tf.concat([whole(tf), [[1.5]]], 0),
        "other splits": lambda: tf.concat([whole(tf), narrow(tf)], 0),
        "gradients, 0": lambda: _gradients(
            tf, lambda x, y: tf.concat([x, y], 0) * tf.concat([y, x], 0), numbers(tf), others(tf)
        ),
        "gradients, 1": lambda: _gradients(tf, lambda x, y: tf.square(tf.concat([x, y], 1)), numbers(tf), others(tf)),
        "gradient of a tensor": lambda: _gradients(
            tf, lambda x, y: tf.square(tf.concat([x, y], 1)), numbers(tf), tf.constant([[2.0], [3.0], [4.0]])
        ),
        "texts": lambda: tf.concat([texts(tf), texts(tf)], 1),
        "named": lambda: tf.concat([whole(tf), whole(tf)], 0, name="own"),
    }


def each_stack(tf):
    return {
        "one": lambda: tf.stack([whole(tf)]),
        "beyond": lambda: tf.stack([whole(tf), whole(tf)], 3),
        "before": lambda: tf.stack([whole(tf), whole(tf)], -3),
        "last": lambda: tf.stack([whole(tf), whole(tf)], -1),
        "three": lambda: tf.stack([deep(tf), deep(tf)], 1),
        "three within": lambda: tf.stack([deep(tf), deep(tf)], 2),
        "with a tensor": lambda: tf.stack([whole(tf), [[1, 2], [3, 4]]]),
        "other ranks": lambda: tf.stack([whole(tf), deep(tf)]),
        "other types": lambda: tf.stack([whole(tf), numbers(tf)]),
        "other rows": lambda: tf.stack([whole(tf), tf.ragged.constant([[1], [2]])], 1),
        "other splits": lambda: tf.stack([whole(tf), narrow(tf)]),
        "gradients": lambda: _gradients(tf, lambda x, y: tf.square(tf.stack([x, y], 1)), numbers(tf), others(tf)),
    }


def each_expand_dims(tf):
    parts = {
        str(axis): lambda axis=axis: tf.expand_dims(deep(tf), axis) for axis in (0, 1, 2, 3, 4, -1, -2, -4, -5, None)
    }
    parts["dim"] = lambda: tf.expand_dims(whole(tf), dim=1)
    parts["vectors"] = lambda: tf.expand_dims(FORMS["rows of vectors"](tf), 2)
    parts["unknown axis"] = lambda: tf.expand_dims(whole(tf), tf.placeholder_with_default(1, []))
    parts["gradient"] = lambda: _gradients(tf, lambda x: tf.square(tf.expand_dims(x, 1)), numbers(tf))[0]
    return parts


def each_squeeze(tf):
    def one():
        return tf.ragged.constant([[[1, 2]], [[3]]])

    parts = {str(axis): lambda axis=axis: tf.squeeze(one(), axis) for axis in (1, 2, 3, -1, -2, -4, [1], [], None)}
    parts["squeeze_dims"] = lambda: tf.squeeze(one(), squeeze_dims=[1])
    parts["both"] = lambda: tf.squeeze(one(), 1, squeeze_dims=[1])
    parts["several"] = lambda: tf.squeeze(tf.expand_dims(one(), 0), [0, 2])
    parts["rows"] = lambda: tf.squeeze(tf.ragged.constant([[1, 2]]), 0)
    parts["not of size 1"] = lambda: tf.squeeze(whole(tf), 1)
    parts["a vector's dimension"] = lambda: tf.squeeze(tf.ragged.constant([[[1], [2]], [[3]]], ragged_rank=1), 2)
    parts["gradient"] = lambda: _gradients(tf, lambda x: tf.square(tf.squeeze(tf.expand_dims(x, 1), 1)), numbers(tf))[0]
    return parts


def each_gather(tf):
    rows = tf.ragged.constant([[0.25, 0.5], [], [0.75]])
    return {
        "beyond": lambda: tf.gather(whole(tf), [3]),
        "negative": lambda: tf.gather(whole(tf), [-1]),
        "text": lambda: tf.gather(whole(tf), ["a"]),
        "fraction": lambda: tf.gather(whole(tf), [0.5]),
        "negative batch_dims": lambda: tf.gather(whole(tf), tf.ragged.constant([[1], [], [0]]), batch_dims=-1),
        "validate": lambda: tf.gather(whole(tf), [0], validate_indices=True),
        "int64": lambda: tf.gather(whole(tf), tf.constant([0, 2], tf.int64)),
        "three by ragged": lambda: tf.gather(deep(tf), tf.ragged.constant([[2], [], [0, 0]])),
        "matrix by three": lambda: tf.gather(tf.constant([[1, 2], [3, 4]]), tf.ragged.constant([[[0], [1, 0]], []])),
        "scalar of three": lambda: tf.gather(deep(tf), 2),
        "other splits": lambda: tf.gather(narrow(tf), whole(tf) - 1),
        "empty": lambda: tf.gather(whole(tf), tf.constant([], tf.int32)),
        "gradient": lambda: _gradients(tf, lambda x: tf.square(tf.gather(x, [2, 0, 2])), rows)[0],
        "gradient of a tensor": lambda: _gradients(
            tf, lambda x: tf.gather(x, tf.ragged.constant([[2], [0, 2]])), tf.constant([1.0, 2.0, 3.0])
        )[0],
    }


def each_batch_gather(tf):
    def by(indices):
        return lambda: tf.batch_gather(whole(tf), indices)

    return {
        "a matrix": by([[0], [0], [0]]),
        "a matrix that fits": lambda: tf.batch_gather(tf.ragged.constant([[1, 2], [3]]), [[1, 0], [0, 0]]),
        "a vector": by([0, 1, 2]),
        "beyond": lambda: tf.batch_gather(whole(tf), tf.ragged.constant([[5], [], [0]])),
        "negative": lambda: tf.batch_gather(whole(tf), tf.ragged.constant([[-1], [], [0]])),
        "fewer rows": lambda: tf.batch_gather(whole(tf), tf.ragged.constant([[0]])),
        "three": lambda: tf.batch_gather(deep(tf), tf.ragged.constant([[[1], [], []][:2], [], [[0], [2, 0]]])),
        "three by two": lambda: tf.batch_gather(deep(tf), tf.ragged.constant([[1], [], [1, 0]])),
        "a vector of a tensor": lambda: tf.batch_gather(tf.constant([1, 2]), tf.ragged.constant([[0], [1]])),
        "fractions": lambda: tf.batch_gather(whole(tf), tf.ragged.constant([[0.5], [], [0.0]])),
        "other splits": lambda: tf.batch_gather(narrow(tf), tf.ragged.constant([[1], [], [0]])),
        "gradient": lambda: _gradients(
            tf, lambda x: tf.batch_gather(x, tf.ragged.constant([[1, 1], [], [0]])), numbers(tf)
        )[0],
    }


def each_gather_nd(tf):
    return {
        "scalars": lambda: tf.gather_nd(whole(tf), [2, 0]),
        "rows": lambda: tf.gather_nd(whole(tf), [[2], [0]]),
        "too deep": lambda: tf.gather_nd(whole(tf), [[0, 0, 0]]),
        "ragged indices": lambda: tf.gather_nd(whole(tf), tf.ragged.constant([[[2, 0]], [[0, 1]]], ragged_rank=1)),
        "ragged last": lambda: tf.gather_nd(whole(tf), tf.ragged.constant([[2], [0, 1]])),
        "of a tensor": lambda: tf.gather_nd(
            tf.constant([[1, 2], [3, 4]]), tf.ragged.constant([[[1, 0]], [[0, 1], [1, 1]]], ragged_rank=1)
        ),
        "beyond": lambda: tf.gather_nd(whole(tf), [[2, 1]]),
        "batch_dims": lambda: tf.gather_nd(whole(tf), [[0], [0], [0]], batch_dims=1),
        "scalar index": lambda: tf.gather_nd(whole(tf), 0),
        "three": lambda: tf.gather_nd(deep(tf), [[0], [2]]),
        "three, two indices": lambda: tf.gather_nd(deep(tf), [[2, 1], [0, 0]]),
        "vectors": lambda: tf.gather_nd(FORMS["rows of vectors"](tf), [[0, 0], [2, 0]]),
        "one of a vector": lambda: tf.gather_nd(FORMS["rows of vectors"](tf), [[0, 0, 1], [2, 0, 0]]),
        "gradient": lambda: _gradients(tf, lambda x: tf.square(tf.gather_nd(x, [[2, 0], [0, 1]])), numbers(tf))[0],
    }


def each_one_hot(tf):
    return {
        "values": lambda: tf.one_hot(whole(tf), 4, 5, -1),
        "axis 1": lambda: tf.one_hot(whole(tf), 3, axis=1),
        "axis 0": lambda: tf.one_hot(whole(tf), 3, axis=0),
        "axis 2": lambda: tf.one_hot(whole(tf), 3, axis=2),
        "axis -1": lambda: tf.one_hot(whole(tf), 3, axis=-1),
        "axis 3": lambda: tf.one_hot(whole(tf), 3, axis=3),
        "three": lambda: tf.one_hot(deep(tf), 2, dtype=tf.int64),
        "fractions": lambda: tf.one_hot(numbers(tf), 2),
        "truth": lambda: tf.one_hot(whole(tf), 4, True, False),
        "no depth": lambda: tf.one_hot(whole(tf), None),
        "negative depth": lambda: tf.one_hot(whole(tf), -1),
        "a vector of depths": lambda: tf.one_hot(whole(tf), [3]),
        "texts": lambda: tf.one_hot(texts(tf), 3),
    }


def each_sizes(tf):
    return {
        "rank": lambda: tf.rank(whole(tf)),
        "rank, named": lambda: tf.rank(deep(tf), name="own"),
        "size": lambda: tf.size(deep(tf)),
        "size by place": lambda: tf.size(deep(tf), "own", tf.int64),
        "size of nothing": lambda: tf.size(FORMS["nothing"](tf)),
        "size of vectors": lambda: tf.size(FORMS["rows of vectors"](tf)),
        "size as float": lambda: tf.size(whole(tf), out_type=tf.float32),
        "shape": lambda: tf.shape(whole(tf)),
    }


def each_tile(tf):
    return {
        "columns": lambda: tf.tile(whole(tf), [1, 3]),
        "none": lambda: tf.tile(whole(tf), [0, 1]),
        "no columns": lambda: tf.tile(whole(tf), [1, 0]),
        "too many": lambda: tf.tile(whole(tf), [1, 1, 1]),
        "a scalar": lambda: tf.tile(whole(tf), 2),
        "fraction": lambda: tf.tile(whole(tf), [1.5, 1.0]),
        "unknown": lambda: tf.tile(whole(tf), tf.placeholder_with_default([2, 1], [2])),
        "int64": lambda: tf.tile(whole(tf), tf.constant([1, 2], tf.int64)),
        "texts": lambda: tf.tile(texts(tf), [2, 2]),
        "other splits": lambda: tf.tile(narrow(tf), [2, 2]),
        "gradient": lambda: _gradients(tf, lambda x: tf.square(tf.tile(x, [2, 3])), numbers(tf))[0],
    }


def each_where(tf):
    truth = FORMS["truth"]
    return {
        "only x": lambda: tf.where(truth(tf), whole(tf)),
        "three": lambda: tf.where(deep(tf) > 2),
        "vectors": lambda: tf.where(FORMS["rows of vectors"](tf) > 0.3),
        "numbers": lambda: tf.where(whole(tf)),
        "with a scalar": lambda: tf.where(truth(tf), whole(tf), 0),
        "with a matrix": lambda: tf.where(truth(tf), whole(tf), [[1, 2], [3, 4], [5, 6]]),
        "other rows": lambda: tf.where(truth(tf), whole(tf), tf.ragged.constant([[1], [2], [3]])),
        "other types": lambda: tf.where(truth(tf), whole(tf), numbers(tf)),
        "a matrix chooses": lambda: tf.where([[True, False]], whole(tf), whole(tf)),
        "a scalar chooses": lambda: tf.where(True, whole(tf), -whole(tf)),
        "a short vector": lambda: tf.where([True, False], whole(tf), whole(tf)),
        "a vector of rows and a matrix": lambda: tf.where([True, False, True], whole(tf), [[7], [8], [9]]),
        "other ranks": lambda: tf.where([True, False, True], whole(tf), deep(tf)),
        "other splits": lambda: tf.where(truth(tf), whole(tf), narrow(tf)),
        "gradients": lambda: _gradients(tf, lambda x, y: tf.square(tf.where(truth(tf), x, y)), numbers(tf), others(tf)),
        "gradients of rows": lambda: _gradients(
            tf, lambda x, y: tf.square(tf.where([True, False, False], x, y)), numbers(tf), others(tf)
        ),
    }


def each_dynamic_partition(tf):
    def first(parts):
        return parts[0]

    return {
        "one": lambda: tf.dynamic_partition(whole(tf), [0, 0, 0], 1),
        "empty": lambda: tf.dynamic_partition(whole(tf), [0, 0, 0], 2)[1],
        "three": lambda: tf.dynamic_partition(deep(tf), [1, 0, 1], 2)[1],
        "values of three": lambda: tf.dynamic_partition(deep(tf), tf.ragged.constant([[0, 1], [], [1, 0]]), 2)[1],
        "beyond": lambda: tf.dynamic_partition(whole(tf), [0, 0, 5], 2)[0],
        "negative": lambda: tf.dynamic_partition(whole(tf), [0, 0, -1], 2)[0],
        "too few": lambda: tf.dynamic_partition(whole(tf), [0, 0], 2)[0],
        "tensor count": lambda: tf.dynamic_partition(whole(tf), [0, 0, 1], tf.constant(2))[0],
        "negative count": lambda: tf.dynamic_partition(whole(tf), [0, 0, 1], -2),
        "no parts": lambda: tf.dynamic_partition(whole(tf), [0, 0, 1], 0),
        "fractions": lambda: tf.dynamic_partition(whole(tf), [0.0, 0.0, 1.0], 2)[0],
        "a tensor by ragged": lambda: tf.dynamic_partition(tf.constant([1, 2]), tf.ragged.constant([[0], [1]]), 2)[0],
        "scalar": lambda: tf.dynamic_partition(whole(tf), 0, 2)[0],
        "gradient": lambda: _gradients(
            tf, lambda x: tf.square(first(tf.dynamic_partition(x, [0, 0, 1], 2))), numbers(tf)
        )[0],
    }


def each_texts(tf):
    letters = tf.ragged.constant([["ab", "\u00e9"], [], ["xyz"]])
    return {
        "length of characters": lambda: tf.strings.length(letters, unit="UTF8_CHAR"),
        "substr of characters": lambda: tf.strings.substr(letters, 0, 1, unit="UTF8_CHAR"),
        "substr beyond": lambda: tf.strings.substr(letters, 9, 1),
        "substr by values": lambda: tf.strings.substr(letters, [0, 0, 1], [1, 1, 2]),
        "padded base64": lambda: tf.io.encode_base64(letters, pad=True),
        "not base64": lambda: tf.io.decode_base64(tf.ragged.constant([["!"]])),
        "precision": lambda: tf.strings.as_string(numbers(tf), precision=2),
        "width": lambda: tf.strings.as_string(whole(tf), width=4, fill="0"),
        "no buckets": lambda: tf.strings.to_hash_bucket_fast(texts(tf), 0),
        "replace once": lambda: tf.strings.regex_replace(letters, "[a-z]", "-", replace_global=False),
        "bad pattern": lambda: tf.strings.regex_replace(letters, "(", "-"),
        "full match": lambda: tf.strings.regex_full_match(letters, ".."),
        "decompressed": lambda: tf.io.decode_compressed(letters),
        "script": lambda: tf.strings.unicode_script(tf.ragged.constant([[97, 1041], [-1]])),
        "clip by tensors": lambda: tf.clip_by_value(numbers(tf), [0.3, 0.3, 0.3], [0.6, 0.6, 0.6]),
        "cast to truth": lambda: tf.cast(numbers(tf), tf.bool),
        "check_numerics": lambda: tf.debugging.check_numerics(tf.ragged.constant([[float("nan")], []]), "bad"),
        "ones as int": lambda: tf.ones_like(numbers(tf), dtype=tf.int32),
        "zeros of texts": lambda: tf.zeros_like(texts(tf)),
        "saturated": lambda: tf.saturate_cast(tf.ragged.constant([[300.0, -5.0], []]), tf.uint8),
        "gradient of a cast": lambda: _gradients(tf, lambda x: tf.cast(x, tf.float64), numbers(tf))[0],
    }
