"""Element types: their properties, and what names one."""

import numpy as np

NAMES = """
float16 float32 float64 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool complex64 complex128 string
qint8 quint8 qint16 quint16 qint32 resource variant
"""
PROPERTIES = """
name as_datatype_enum is_floating is_complex is_integer is_unsigned is_bool is_quantized is_numpy_compatible size
min max real_dtype base_dtype _is_ref_dtype
"""
EXPRESSIONS = """
as_dtype(1) | as_dtype('float') | as_dtype('float32_ref') | as_dtype('double') | as_dtype('half') | as_dtype('nope')
as_dtype(101) | as_dtype(0) | as_dtype(99) | as_dtype(None) | as_dtype(np.float32) | as_dtype(np.dtype('float64'))
as_dtype(float) | as_dtype(bool) | as_dtype(object) | as_dtype(np.int32) | as_dtype(np.str_) | as_dtype(np.bytes_)
as_dtype(np.dtype('S3')) | as_dtype(np.dtype('U3')) | as_dtype(np.dtype('>f4')) | as_dtype(np.bool_)
as_dtype(np.uint64) | as_dtype('i4') | as_dtype('int') | as_dtype(tf.float32) | as_dtype([1]) | as_dtype(1.5)
as_dtype(np.datetime64) | as_dtype(type(None)) | as_dtype(dict) | as_dtype('uint32') | as_dtype('bfloat16')
tf.float32 == 1 | tf.float32 == 'float32' | tf.float32 == np.float32 | tf.float32 != np.float64
tf.float32 == 'nope' | tf.float32 == None | tf.float32 != None | tf.float32 in [tf.float64, tf.float32]
tf.float32 < tf.float64 | tf.float32.is_compatible_with('float32_ref')
as_dtype('float32_ref').is_compatible_with('float32') | tf.float32.is_compatible_with(tf.float64)
as_dtype('float32_ref').is_compatible_with('float32_ref') | tf.float32 is as_dtype(np.float32)
{tf.float32: 1}[as_dtype(1)] | as_dtype('float32_ref').base_dtype | as_dtype('float32_ref') == tf.float32
as_dtype('float32_ref').is_floating | as_dtype('float32_ref')._is_ref_dtype | tf.uint8.limits | tf.int8.limits
tf.float32.limits | str(tf.float32) | repr(tf.float32) | repr(as_dtype('bool_ref'))
"""


def cases(tf):
    found = {}
    for name in NAMES.split():
        for attribute in PROPERTIES.split():
            found[f"{name}.{attribute}"] = lambda tf, n=name, a=attribute: _property(tf, n, a)
    texts = [text.strip() for line in EXPRESSIONS.strip().splitlines() for text in line.split("|")]
    found.update({text: lambda tf, text=text: _value(tf, text) for text in texts})
    return found


def _property(tf, name, attribute):
    value = getattr(tf.as_dtype(name), attribute)
    if attribute in ("min", "max"):
        return int(value) if tf.as_dtype(name).is_integer else f"{float(value):.4g}"
    return bool(value) if attribute.startswith("is_") else value if isinstance(value, (int, str)) else str(value)


def _value(tf, text):
    value = eval(text, {"tf": tf, "as_dtype": tf.as_dtype, "np": np})
    return value if isinstance(value, (bool, int, str, tuple)) else str(value)
