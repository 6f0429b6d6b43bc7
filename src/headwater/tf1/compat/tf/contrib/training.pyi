# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.contrib.training.evaluation import SummaryAtEndHook as SummaryAtEndHook
from headwater.tf1.contrib.training.evaluation import evaluate_once as evaluate_once
from headwater.tf1.contrib.training.evaluation import evaluate_repeatedly as evaluate_repeatedly
from headwater.tf1.contrib.training.hparams import HParams as HParams
from headwater.tf1.contrib.training.hparams import parse_values as parse_values
from headwater.tf1.contrib.training.loops import clip_gradient_norms_fn as clip_gradient_norms_fn
from headwater.tf1.contrib.training.loops import create_train_op as create_train_op
from headwater.tf1.contrib.training.loops import train as train
from headwater.tf1.contrib.training.sampling import rejection_sample as rejection_sample
from headwater.tf1.contrib.training.sampling import resample_at_rate as resample_at_rate
from headwater.tf1.contrib.training.sampling import stratified_sample as stratified_sample
from headwater.tf1.contrib.training.sampling import weighted_resample as weighted_resample
from headwater.tf1.training.buckets import bucket as bucket
from headwater.tf1.training.buckets import bucket_by_sequence_length as bucket_by_sequence_length
from headwater.tf1.training.device_setter import GreedyLoadBalancingStrategy as GreedyLoadBalancingStrategy
from headwater.tf1.training.device_setter import RandomStrategy as RandomStrategy
from headwater.tf1.training.device_setter import byte_size_load_fn as byte_size_load_fn
from headwater.tf1.training.estimator.evaluation import StopAfterNEvalsHook as StopAfterNEvalsHook
from headwater.tf1.training.estimator.evaluation import get_or_create_eval_step as get_or_create_eval_step
from headwater.tf1.training.loops import checkpoints_iterator as checkpoints_iterator
from headwater.tf1.training.loops import wait_for_new_checkpoint as wait_for_new_checkpoint
from headwater.tf1.training.train_ops import add_training_gradients_summaries as add_gradients_summaries
from headwater.tf1.training.train_ops import clip_gradient_norms as clip_gradient_norms
from headwater.tf1.training.train_ops import multiply_gradients as multiply_gradients
from headwater.tf1.training.training_util import get_or_create_global_step as get_or_create_global_step

__all__ = [
    "GreedyLoadBalancingStrategy",
    "HParams",
    "RandomStrategy",
    "StopAfterNEvalsHook",
    "SummaryAtEndHook",
    "add_gradients_summaries",
    "bucket",
    "bucket_by_sequence_length",
    "byte_size_load_fn",
    "checkpoints_iterator",
    "clip_gradient_norms",
    "clip_gradient_norms_fn",
    "create_train_op",
    "evaluate_once",
    "evaluate_repeatedly",
    "get_or_create_eval_step",
    "get_or_create_global_step",
    "multiply_gradients",
    "parse_values",
    "rejection_sample",
    "resample_at_rate",
    "stratified_sample",
    "train",
    "wait_for_new_checkpoint",
    "weighted_resample",
]
