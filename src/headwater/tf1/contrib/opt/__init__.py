"""``tf.contrib.opt``: further optimizers, and optimizers that wrap others.

Symbols in their descriptions are those of `headwater.tf1.training.optimizers`: θ is a variable, g its gradient, η the
learning rate. They are built of the graph's common operations, beside the variables that they update.
"""
