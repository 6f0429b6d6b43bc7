# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.training.slim_training import train as train
from headwater.tf1.training.slim_training import train_step as train_step
from headwater.tf1.training.train_ops import add_gradients_summaries as add_gradients_summaries
from headwater.tf1.training.train_ops import clip_gradient_norms as clip_gradient_norms
from headwater.tf1.training.train_ops import create_train_op as create_train_op
from headwater.tf1.training.train_ops import multiply_gradients as multiply_gradients

__all__ = [
    "add_gradients_summaries",
    "clip_gradient_norms",
    "create_train_op",
    "multiply_gradients",
    "train",
    "train_step",
]
