"""Further functions of neural networks (TensorFlow 1.15's ``tf.contrib.nn``)."""
