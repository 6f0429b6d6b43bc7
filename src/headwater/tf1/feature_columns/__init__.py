"""Feature columns (TensorFlow 1.15's ``tf.feature_column``): transform features of examples to a model's inputs."""
