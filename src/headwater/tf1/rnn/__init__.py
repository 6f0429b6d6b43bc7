"""Recurrent networks (TensorFlow 1.15's ``tf.nn.rnn_cell`` and ``tf.nn.dynamic_rnn``)."""
