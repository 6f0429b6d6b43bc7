"""``tf.contrib.opt``: further optimizers, and optimizers that wrap others.

Symbols in their descriptions are those of `headwater.tf1.training.optimizers`: θ is a variable, g its gradient, η the
learning rate. They consist of common operations of the graph, placed beside the variables that they update.
``use_locking`` is accepted; updates are always atomic.
"""
