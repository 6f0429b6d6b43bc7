"""Sequence-to-sequence models unrolled in the graph (TensorFlow 1.15's ``tf.contrib.legacy_seq2seq``)."""
