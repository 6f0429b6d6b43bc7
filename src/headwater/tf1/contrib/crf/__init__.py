"""Conditional random fields over sequences of tags (TensorFlow 1.15's ``tf.contrib.crf``)."""
