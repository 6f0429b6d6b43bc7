"""``tf.metrics``: metrics over many steps."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.metrics.means": """
        accuracy mean mean_absolute_error mean_cosine_distance mean_iou mean_per_class_accuracy mean_relative_error
        mean_squared_error mean_tensor percentage_below root_mean_squared_error""",
    "headwater.metrics.counts": """
        false_negatives false_positives precision recall true_negatives true_positives""",
    "headwater.metrics.thresholds": """
        auc false_negatives_at_thresholds false_positives_at_thresholds precision_at_thresholds recall_at_thresholds
        sensitivity_at_specificity specificity_at_sensitivity true_negatives_at_thresholds
        true_positives_at_thresholds""",
    "headwater.metrics.ranking": """
        precision_at_k precision_at_top_k recall_at_k recall_at_top_k sparse_precision_at_k=precision_at_k""",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
