"""Metrics over many steps (TensorFlow 1.15's ``tf.metrics``).

Each function gives a pair: the value so far, and an operation that takes one more batch in and gives the value then.
What they count lies in local variables. All take these arguments:

  weights: of the elements, a scalar or broadcasting to them; None for 1.
  metrics_collections: where the value is added.
  updates_collections: where the update is added.
  name: variable scope of the metric.
"""
