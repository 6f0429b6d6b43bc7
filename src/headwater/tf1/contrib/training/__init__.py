"""Hyperparameters (TensorFlow 1.15's ``tf.contrib.training``)."""
