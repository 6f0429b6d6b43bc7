"""Functions that add operations to the default graph, with TensorFlow 1.15's names and arguments."""
