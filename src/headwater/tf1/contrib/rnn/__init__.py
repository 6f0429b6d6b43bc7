"""Further recurrent cells and networks (TensorFlow 1.15's ``tf.contrib.rnn``)."""
