# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.compat.tf.contrib.learn import monitors as monitors
from headwater.tf1.contrib.learn import preprocessing as preprocessing
from headwater.tf1.contrib.learn.models import DNNClassifier as DNNClassifier
from headwater.tf1.contrib.learn.models import DNNLinearCombinedClassifier as DNNLinearCombinedClassifier
from headwater.tf1.contrib.learn.models import DNNLinearCombinedRegressor as DNNLinearCombinedRegressor
from headwater.tf1.contrib.learn.models import DNNRegressor as DNNRegressor
from headwater.tf1.contrib.learn.models import LinearClassifier as LinearClassifier
from headwater.tf1.contrib.learn.models import LinearRegressor as LinearRegressor
from headwater.tf1.contrib.learn.models import SKCompat as SKCompat
from headwater.tf1.training.estimator import learn as learn_runner
from headwater.tf1.training.estimator.learn import Experiment as Experiment
from headwater.tf1.training.estimator.learn import LearnModeKeys as ModeKeys
from headwater.tf1.training.estimator.learn import LearnRunConfig as RunConfig
from headwater.tf1.training.estimator.learn import infer_real_valued_columns_from_input as infer_real_valued_columns_from_input
from headwater.tf1.training.estimator.learn import run as run
from headwater.tf1.training.estimator.learn_estimator import InputFnOps as InputFnOps
from headwater.tf1.training.estimator.learn_estimator import LearnEstimator as Estimator
from headwater.tf1.training.estimator.learn_estimator import ModelFnOps as ModelFnOps
from headwater.tf1.training.estimator.learn_estimator import NotFittedError as NotFittedError
from headwater.tf1.training.estimator.learn_estimator import build_parsing_serving_input_fn as build_parsing_serving_input_fn
from headwater.tf1.training.estimator.metric_spec import MetricSpec as MetricSpec
from headwater.tf1.training.estimator.run_config import TaskType as TaskType

__all__ = [
    "DNNClassifier",
    "DNNLinearCombinedClassifier",
    "DNNLinearCombinedRegressor",
    "DNNRegressor",
    "Estimator",
    "Experiment",
    "InputFnOps",
    "LinearClassifier",
    "LinearRegressor",
    "MetricSpec",
    "ModeKeys",
    "ModelFnOps",
    "NotFittedError",
    "RunConfig",
    "SKCompat",
    "TaskType",
    "build_parsing_serving_input_fn",
    "infer_real_valued_columns_from_input",
    "learn_runner",
    "monitors",
    "preprocessing",
    "run",
]
