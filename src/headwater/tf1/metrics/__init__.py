"""Metrics over many steps (TensorFlow 1.15's ``tf.metrics``).

Each function returns a pair: the current value, and an operation that adds a batch and returns the updated value. Their
state is in local variables. All take these arguments:

  weights: the weights of the elements, a scalar or broadcast to them; None for 1.
  metrics_collections: collections to which the value is added.
  updates_collections: collections to which the update is added.
  name: variable scope of the metric.
"""
