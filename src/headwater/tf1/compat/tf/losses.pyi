# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.functional.weighted_losses import Reduction as Reduction
from headwater.tf1.functional.weighted_losses import absolute_difference as absolute_difference
from headwater.tf1.functional.weighted_losses import add_loss as add_loss
from headwater.tf1.functional.weighted_losses import compute_weighted_loss as compute_weighted_loss
from headwater.tf1.functional.weighted_losses import cosine_distance as cosine_distance
from headwater.tf1.functional.weighted_losses import get_losses as get_losses
from headwater.tf1.functional.weighted_losses import get_regularization_loss as get_regularization_loss
from headwater.tf1.functional.weighted_losses import get_regularization_losses as get_regularization_losses
from headwater.tf1.functional.weighted_losses import get_total_loss as get_total_loss
from headwater.tf1.functional.weighted_losses import hinge_loss as hinge_loss
from headwater.tf1.functional.weighted_losses import huber_loss as huber_loss
from headwater.tf1.functional.weighted_losses import log_loss as log_loss
from headwater.tf1.functional.weighted_losses import mean_pairwise_squared_error as mean_pairwise_squared_error
from headwater.tf1.functional.weighted_losses import mean_squared_error as mean_squared_error
from headwater.tf1.functional.weighted_losses import sigmoid_cross_entropy as sigmoid_cross_entropy
from headwater.tf1.functional.weighted_losses import softmax_cross_entropy as softmax_cross_entropy
from headwater.tf1.functional.weighted_losses import sparse_softmax_cross_entropy as sparse_softmax_cross_entropy

__all__ = [
    "Reduction",
    "absolute_difference",
    "add_loss",
    "compute_weighted_loss",
    "cosine_distance",
    "get_losses",
    "get_regularization_loss",
    "get_regularization_losses",
    "get_total_loss",
    "hinge_loss",
    "huber_loss",
    "log_loss",
    "mean_pairwise_squared_error",
    "mean_squared_error",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]
