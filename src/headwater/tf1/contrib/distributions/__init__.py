"""Further distributions (TensorFlow 1.15's ``tf.contrib.distributions``), beside those of `tf.distributions`."""
