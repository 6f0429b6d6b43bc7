"""Constants: the types and shapes that Python values get."""

import numpy as np

VALUES = """
1 | 1.5 | True | 'a' | b'a' | 1j | [1, 2] | [1, 2.5] | [True, False] | ['a', b'b'] | [] | [[]] | [[], []]
[[1], [2]] | 2 ** 31 - 1 | 2 ** 31 | -2 ** 31 | -2 ** 31 - 1 | [1, 2 ** 40] | 2 ** 63 | 2 ** 64 | 1e300 | [1, True]
[1, 'a'] | [1, None] | None | {} | object() | [[1, 2], [3]] | (1, 2) | np.float64(1) | np.float32(1) | np.int64(1)
np.int8(1) | np.array([1, 2]) | np.array([1.5]) | np.array(['a', 'b']) | np.array([b'a']) | np.array([True])
np.zeros((0, 3)) | [np.float64(1), np.float64(2)] | [np.int64(1), 2] | [1, np.int64(2)] | [np.float32(1), 2.0]
np.array(1.5, np.float16) | [[np.array(1.0)]] | tf.TensorShape([1, None]) | np.array(['a', None], object)
np.array([1, 2], object) | np.uint64(3) | float('nan') | float('inf') | '\u00e9' | np.array([[1, 2], [3, 4]]).T
np.array('abc')
"""
CALLS = """
constant(1, tf.float32) | constant(1.5, tf.int32) | constant(1, tf.float64) | constant(1.0, tf.int32)
constant(1, tf.bool) | constant(True, tf.int32) | constant(True, tf.float32) | constant(1, tf.string)
constant('a', tf.int32) | constant('a', 'string') | constant(300, tf.uint8) | constant(-1, tf.uint8)
constant(1, tf.complex64) | constant(1j, tf.float32) | constant(2, tf.int64) | constant(2 ** 31, tf.int32)
constant(np.array([1.5]), tf.int32) | constant(np.array([1]), tf.float32) | constant(1, 'nope')
constant(np.array([1.5], np.float32), tf.float64) | constant([1, 2], tf.float16) | constant(1.1, tf.bfloat16)
constant(1, shape=[2, 2]) | constant([1, 2], shape=[3]) | constant([1, 2, 3], shape=[2])
constant([1, 2], shape=[2, 1]) | constant([], shape=[0]) | constant([], shape=[2]) | constant(1, shape=[])
constant([1], shape=[]) | constant([1, 2], shape=[2], verify_shape=True)
constant([1, 2], shape=[3], verify_shape=True) | constant(1, shape=[2], verify_shape=True)
constant(1, name='foo').op.outputs[0] | constant(None) | constant([None]) | constant([[1, 2], [3, 4]], shape=[4])
constant('a', shape=[2]) | constant(1, shape=[None]) | constant(float('inf'), tf.float32)
constant([[1, 2]], tf.int64) | constant(b'\\xff') | constant(u'\\u00e9')
"""

CONVERTED = """
[np.float64(1), 2.0] | [np.int64(1), 2] | (np.float32(1), 2) | np.float64(3) | np.float32(2) | True | [True, 1]
2 ** 40 | tf.TensorShape([1, 2]) | tf.Dimension(3) | [tf.constant(1), np.int64(2)] | [tf.constant(1.), 2]
[tf.constant(1), 2.5] | [[tf.constant(1), 2], [3, 4]] | [tf.constant([1]), [2]] | (tf.constant(1), tf.constant(2.))
[tf.constant(1, tf.int64), 2] | [tf.constant('a'), 'b'] | [None, tf.constant(1)] | [tf.Dimension(2), tf.constant(3)]
[tf.constant(3), tf.Dimension(2)] | [tf.constant(3), tf.Dimension(None)] | tf.constant(1) | None | {} | 'a' | []
np.zeros([2, 0])
"""
HINTS = ["", ", preferred_dtype=tf.float32", ", preferred_dtype=tf.int64", ", dtype=tf.float64"]


def cases(tf):
    found = {}
    for line in CONVERTED.strip().splitlines():
        for text in line.split(" | "):
            for hint in HINTS:
                call = f"tf.convert_to_tensor({text.strip()}{hint})"
                found[call] = lambda tf, call=call: _described(tf, call)
    for line in VALUES.strip().splitlines():
        for text in line.split(" | "):
            found[text] = lambda tf, text=text: _described(tf, f"constant({text})")
    for line in CALLS.strip().splitlines():
        for text in line.split(" | "):
            found[text] = lambda tf, text=text: _described(tf, text)
    return found


def _described(tf, text):
    tensor = eval(text, {"tf": tf, "np": np, "constant": tf.constant})
    return [tensor.name, tensor.dtype.name, tensor.shape.as_list()]
