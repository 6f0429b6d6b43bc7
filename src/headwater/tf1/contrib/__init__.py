"""Packages of ``tf.contrib``, one folder each, loaded on first use."""
