"""TensorFlow 2's eager execution: eager values, gradients by a tape, ``tf.function``, custom training loops.

Tensors are JAX arrays and variables are Keras's (``docs/decisions/custom-loops.md``); functions that only build graphs
belong to `headwater.tf1`. Start with `namespace`, the names of ``tf`` in this dialect, and `at_once`, which runs a
graph function eagerly.
"""
