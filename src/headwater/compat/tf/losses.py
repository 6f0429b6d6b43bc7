"""``tf.losses``: losses of models, weighted and collected."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.functional.weighted_losses": """
        Reduction absolute_difference add_loss compute_weighted_loss cosine_distance get_losses
        get_regularization_loss get_regularization_losses get_total_loss hinge_loss huber_loss log_loss
        mean_pairwise_squared_error mean_squared_error sigmoid_cross_entropy softmax_cross_entropy
        sparse_softmax_cross_entropy""",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
