# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.training.estimator.export import ClassificationOutput as ClassificationOutput
from headwater.tf1.training.estimator.export import ExportOutput as ExportOutput
from headwater.tf1.training.estimator.export import PredictOutput as PredictOutput
from headwater.tf1.training.estimator.export import RegressionOutput as RegressionOutput
from headwater.tf1.training.estimator.export import ServingInputReceiver as ServingInputReceiver
from headwater.tf1.training.estimator.export import TensorServingInputReceiver as TensorServingInputReceiver
from headwater.tf1.training.estimator.export import build_parsing_serving_input_receiver_fn as build_parsing_serving_input_receiver_fn
from headwater.tf1.training.estimator.export import build_raw_serving_input_receiver_fn as build_raw_serving_input_receiver_fn

__all__ = [
    "ClassificationOutput",
    "ExportOutput",
    "PredictOutput",
    "RegressionOutput",
    "ServingInputReceiver",
    "TensorServingInputReceiver",
    "build_parsing_serving_input_receiver_fn",
    "build_raw_serving_input_receiver_fn",
]
