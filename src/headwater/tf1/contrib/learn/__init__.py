"""Parts of TensorFlow 1.15's ``tf.contrib.learn`` that no other module contains."""
