# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.contrib.estimator.heads import binary_classification_head as binary_classification_head
from headwater.tf1.contrib.estimator.heads import logistic_regression_head as logistic_regression_head
from headwater.tf1.contrib.estimator.heads import multi_class_head as multi_class_head
from headwater.tf1.contrib.estimator.heads import multi_head as multi_head
from headwater.tf1.contrib.estimator.heads import multi_label_head as multi_label_head
from headwater.tf1.contrib.estimator.heads import poisson_regression_head as poisson_regression_head
from headwater.tf1.contrib.estimator.heads import regression_head as regression_head
from headwater.tf1.contrib.estimator.wrappers import clip_gradients_by_norm as clip_gradients_by_norm
from headwater.tf1.contrib.estimator.wrappers import forward_features as forward_features
from headwater.tf1.training.estimator.canned import dnn_logit_fn_builder as dnn_logit_fn_builder
from headwater.tf1.training.estimator.canned import linear_logit_fn_builder as linear_logit_fn_builder
from headwater.tf1.training.estimator.export import build_raw_supervised_input_receiver_fn as build_raw_supervised_input_receiver_fn
from headwater.tf1.training.estimator.headed import add_metrics as add_metrics
from headwater.tf1.training.estimator.headed import call_logit_fn as call_logit_fn

__all__ = [
    "add_metrics",
    "binary_classification_head",
    "build_raw_supervised_input_receiver_fn",
    "call_logit_fn",
    "clip_gradients_by_norm",
    "dnn_logit_fn_builder",
    "forward_features",
    "linear_logit_fn_builder",
    "logistic_regression_head",
    "multi_class_head",
    "multi_head",
    "multi_label_head",
    "poisson_regression_head",
    "regression_head",
]
