"""Projection onto the probability simplex (TensorFlow 1.15's ``tf.contrib.sparsemax``)."""
