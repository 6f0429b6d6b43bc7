"""``tf.contrib.distributions`` of TensorFlow 1.15: distributions that ``tf.distributions`` lacks."""
