"""Estimators (TensorFlow 1.15's ``tf.estimator``): a model as a function, trained and evaluated by one object."""
