"""Heads: turn a model's logits into predictions, a loss and metrics, for two classes, several, and numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from headwater import dtypes
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.tf1.functional import arrays, indexing, losses, math, nn, reductions, strings, tables
from headwater.tf1.functional.weighted_losses import Reduction, compute_weighted_loss
from headwater.tf1.metrics import counts, means, thresholds
from headwater.tf1.training import saved_model
from headwater.tf1.training.estimator.export import ClassificationOutput, ExportOutput, PredictOutput, RegressionOutput
from headwater.tf1.training.estimator.specs import EstimatorSpec, ModeKeys

if TYPE_CHECKING:
    from headwater.graph.types import OpOrTensor, SparseLike, Structure, TensorLike


@dataclass(frozen=True, kw_only=True)
class Head:
    """Settings of all heads.

    Attributes:
      weight_column: key of the examples' weights, or a numeric column; None for 1.
      loss_reduction: see `Reduction`.
    """

    weight_column: Any = None
    loss_reduction: str = Reduction.SUM

    #: The summation of the area under the curve of precision by recall, as in TensorFlow 1.15's canned estimators.
    _summation: ClassVar[str] = "trapezoidal"

    @property
    def logits_dimension(self) -> int:
        """Number of logits of an example."""
        raise NotImplementedError

    def create_estimator_spec(
        self,
        features: Mapping[str, Tensor],
        mode: str,
        logits: Tensor,
        labels: Structure,
        train_op_fn: Callable[[Tensor], OpOrTensor] | None,
    ) -> EstimatorSpec:
        """The model with these logits."""
        predictions = self._predictions(logits)
        if mode == ModeKeys.PREDICT:
            return EstimatorSpec(mode, predictions=predictions, export_outputs=self._exports(predictions))
        if labels is None:
            raise ValueError("You must provide a labels Tensor. Given: None.")
        labels = self._labels(labels)
        each = self._loss(labels, logits)
        weights = self._weights(features)
        loss = compute_weighted_loss(each, 1.0 if weights is None else weights, reduction=self.loss_reduction)
        if mode == ModeKeys.EVAL:
            metrics = {"average_loss": means.mean(each, weights), **self._metrics(labels, predictions, weights)}
            return EstimatorSpec(mode, predictions=predictions, loss=loss, eval_metric_ops=metrics)
        assert train_op_fn is not None
        return EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=train_op_fn(loss))

    def loss_of(self, features: Mapping[str, Tensor], labels: Structure, logits: Tensor) -> Tensor:
        """Returns the loss of these logits."""
        weights = self._weights(features)
        each = self._loss(self._labels(labels), logits)
        return compute_weighted_loss(each, 1.0 if weights is None else weights, reduction=self.loss_reduction)

    def _weights(self, features: Mapping[str, Tensor]) -> Tensor | None:
        if self.weight_column is None:
            return None
        key = self.weight_column if isinstance(self.weight_column, str) else self.weight_column.key
        return _column(math.to_float(features[key]))

    def _labels(self, labels: TensorLike) -> Tensor:
        raise NotImplementedError

    def _loss(self, labels: Tensor, logits: Tensor) -> Tensor:
        raise NotImplementedError

    def _predictions(self, logits: Tensor) -> dict[str, Tensor]:
        raise NotImplementedError

    def _metrics(self, labels: Tensor, predictions: Mapping[str, Tensor], weights: object) -> dict[str, Any]:
        raise NotImplementedError

    def _exports(self, predictions: Mapping[str, Tensor]) -> dict[str, ExportOutput]:
        raise NotImplementedError


def _column(value: TensorLike) -> Tensor:
    """A vector as a matrix of one column."""
    tensor = convert_to_tensor(value)
    return arrays.expand_dims(tensor, -1) if tensor.dims is not None and len(tensor.dims) == 1 else tensor


@dataclass(frozen=True, kw_only=True)
class _ClassHead(Head):
    """A head for classes.

    Attributes:
      n_classes: number of classes.
      label_vocabulary: names of the classes, if labels are names; else labels are numbers.
    """

    n_classes: int
    label_vocabulary: Sequence[str] | None = None

    def _ids(self, labels: TensorLike) -> Tensor:
        tensor = _column(labels)
        if self.label_vocabulary is None:
            if tensor.dtype.base_dtype == dtypes.string:
                raise ValueError("Labels dtype should be integer. Instead got string: give a label_vocabulary")
            return tensor
        if tensor.dtype.base_dtype != dtypes.string:
            raise ValueError("Labels dtype should be string if there is a vocabulary.")
        table = tables.index_table_from_tensor(tuple(self.label_vocabulary), name="class_id_lookup")
        return table.lookup(tensor)

    def _classes(self, ids: Tensor) -> Tensor:
        if self.label_vocabulary is None:
            return strings.as_string(ids, name="str_classes")
        table = tables.index_to_string_table_from_tensor(tuple(self.label_vocabulary), name="class_string_lookup")
        return table.lookup(ids)

    def _all(self, count: Tensor) -> dict[str, Tensor]:
        """Numbers and names of all classes, for each example."""
        numbers = arrays.tile(arrays.expand_dims(arrays.range(self.n_classes), 0), [count, 1])
        names = self.label_vocabulary or [str(number) for number in range(self.n_classes)]
        texts = indexing.gather(convert_to_tensor(list(names)), numbers)
        return {"all_class_ids": numbers, "all_classes": texts}

    def _exports(self, predictions: Mapping[str, Tensor]) -> dict[str, ExportOutput]:
        classified = ClassificationOutput(predictions["probabilities"], predictions["all_classes"])
        return {
            saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY: classified,
            "classification": classified,
            "predict": PredictOutput(dict(predictions)),
        }


@dataclass(frozen=True, kw_only=True)
class BinaryHead(_ClassHead):
    """Head for two classes, with the logit of class 1."""

    n_classes: int = 2

    @property
    def logits_dimension(self) -> int:
        return 1

    def _labels(self, labels: TensorLike) -> Tensor:
        return math.to_float(self._ids(labels))

    def _loss(self, labels: Tensor, logits: Tensor) -> Tensor:
        return losses.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)

    def _predictions(self, logits: Tensor) -> dict[str, Tensor]:
        logistic = math.sigmoid(logits, name="logistic")
        both = arrays.concat([arrays.zeros_like(logits), logits], -1, name="two_class_logits")
        probabilities = nn.softmax(both, name="probabilities")
        ids = arrays.expand_dims(reductions.argmax(both, axis=-1, name="class_ids"), -1)
        return {
            "logits": logits,
            "logistic": logistic,
            "probabilities": probabilities,
            "class_ids": ids,
            "classes": self._classes(ids),
            **self._all(arrays.shape(logits)[0]),
        }

    def _metrics(self, labels: Tensor, predictions: Mapping[str, Tensor], weights: Any) -> dict[str, object]:
        logistic, ids = predictions["logistic"], predictions["class_ids"]
        share = means.mean(labels, weights)
        return {
            "accuracy": means.accuracy(labels, ids, weights),
            "precision": counts.precision(labels, ids, weights),
            "recall": counts.recall(labels, ids, weights),
            "prediction/mean": means.mean(logistic, weights),
            "label/mean": share,
            # The accuracy of predicting the more frequent class for all examples.
            "accuracy_baseline": (math.maximum(share[0], 1.0 - share[0]), math.maximum(share[1], 1.0 - share[1])),
            **areas(labels, logistic, weights, self._summation),
        }

    def _exports(self, predictions: Mapping[str, Tensor]) -> dict[str, ExportOutput]:
        return {**super()._exports(predictions), "regression": RegressionOutput(predictions["logistic"])}


@dataclass(frozen=True, kw_only=True)
class MultiClassHead(_ClassHead):
    """Head for more than two classes, with a logit for each."""

    @property
    def logits_dimension(self) -> int:
        return self.n_classes

    def _labels(self, labels: TensorLike) -> Tensor:
        return self._ids(labels)

    def _loss(self, labels: Tensor, logits: Tensor) -> Tensor:
        flat = arrays.squeeze(labels, [-1])
        found = losses.sparse_softmax_cross_entropy_with_logits(labels=flat, logits=logits)
        return arrays.expand_dims(found, -1)

    def _predictions(self, logits: Tensor) -> dict[str, Tensor]:
        ids = arrays.expand_dims(reductions.argmax(logits, axis=-1, name="class_ids"), -1)
        return {
            "logits": logits,
            "probabilities": nn.softmax(logits, name="probabilities"),
            "class_ids": ids,
            "classes": self._classes(ids),
            **self._all(arrays.shape(logits)[0]),
        }

    def _metrics(self, labels: Tensor, predictions: Mapping[str, Tensor], weights: Any) -> dict[str, object]:
        return {"accuracy": means.accuracy(labels, predictions["class_ids"], weights)}


@dataclass(frozen=True, kw_only=True)
class RegressionHead(Head):
    """Head for numbers, with the squared error."""

    label_dimension: int = 1

    @property
    def logits_dimension(self) -> int:
        return self.label_dimension

    def _labels(self, labels: TensorLike) -> Tensor:
        return math.to_float(_column(labels))

    def _loss(self, labels: Tensor, logits: Tensor) -> Tensor:
        return math.squared_difference(labels, logits)

    def _predictions(self, logits: Tensor) -> dict[str, Tensor]:
        return {"predictions": logits}

    def _metrics(self, labels: Tensor, predictions: Mapping[str, Tensor], weights: object) -> dict[str, object]:
        return {
            "label/mean": means.mean(labels, weights),
            "prediction/mean": means.mean(predictions["predictions"], weights),
        }

    def _exports(self, predictions: Mapping[str, Tensor]) -> dict[str, ExportOutput]:
        regression = RegressionOutput(predictions["predictions"])
        return {
            saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY: regression,
            "regression": regression,
            "predict": PredictOutput(dict(predictions)),
        }


def class_head(
    n_classes: int, weight_column: object, label_vocabulary: Sequence[str] | None, loss_reduction: str
) -> Head:
    """Returns the head for this number of classes.

    Raises:
      ValueError: there are fewer than two classes, or another number of names than classes.
    """
    if n_classes < 2:
        raise ValueError(f"n_classes must be at least 2, not {n_classes}")
    if label_vocabulary is not None and len(label_vocabulary) != n_classes:
        raise ValueError(f"Length of label_vocabulary must be n_classes. Given: {label_vocabulary}")
    settings: dict[str, Any] = {
        "weight_column": weight_column,
        "label_vocabulary": label_vocabulary,
        "loss_reduction": loss_reduction,
        "n_classes": n_classes,
    }
    return BinaryHead(**settings) if n_classes == 2 else MultiClassHead(**settings)


def number_head(label_dimension: int, weight_column: object, loss_reduction: str) -> Head:
    """Returns the head for labels of ``label_dimension`` numbers."""
    return RegressionHead(label_dimension=label_dimension, weight_column=weight_column, loss_reduction=loss_reduction)


def areas(labels: Tensor, probabilities: Tensor, weights: SparseLike, summation: str) -> dict[str, object]:
    """The areas under the curves of ``probabilities``: receiver operating characteristic, and precision by recall."""
    by_recall = thresholds.auc(labels, probabilities, weights, curve="PR", summation_method=summation)
    return {"auc": thresholds.auc(labels, probabilities, weights), "auc_precision_recall": by_recall}
