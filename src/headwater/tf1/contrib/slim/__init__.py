"""Layers as functions with settings by scope (TensorFlow 1.15's ``tf.contrib.layers`` and ``tf.contrib.slim``)."""
