# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.training.estimator.canned import dnn_logit_fn_builder as dnn_logit_fn_builder
from headwater.tf1.training.estimator.canned import linear_logit_fn_builder as linear_logit_fn_builder
from headwater.tf1.training.estimator.early_stopping import make_early_stopping_hook as make_early_stopping_hook
from headwater.tf1.training.estimator.early_stopping import make_stop_at_checkpoint_step_hook as make_stop_at_checkpoint_step_hook
from headwater.tf1.training.estimator.early_stopping import stop_if_higher_hook as stop_if_higher_hook
from headwater.tf1.training.estimator.early_stopping import stop_if_lower_hook as stop_if_lower_hook
from headwater.tf1.training.estimator.early_stopping import stop_if_no_decrease_hook as stop_if_no_decrease_hook
from headwater.tf1.training.estimator.early_stopping import stop_if_no_increase_hook as stop_if_no_increase_hook
from headwater.tf1.training.estimator.export import build_raw_supervised_input_receiver_fn as build_raw_supervised_input_receiver_fn
from headwater.tf1.training.estimator.headed import call_logit_fn as call_logit_fn
from headwater.tf1.training.estimator.in_memory import InMemoryEvaluatorHook as InMemoryEvaluatorHook

__all__ = [
    "InMemoryEvaluatorHook",
    "build_raw_supervised_input_receiver_fn",
    "call_logit_fn",
    "dnn_logit_fn_builder",
    "linear_logit_fn_builder",
    "make_early_stopping_hook",
    "make_stop_at_checkpoint_step_hook",
    "stop_if_higher_hook",
    "stop_if_lower_hook",
    "stop_if_no_decrease_hook",
    "stop_if_no_increase_hook",
]
