# Written by tools/stubs.py from headwater.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.training.estimator import learn as learn_runner
from headwater.training.estimator.learn import DNNClassifier as DNNClassifier
from headwater.training.estimator.learn import DNNLinearCombinedClassifier as DNNLinearCombinedClassifier
from headwater.training.estimator.learn import Experiment as Experiment
from headwater.training.estimator.learn import LearnRunConfig as RunConfig
from headwater.training.estimator.learn import LinearClassifier as LinearClassifier
from headwater.training.estimator.learn import infer_real_valued_columns_from_input as infer_real_valued_columns_from_input
from headwater.training.estimator.learn import run as run
from headwater.training.estimator.run_config import TaskType as TaskType
from headwater.training.estimator.specs import ModeKeys as ModeKeys

__all__ = [
    "DNNClassifier",
    "DNNLinearCombinedClassifier",
    "Experiment",
    "LinearClassifier",
    "ModeKeys",
    "RunConfig",
    "TaskType",
    "infer_real_valued_columns_from_input",
    "learn_runner",
    "run",
]
