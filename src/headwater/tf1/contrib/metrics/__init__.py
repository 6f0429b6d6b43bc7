"""Metrics of ``tf.contrib.metrics`` that ``tf.metrics`` does not have."""
