"""Sequence-to-sequence models: attention, decoders, beam search (TensorFlow 1.15's ``tf.contrib.seq2seq``)."""
