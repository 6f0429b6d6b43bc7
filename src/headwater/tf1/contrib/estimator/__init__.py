"""``tf.contrib.estimator``: heads of estimators, and wrappers of estimators and optimizers."""
