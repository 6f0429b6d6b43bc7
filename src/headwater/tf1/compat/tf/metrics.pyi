# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.metrics.state import Metric
from collections.abc import Sequence
from headwater.graph.types import TensorLike
from headwater.tf1.metrics.counts import precision as precision
from headwater.tf1.metrics.counts import recall as recall
from headwater.tf1.metrics.means import accuracy as accuracy
from headwater.tf1.metrics.means import mean as mean
from headwater.tf1.metrics.means import mean_absolute_error as mean_absolute_error
from headwater.tf1.metrics.means import mean_cosine_distance as mean_cosine_distance
from headwater.tf1.metrics.means import mean_iou as mean_iou
from headwater.tf1.metrics.means import mean_per_class_accuracy as mean_per_class_accuracy
from headwater.tf1.metrics.means import mean_relative_error as mean_relative_error
from headwater.tf1.metrics.means import mean_squared_error as mean_squared_error
from headwater.tf1.metrics.means import mean_tensor as mean_tensor
from headwater.tf1.metrics.means import percentage_below as percentage_below
from headwater.tf1.metrics.means import root_mean_squared_error as root_mean_squared_error
from headwater.tf1.metrics.ranking import average_precision_at_k as average_precision_at_k
from headwater.tf1.metrics.ranking import average_precision_at_k as sparse_average_precision_at_k
from headwater.tf1.metrics.ranking import precision_at_k as precision_at_k
from headwater.tf1.metrics.ranking import precision_at_k as sparse_precision_at_k
from headwater.tf1.metrics.ranking import precision_at_top_k as precision_at_top_k
from headwater.tf1.metrics.ranking import recall_at_k as recall_at_k
from headwater.tf1.metrics.ranking import recall_at_top_k as recall_at_top_k
from headwater.tf1.metrics.thresholds import auc as auc
from headwater.tf1.metrics.thresholds import sensitivity_at_specificity as sensitivity_at_specificity
from headwater.tf1.metrics.thresholds import specificity_at_sensitivity as specificity_at_sensitivity

def false_negatives(labels: TensorLike, predictions: TensorLike, weights: TensorLike | None = ..., metrics_collections: object = ..., updates_collections: object = ..., name: str | None = ...) -> Metric:
    """Counts examples that are true and not predicted."""
def false_negatives_at_thresholds(labels: object, predictions: object, thresholds: Sequence[float], weights: object = ..., metrics_collections: object = ..., updates_collections: object = ..., name: str | None = ...) -> Metric:
    """Counts the true examples that are not predicted above each threshold."""
def false_positives(labels: TensorLike, predictions: TensorLike, weights: TensorLike | None = ..., metrics_collections: object = ..., updates_collections: object = ..., name: str | None = ...) -> Metric:
    """Counts examples that are predicted and not true."""
def false_positives_at_thresholds(labels: object, predictions: object, thresholds: Sequence[float], weights: object = ..., metrics_collections: object = ..., updates_collections: object = ..., name: str | None = ...) -> Metric:
    """Counts the false examples that are predicted above each threshold."""
def precision_at_thresholds(labels: object, predictions: object, thresholds: Sequence[float], weights: object = ..., metrics_collections: object = ..., updates_collections: object = ..., name: str | None = ...) -> Metric:
    """True positives / (true + false positives) at each threshold."""
def recall_at_thresholds(labels: object, predictions: object, thresholds: Sequence[float], weights: object = ..., metrics_collections: object = ..., updates_collections: object = ..., name: str | None = ...) -> Metric:
    """True positives / (true positives + false negatives) at each threshold."""
def true_negatives(labels: TensorLike, predictions: TensorLike, weights: TensorLike | None = ..., metrics_collections: object = ..., updates_collections: object = ..., name: str | None = ...) -> Metric:
    """Counts examples that are neither predicted nor true."""
def true_negatives_at_thresholds(labels: object, predictions: object, thresholds: Sequence[float], weights: object = ..., metrics_collections: object = ..., updates_collections: object = ..., name: str | None = ...) -> Metric:
    """Counts the examples that are neither true nor predicted above each threshold."""
def true_positives(labels: TensorLike, predictions: TensorLike, weights: TensorLike | None = ..., metrics_collections: object = ..., updates_collections: object = ..., name: str | None = ...) -> Metric:
    """Counts examples that are predicted and true."""
def true_positives_at_thresholds(labels: object, predictions: object, thresholds: Sequence[float], weights: object = ..., metrics_collections: object = ..., updates_collections: object = ..., name: str | None = ...) -> Metric:
    """Counts the true examples that are predicted above each threshold."""
__all__ = [
    "accuracy",
    "auc",
    "average_precision_at_k",
    "false_negatives",
    "false_negatives_at_thresholds",
    "false_positives",
    "false_positives_at_thresholds",
    "mean",
    "mean_absolute_error",
    "mean_cosine_distance",
    "mean_iou",
    "mean_per_class_accuracy",
    "mean_relative_error",
    "mean_squared_error",
    "mean_tensor",
    "percentage_below",
    "precision",
    "precision_at_k",
    "precision_at_thresholds",
    "precision_at_top_k",
    "recall",
    "recall_at_k",
    "recall_at_thresholds",
    "recall_at_top_k",
    "root_mean_squared_error",
    "sensitivity_at_specificity",
    "sparse_average_precision_at_k",
    "sparse_precision_at_k",
    "specificity_at_sensitivity",
    "true_negatives",
    "true_negatives_at_thresholds",
    "true_positives",
    "true_positives_at_thresholds",
]
