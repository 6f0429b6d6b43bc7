"""Geometric transformations of images (TensorFlow 1.15's ``tf.contrib.image``)."""
