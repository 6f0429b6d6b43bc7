# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.compat.tf.contrib.learn import monitors as monitors
from headwater.tf1.contrib.learn import preprocessing as preprocessing
from headwater.tf1.training.estimator import learn as learn_runner
from headwater.tf1.training.estimator.learn import DNNClassifier as DNNClassifier
from headwater.tf1.training.estimator.learn import DNNLinearCombinedClassifier as DNNLinearCombinedClassifier
from headwater.tf1.training.estimator.learn import Experiment as Experiment
from headwater.tf1.training.estimator.learn import LearnModeKeys as ModeKeys
from headwater.tf1.training.estimator.learn import LearnRunConfig as RunConfig
from headwater.tf1.training.estimator.learn import LinearClassifier as LinearClassifier
from headwater.tf1.training.estimator.learn import infer_real_valued_columns_from_input as infer_real_valued_columns_from_input
from headwater.tf1.training.estimator.learn import run as run
from headwater.tf1.training.estimator.learn_estimator import LearnEstimator as Estimator
from headwater.tf1.training.estimator.learn_estimator import ModelFnOps as ModelFnOps
from headwater.tf1.training.estimator.metric_spec import MetricSpec as MetricSpec
from headwater.tf1.training.estimator.run_config import TaskType as TaskType

__all__ = [
    "DNNClassifier",
    "DNNLinearCombinedClassifier",
    "Estimator",
    "Experiment",
    "LinearClassifier",
    "MetricSpec",
    "ModeKeys",
    "ModelFnOps",
    "RunConfig",
    "TaskType",
    "infer_real_valued_columns_from_input",
    "learn_runner",
    "monitors",
    "preprocessing",
    "run",
]
