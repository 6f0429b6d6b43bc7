"""``tf.contrib.learn``: estimators and experiments before ``tf.estimator``."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.training.estimator.learn": """
        DNNClassifier DNNLinearCombinedClassifier Experiment LinearClassifier run""",
    "headwater.training.estimator.run_config": "RunConfig TaskType",
    "headwater.training.estimator.specs": "ModeKeys",
}

_MODULES = {"learn_runner": "headwater.training.estimator.learn"}

__getattr__, __dir__ = namespace(__name__, _NAMES, _MODULES)
