"""Functions around exported models and estimators (TensorFlow 1.15's ``tf.contrib.predictor``)."""
