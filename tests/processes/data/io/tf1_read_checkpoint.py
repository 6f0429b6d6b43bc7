"""Runs under TensorFlow 1.15: restores a checkpoint and prints its tensors as JSON. Arguments: prefix, name=parts ...

Each tensor is read by the checkpoint reader, and restored into variables; the tensors named in the arguments are
restored into this number of parts.
"""

import json
import sys

import numpy as np
import tensorflow as tf

prefix = sys.argv[1]
parts = {name: int(count) for name, count in (argument.split("=") for argument in sys.argv[2:])}
reader = tf.train.NewCheckpointReader(prefix)
dtypes = reader.get_variable_to_dtype_map()


def plain(value):
    value = np.asarray(value)
    if value.dtype == object:
        return [item.decode() for item in value.ravel()]
    return np.asarray(value, np.complex128).ravel().view(np.float64).tolist()


variables = {}
for name, shape in reader.get_variable_to_shape_map().items():
    partitioner = tf.fixed_size_partitioner(parts[name]) if name in parts else None
    with tf.variable_scope(tf.get_variable_scope(), partitioner=partitioner):
        zeros = lambda shape, dtype, partition_info: tf.zeros(shape, dtype)  # noqa: E731
        variables[name] = tf.get_variable(name, shape, dtypes[name], initializer=zeros)
values = {name: tf.convert_to_tensor(variable) for name, variable in variables.items()}
with tf.Session() as session:
    tf.train.Saver().restore(session, prefix)
    restored = session.run(values)
print(
    json.dumps(
        {
            name: {
                "dtype": dtypes[name].name,
                "shape": list(restored[name].shape),
                "read": plain(reader.get_tensor(name)),
                "restored": plain(restored[name]),
            }
            for name in values
        }
    )
)
