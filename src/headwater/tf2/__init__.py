"""TensorFlow 2's way of computing: values at once, gradients by a tape, functions that are compiled.

Tensors are JAX arrays, variables are Keras's. See ``docs/decisions/custom-loops.md``.
"""
