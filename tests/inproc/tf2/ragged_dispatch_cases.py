"""Operations of TensorFlow 2 that take ragged tensors, run by TensorFlow and by Headwater.

The names are those that ``ragged_dispatch.ragged_op_list()`` of TensorFlow 2.21 lists, except functions that do not
exist here (``math.special``, stateless random functions) and ``print``. With an interpreter that has TensorFlow 2,
``python ragged_dispatch_cases.py > ../../data/tf2/ragged_dispatch.json`` records its answers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

OF_NUMBERS = """
    acos acosh asin asinh atan atanh ceil conj cos cosh digamma erf erfc erfcinv erfinv exp expm1 floor imag is_finite
    is_inf is_nan lgamma log log1p log_sigmoid ndtri negative real reciprocal reciprocal_no_nan rint round rsqrt sigmoid
    sign sin sinh softplus sqrt square tan tanh abs angle bessel_i0 bessel_i0e bessel_i1 bessel_i1e"""
OF_TWO_NUMBERS = """
    add atan2 divide divide_no_nan equal floordiv floormod greater greater_equal less less_equal maximum minimum
    multiply multiply_no_nan not_equal pow squared_difference subtract truediv xdivy xlog1py xlogy"""
REDUCTIONS = "reduce_max reduce_mean reduce_min reduce_prod reduce_std reduce_sum reduce_variance"
SEGMENTS = "max mean min prod sqrt_n sum"
ACTIVATIONS = "elu gelu leaky_relu relu relu6 selu silu softsign"


def numbers(tf: Any) -> Any:
    return tf.ragged.constant([[0.25, 0.5], [], [0.75]])


def others(tf: Any) -> Any:
    return tf.ragged.constant([[0.5, 0.125], [], [2.0]])


def whole(tf: Any) -> Any:
    return tf.ragged.constant([[6, 2], [], [3]])


def truth(tf: Any) -> Any:
    return tf.ragged.constant([[True, False], [], [True]])


def texts(tf: Any) -> Any:
    return tf.ragged.constant([["a", "bC"], [], [" 7"]])


def deep(tf: Any) -> Any:
    return tf.ragged.constant([[[1, 2], []], [], [[3], [4, 5, 6]]])


def images(tf: Any) -> Any:
    parts = [np.arange(12, dtype=np.float32).reshape(2, 2, 3) / 12, np.arange(9, dtype=np.float32).reshape(1, 3, 3) / 9]
    rows = [tf.RaggedTensor.from_tensor(part) for part in parts]
    return tf.stack(rows)


def _cases(tf: Any) -> dict[str, Callable[[], Any]]:
    found: dict[str, Callable[[], Any]] = {}

    def named(path: str) -> Any:
        value = tf
        for part in path.split("."):
            value = getattr(value, part)
        return value

    for name in OF_NUMBERS.split():
        over = "acosh" in name
        found[f"math.{name}"] = lambda name=name, over=over: named(f"math.{name}")(numbers(tf) + (1.0 if over else 0.0))
    for name in OF_TWO_NUMBERS.split():
        found[f"math.{name}"] = lambda name=name: [
            named(f"math.{name}")(numbers(tf), others(tf)),
            named(f"math.{name}")(numbers(tf), 0.5),
        ]
    for name in ("logical_and", "logical_or", "logical_xor"):
        found[f"math.{name}"] = lambda name=name: named(f"math.{name}")(truth(tf), tf.math.logical_not(truth(tf)))
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"):
        found[f"bitwise.{name}"] = lambda name=name: named(f"bitwise.{name}")(whole(tf), whole(tf))
    for name in REDUCTIONS.split():
        found[f"math.{name}"] = lambda name=name: [
            named(f"math.{name}")(numbers(tf), axis=0),
            named(f"math.{name}")(tf.cast(deep(tf), tf.float32)),
            named(f"math.{name}")(tf.cast(deep(tf)[2:], tf.float32), axis=2, keepdims=True),
        ]
    for name in ("reduce_all", "reduce_any"):
        found[f"math.{name}"] = lambda name=name: [named(f"math.{name}")(truth(tf), axis) for axis in (None, 0, 1)]
    for name in SEGMENTS.split():
        found[f"math.unsorted_segment_{name}"] = lambda name=name: named(f"math.unsorted_segment_{name}")(
            numbers(tf), tf.ragged.constant([[1, 0], [], [1]]), 2
        )
    for name in ACTIVATIONS.split():
        found[f"nn.{name}"] = lambda name=name: named(f"nn.{name}")(numbers(tf) - 0.5)
    for name in ("equal", "greater", "greater_equal", "less", "less_equal", "near", "none_equal"):
        found[f"debugging.assert_{name}"] = lambda name=name: named(f"debugging.assert_{name}")(
            numbers(tf), numbers(tf) + {"equal": 0, "near": 0, "greater": -1.0, "greater_equal": -1.0}.get(name, 1.0)
        )
    found.update(_others(tf))
    return found


def _others(tf: Any) -> dict[str, Callable[[], Any]]:
    return {
        "__operators__.eq": lambda: whole(tf) == 2,
        "__operators__.ne": lambda: whole(tf) != whole(tf),
        "bitcast": lambda: tf.bitcast(whole(tf), tf.uint32),
        "bitwise.invert": lambda: tf.bitwise.invert(whole(tf)),
        "cast": lambda: tf.cast(whole(tf), tf.float32),
        "clip_by_value": lambda: tf.clip_by_value(whole(tf), 3, 5),
        "concat": lambda: [tf.concat([whole(tf), whole(tf)], axis) for axis in (0, 1)],
        "debugging.check_numerics": lambda: tf.debugging.check_numerics(numbers(tf), "message"),
        "complex": lambda: tf.math.real(tf.complex(numbers(tf), others(tf))),
        "saturate_cast": lambda: tf.saturate_cast(whole(tf) * 100, tf.uint8),
        "dynamic_partition": lambda: tf.dynamic_partition(whole(tf), tf.ragged.constant([[0, 1], [], [1]]), 2),
        "expand_dims": lambda: [tf.expand_dims(whole(tf), axis) for axis in (0, 1, 2)],
        "gather": lambda: [tf.gather(whole(tf), [2, 0]), tf.gather([5, 6, 7, 8, 9, 10, 11], whole(tf))],
        "gather in rows": lambda: tf.gather(whole(tf), tf.ragged.constant([[1], [], [0]]), axis=1, batch_dims=1),
        "gather_nd": lambda: tf.gather_nd(deep(tf), [[0, 0], [2, 1]]),
        "image.adjust_brightness": lambda: tf.image.adjust_brightness(images(tf), 0.25),
        "image.adjust_gamma": lambda: tf.image.adjust_gamma(images(tf), 2.0),
        "image.convert_image_dtype": lambda: tf.image.convert_image_dtype(images(tf), tf.uint8),
        "image.random_brightness": lambda: tf.image.random_brightness(images(tf), 0.1).shape.as_list(),
        "image.resize": lambda: tf.image.resize(images(tf), [1, 1]),
        "io.decode_base64": lambda: tf.io.decode_base64(tf.io.encode_base64(texts(tf))),
        "io.encode_base64": lambda: tf.io.encode_base64(texts(tf)),
        "io.decode_compressed": lambda: tf.io.decode_compressed(texts(tf)),
        "linalg.matmul": lambda: tf.matmul(
            tf.ragged.constant([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]], ragged_rank=1), tf.eye(2, batch_shape=[2])
        ),
        "math.add_n": lambda: tf.add_n([whole(tf), whole(tf)]),
        "math.bincount": lambda: tf.math.bincount(whole(tf), minlength=4),
        "math.bincount of rows": lambda: tf.math.bincount(whole(tf), axis=-1),
        "math.cumsum": lambda: [tf.cumsum(whole(tf), axis) for axis in (0, 1)],
        "math.logical_not": lambda: tf.math.logical_not(truth(tf)),
        "math.scalar_mul": lambda: tf.math.scalar_mul(2, whole(tf)),
        "math.zeta": lambda: tf.math.zeta(numbers(tf) + 2.0, others(tf)),
        "nn.dropout": lambda: tf.nn.dropout(numbers(tf), 0.0),
        "nn.sigmoid_cross_entropy_with_logits": lambda: tf.nn.sigmoid_cross_entropy_with_logits(
            numbers(tf), others(tf)
        ),
        "nn.softmax": lambda: tf.nn.softmax(numbers(tf), axis=1),
        "one_hot": lambda: tf.one_hot(whole(tf), 4),
        "ones_like": lambda: tf.ones_like(whole(tf)),
        "rank": lambda: [tf.rank(whole(tf)), tf.rank(deep(tf))],
        "realdiv": lambda: tf.realdiv(numbers(tf), others(tf)),
        "reshape": lambda: tf.reshape(deep(tf), [-1]),
        "reverse": lambda: tf.reverse(whole(tf), [0, 1]),
        "size": lambda: tf.size(deep(tf)),
        "sparse.bincount": lambda: tf.sparse.bincount(whole(tf)),
        "split": lambda: tf.split(whole(tf), 3),
        "split sizes": lambda: tf.split(whole(tf), [1, 2]),
        "squeeze": lambda: tf.squeeze(tf.ragged.constant([[[1, 2], [3]]]), [0]),
        "stack": lambda: [tf.stack([whole(tf), whole(tf)], axis) for axis in (0, 1, 2)],
        "strings.as_string": lambda: tf.strings.as_string(numbers(tf), precision=2),
        "strings.format": lambda: tf.strings.format("{} and {}", (whole(tf), 5)),
        "strings.join": lambda: tf.strings.join([texts(tf), texts(tf)], "-"),
        "strings.length": lambda: tf.strings.length(texts(tf)),
        "strings.lower": lambda: tf.strings.lower(texts(tf)),
        "strings.upper": lambda: tf.strings.upper(texts(tf)),
        "strings.reduce_join": lambda: tf.strings.reduce_join(texts(tf), axis=1, separator="+"),
        "strings.regex_full_match": lambda: tf.strings.regex_full_match(texts(tf), "[a-c]"),
        "strings.regex_replace": lambda: tf.strings.regex_replace(texts(tf), "[a-c]", "x"),
        "strings.strip": lambda: tf.strings.strip(texts(tf)),
        "strings.substr": lambda: tf.strings.substr(texts(tf), 0, 1),
        "strings.to_hash_bucket": lambda: tf.strings.to_hash_bucket(texts(tf), 9),
        "strings.to_hash_bucket_fast": lambda: tf.strings.to_hash_bucket_fast(texts(tf), 9),
        "strings.to_hash_bucket_strong": lambda: tf.strings.to_hash_bucket_strong(texts(tf), 9, [1, 2]),
        "strings.to_number": lambda: tf.strings.to_number(tf.ragged.constant([["1", "2.5"], ["3"]])),
        "strings.unicode_script": lambda: tf.strings.unicode_script(whole(tf) + 90),
        "strings.unicode_transcode": lambda: tf.strings.unicode_transcode(texts(tf), "UTF-8", "UTF-16-BE"),
        "tile": lambda: tf.tile(whole(tf), [2, 1]),
        "truncatediv": lambda: tf.truncatediv(whole(tf), whole(tf) - 1),
        "truncatemod": lambda: tf.truncatemod(whole(tf), whole(tf) - 1),
        "where": lambda: [tf.where(truth(tf)), tf.where(truth(tf), whole(tf), whole(tf) * 2)],
        "zeros_like": lambda: tf.zeros_like(whole(tf)),
    }


def answers(tf: Any) -> dict[str, Any]:
    """Returns the outcome of each operation: its value, or the class of its error."""
    found: dict[str, Any] = {}
    for name, case in _cases(tf).items():
        try:
            found[name] = json.loads(json.dumps(_plain(tf, case())))
        except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
            found[name] = f"raises {type(error).__name__}"
            if __name__ == "__main__":
                sys.stderr.write(f"{name}: {type(error).__name__} {str(error)[:300]!r}\n")
    return found


def _plain(tf: Any, value: Any) -> Any:
    if isinstance(value, (list, tuple)) and not hasattr(value, "dense_shape"):
        return [_plain(tf, item) for item in value]
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, tf.RaggedTensor):
        return ["ragged", _rounded(value.to_list())]
    if isinstance(value, tf.SparseTensor):
        return ["sparse", *(np.asarray(part).tolist() for part in (value.indices, value.values, value.dense_shape))]
    return _rounded(np.asarray(value).tolist())


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return round(value, 4) if isinstance(value, float) else value


if __name__ == "__main__":
    import tensorflow

    json.dump(answers(tensorflow), sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")
