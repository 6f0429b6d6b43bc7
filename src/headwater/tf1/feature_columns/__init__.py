"""Feature columns (TensorFlow 1.15's ``tf.feature_column``): how features of examples become a model's inputs."""
