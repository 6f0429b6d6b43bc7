"""Layers with variables of their own (TensorFlow 1.15's ``tf.layers``): classes, and a function for each."""
