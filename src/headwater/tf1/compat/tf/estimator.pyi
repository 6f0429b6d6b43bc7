# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.compat.tf import estimator_experimental as experimental
from headwater.tf1.compat.tf import estimator_export as export
from headwater.tf1.compat.tf import estimator_inputs as inputs
from headwater.tf1.compat.tf import estimator_tpu as tpu
from headwater.tf1.training.basic_session_run_hooks import CheckpointSaverHook as CheckpointSaverHook
from headwater.tf1.training.basic_session_run_hooks import CheckpointSaverListener as CheckpointSaverListener
from headwater.tf1.training.basic_session_run_hooks import FeedFnHook as FeedFnHook
from headwater.tf1.training.basic_session_run_hooks import FinalOpsHook as FinalOpsHook
from headwater.tf1.training.basic_session_run_hooks import GlobalStepWaiterHook as GlobalStepWaiterHook
from headwater.tf1.training.basic_session_run_hooks import LoggingTensorHook as LoggingTensorHook
from headwater.tf1.training.basic_session_run_hooks import NanLossDuringTrainingError as NanLossDuringTrainingError
from headwater.tf1.training.basic_session_run_hooks import NanTensorHook as NanTensorHook
from headwater.tf1.training.basic_session_run_hooks import ProfilerHook as ProfilerHook
from headwater.tf1.training.basic_session_run_hooks import SecondOrStepTimer as SecondOrStepTimer
from headwater.tf1.training.basic_session_run_hooks import StepCounterHook as StepCounterHook
from headwater.tf1.training.basic_session_run_hooks import StopAtStepHook as StopAtStepHook
from headwater.tf1.training.basic_session_run_hooks import SummarySaverHook as SummarySaverHook
from headwater.tf1.training.estimator.canned import DNNClassifier as DNNClassifier
from headwater.tf1.training.estimator.canned import DNNLinearCombinedClassifier as DNNLinearCombinedClassifier
from headwater.tf1.training.estimator.canned import DNNLinearCombinedRegressor as DNNLinearCombinedRegressor
from headwater.tf1.training.estimator.canned import DNNRegressor as DNNRegressor
from headwater.tf1.training.estimator.canned import LinearClassifier as LinearClassifier
from headwater.tf1.training.estimator.canned import LinearRegressor as LinearRegressor
from headwater.tf1.training.estimator.estimator import Estimator as Estimator
from headwater.tf1.training.estimator.example_specs import classifier_parse_example_spec as classifier_parse_example_spec
from headwater.tf1.training.estimator.example_specs import regressor_parse_example_spec as regressor_parse_example_spec
from headwater.tf1.training.estimator.export import BestExporter as BestExporter
from headwater.tf1.training.estimator.export import Exporter as Exporter
from headwater.tf1.training.estimator.export import FinalExporter as FinalExporter
from headwater.tf1.training.estimator.export import LatestExporter as LatestExporter
from headwater.tf1.training.estimator.headed import BaselineClassifier as BaselineClassifier
from headwater.tf1.training.estimator.headed import BaselineEstimator as BaselineEstimator
from headwater.tf1.training.estimator.headed import BaselineRegressor as BaselineRegressor
from headwater.tf1.training.estimator.headed import DNNEstimator as DNNEstimator
from headwater.tf1.training.estimator.headed import DNNLinearCombinedEstimator as DNNLinearCombinedEstimator
from headwater.tf1.training.estimator.headed import LinearEstimator as LinearEstimator
from headwater.tf1.training.estimator.headed import add_metrics as add_metrics
from headwater.tf1.training.estimator.public_heads import BinaryClassHead as BinaryClassHead
from headwater.tf1.training.estimator.public_heads import Head as Head
from headwater.tf1.training.estimator.public_heads import LogisticRegressionHead as LogisticRegressionHead
from headwater.tf1.training.estimator.public_heads import MultiClassHead as MultiClassHead
from headwater.tf1.training.estimator.public_heads import PoissonRegressionHead as PoissonRegressionHead
from headwater.tf1.training.estimator.public_heads import RegressionHead as RegressionHead
from headwater.tf1.training.estimator.run_config import RunConfig as RunConfig
from headwater.tf1.training.estimator.several_heads import MultiHead as MultiHead
from headwater.tf1.training.estimator.several_heads import MultiLabelHead as MultiLabelHead
from headwater.tf1.training.estimator.specs import EstimatorSpec as EstimatorSpec
from headwater.tf1.training.estimator.specs import EvalSpec as EvalSpec
from headwater.tf1.training.estimator.specs import ModeKeys as ModeKeys
from headwater.tf1.training.estimator.specs import TrainSpec as TrainSpec
from headwater.tf1.training.estimator.train_and_evaluate import train_and_evaluate as train_and_evaluate
from headwater.tf1.training.estimator.warm_start_settings import WarmStartSettings as WarmStartSettings
from headwater.tf1.training.session_run_hook import SessionRunArgs as SessionRunArgs
from headwater.tf1.training.session_run_hook import SessionRunContext as SessionRunContext
from headwater.tf1.training.session_run_hook import SessionRunHook as SessionRunHook
from headwater.tf1.training.session_run_hook import SessionRunValues as SessionRunValues
from headwater.tf1.training.vocabularies import VocabInfo as VocabInfo

__all__ = [
    "BaselineClassifier",
    "BaselineEstimator",
    "BaselineRegressor",
    "BestExporter",
    "BinaryClassHead",
    "CheckpointSaverHook",
    "CheckpointSaverListener",
    "DNNClassifier",
    "DNNEstimator",
    "DNNLinearCombinedClassifier",
    "DNNLinearCombinedEstimator",
    "DNNLinearCombinedRegressor",
    "DNNRegressor",
    "Estimator",
    "EstimatorSpec",
    "EvalSpec",
    "Exporter",
    "FeedFnHook",
    "FinalExporter",
    "FinalOpsHook",
    "GlobalStepWaiterHook",
    "Head",
    "LatestExporter",
    "LinearClassifier",
    "LinearEstimator",
    "LinearRegressor",
    "LoggingTensorHook",
    "LogisticRegressionHead",
    "ModeKeys",
    "MultiClassHead",
    "MultiHead",
    "MultiLabelHead",
    "NanLossDuringTrainingError",
    "NanTensorHook",
    "PoissonRegressionHead",
    "ProfilerHook",
    "RegressionHead",
    "RunConfig",
    "SecondOrStepTimer",
    "SessionRunArgs",
    "SessionRunContext",
    "SessionRunHook",
    "SessionRunValues",
    "StepCounterHook",
    "StopAtStepHook",
    "SummarySaverHook",
    "TrainSpec",
    "VocabInfo",
    "WarmStartSettings",
    "add_metrics",
    "classifier_parse_example_spec",
    "experimental",
    "export",
    "inputs",
    "regressor_parse_example_spec",
    "tpu",
    "train_and_evaluate",
]
