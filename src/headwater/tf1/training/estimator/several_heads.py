"""Heads for examples of several classes at once, and several heads as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from headwater import dtypes
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.graph.sparse_tensor import SparseTensor
from headwater.tf1.functional import arrays, checks, indexing, losses, math, sparse_changes, tables
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.functional.reductions import reduce_mean, reduce_sum
from headwater.tf1.metrics import means
from headwater.tf1.training import saved_model
from headwater.tf1.training.estimator.export import ClassificationOutput, ExportOutput, PredictOutput
from headwater.tf1.training.estimator.heads import areas
from headwater.tf1.training.estimator.public_heads import Head, at_thresholds, reduction_of, regularized, training_op
from headwater.tf1.training.estimator.specs import EstimatorSpec, ModeKeys

if TYPE_CHECKING:
    from headwater.graph.types import OpOrTensor, Structure, TensorLike


class MultiLabelHead(Head):
    """Head for examples with any number of classes: the sigmoid of a logit is the probability of its class.

    Labels are a `SparseTensor` of the classes of each example, as numbers or names, or a matrix of zeros and ones. An
    example's loss is the mean of its classes' cross entropies.

    Args:
      n_classes: number of classes, at least 2.
      weight_column: key of the examples' weights, or a numeric column.
      thresholds: probabilities from which a class counts as predicted, for further metrics.
      label_vocabulary: the classes' names, if labels are names.
      loss_reduction: ``sum_over_batch_size`` or ``sum``.
      loss_fn: function of ``labels`` (a matrix of zeros and ones) and ``logits`` that returns each example's loss.
      classes_for_class_based_metrics: numbers or names of classes with separate metrics.
      name: suffix of the names of the metrics.

    Raises:
      ValueError: a single class, another number of names, thresholds that are not between 0 and 1, or unknown classes.
    """

    _n_classes: int = 0
    _thresholds: Sequence[float] = ()
    _vocabulary: Sequence[str] | None = None
    _own_metrics: Sequence[int] = ()
    _named: bool = False

    def __init__(
        self,
        n_classes: int,
        weight_column: str | None = None,
        thresholds: Sequence[float] | None = None,
        label_vocabulary: Sequence[str] | None = None,
        loss_reduction: str = "sum_over_batch_size",
        loss_fn: Callable[..., object] | None = None,
        classes_for_class_based_metrics: Sequence[int] | Sequence[str] | None = None,
        name: str | None = None,
    ) -> None:
        if n_classes is None or n_classes < 2:  # pyright: ignore[reportUnnecessaryComparison]
            raise ValueError(f"n_classes must be > 1 for multi-label classification. Given: {n_classes}")
        for threshold in thresholds or ():
            if not 0 < threshold < 1:
                raise ValueError(f"thresholds must be in (0, 1) range. Given: {threshold}")
        if label_vocabulary is not None and len(label_vocabulary) != n_classes:
            raise ValueError(
                f"Length of label_vocabulary must be n_classes ({n_classes}). Given: {len(label_vocabulary)}"
            )
        own, named = _numbers(classes_for_class_based_metrics, n_classes, label_vocabulary)
        super().__init__(weight_column=weight_column, loss_reduction=reduction_of(loss_reduction))
        self._set(
            name,
            loss_fn,
            _n_classes=n_classes,
            _thresholds=tuple(thresholds or ()),
            _vocabulary=None if label_vocabulary is None else tuple(label_vocabulary),
            _own_metrics=own,
            _named=named,
        )

    @property
    def logits_dimension(self) -> int:
        return self._n_classes

    def _labels(self, labels: Any) -> Tensor:
        """The labels as a matrix of zeros and ones, int64."""
        if labels is None:
            raise ValueError("You must provide a labels Tensor. Given: None.")
        if isinstance(labels, SparseTensor):
            values = labels.values
            if values.dtype.base_dtype == dtypes.string:
                if self._vocabulary is None:
                    raise ValueError("Labels dtype should be integer. Instead got string: give a label_vocabulary")
                table = tables.index_table_from_tensor(self._vocabulary, name="class_id_lookup")
                values = table.lookup(values)
            ids = SparseTensor(labels.indices, math.to_int64(values), labels.dense_shape)
            return math.to_int64(sparse_changes.sparse_to_indicator(ids, self._n_classes))
        dense = convert_to_tensor(labels)
        if dense.dtype.base_dtype == dtypes.string:
            raise TypeError("labels must be a SparseTensor of names, or a matrix of zeros and ones; these are strings")
        message = "labels must be an integer indicator Tensor with values in [0, 1]"
        most = checks.assert_less_equal(dense, convert_to_tensor(1, dense.dtype.base_dtype), message=message)
        least = checks.assert_non_negative(dense, message=message)
        with control_dependencies([most, least]):
            return math.to_int64(dense)

    def _loss(self, labels: Tensor, logits: Tensor) -> Tensor:
        each = losses.sigmoid_cross_entropy_with_logits(labels=math.to_float(labels), logits=logits)
        return reduce_mean(each, axis=-1, keepdims=True)

    def _predictions(self, logits: Tensor) -> dict[str, Tensor]:
        return {"logits": logits, "probabilities": math.sigmoid(logits, name="probabilities")}

    def _metrics(self, labels: Tensor, predictions: Mapping[str, Tensor], weights: Any) -> dict[str, object]:
        probabilities = predictions["probabilities"]
        found = {
            **areas(labels, probabilities, weights, self._summation),
            **at_thresholds(labels, probabilities, self._thresholds, weights),
        }
        for number in self._own_metrics:
            own, right = probabilities[:, number : number + 1], labels[:, number : number + 1]
            suffix = f"/{self._vocabulary[number]}" if self._named and self._vocabulary else f"/class{number}"
            found[f"probability_mean{suffix}"] = means.mean(own, weights)
            found.update(
                {f"{key}{suffix}": metric for key, metric in areas(right, own, weights, self._summation).items()}
            )
        return found

    def _exports(self, predictions: Mapping[str, Tensor]) -> dict[str, ExportOutput]:
        probabilities = predictions["probabilities"]
        names = self._vocabulary or [str(number) for number in range(self._n_classes)]
        numbers = arrays.tile(arrays.expand_dims(arrays.range(self._n_classes), 0), [arrays.shape(probabilities)[0], 1])
        classified = ClassificationOutput(probabilities, indexing.gather(convert_to_tensor(list(names)), numbers))
        return {
            saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY: classified,
            "classification": classified,
            "predict": PredictOutput(dict(predictions)),
        }


def _numbers(classes: Any, n_classes: int, vocabulary: Sequence[str] | None) -> tuple[tuple[int, ...], bool]:
    """Returns classes as numbers, and whether they were given as names."""
    if not classes:
        return (), False
    named = isinstance(classes[0], str)
    if named:
        if vocabulary is None:
            raise ValueError("label_vocabulary must be provided when classes_for_class_based_metrics are strings.")
        return tuple(list(vocabulary).index(each) for each in classes), True
    for each in classes:
        if not 0 <= each < n_classes:
            raise ValueError(
                f"All classes_for_class_based_metrics must be in range [0, {n_classes - 1}]. Given: {each}"
            )
    return tuple(classes), False


class MultiHead(Head):
    """Head that combines several heads over one model; the loss is the weighted sum of their losses.

    Logits and labels are by the heads' names; logits may also be one tensor, whose last dimension is divided.
    Predictions have keys ``(head, key)``, metrics end in ``/`` and the head's name.

    Args:
      heads: the heads, each with a name.
      head_weights: weights of their losses; 1 if None.

    Raises:
      ValueError: no heads, heads without or with the same names, or another number of weights.
    """

    _heads: Sequence[Any] = ()
    _head_weights: Sequence[float] = ()

    def __init__(self, heads: Sequence[Any], head_weights: Sequence[float] | None = None) -> None:
        if not heads:
            raise ValueError(f"Must specify heads. Given: {heads}")
        if head_weights and len(head_weights) != len(heads):
            raise ValueError(
                "heads and head_weights must have the same size. "
                f"Given len(heads): {len(heads)}. Given len(head_weights): {len(head_weights)}."
            )
        for head in heads:
            if head.name is None:
                raise ValueError(f"All given heads must have name specified. Given: {head}")
        super().__init__(loss_reduction=heads[0].loss_reduction)
        name = "_".join(head.name for head in heads)
        self._set(name, None, _heads=tuple(heads), _head_weights=tuple(head_weights or [1.0] * len(heads)))

    @property
    def logits_dimension(self) -> int:
        return sum(head.logits_dimension for head in self._heads)

    def _divided(self, logits: Any) -> dict[str, Tensor]:
        """Returns the logits of each head."""
        if isinstance(logits, Mapping):
            named = cast("Mapping[str, Any]", logits)
            self._require("logits", named)
            return {head.name: convert_to_tensor(named[head.name]) for head in self._heads}
        whole = convert_to_tensor(logits)
        begin, found = 0, dict[str, Tensor]()
        for head in self._heads:
            found[head.name] = whole[..., begin : begin + head.logits_dimension]
            begin += head.logits_dimension
        return found

    def _require(self, what: str, given: object) -> None:
        missing = [head.name for head in self._heads if head.name not in given]
        if missing:
            raise ValueError(f"{what} has missing values for head(s): {missing}")

    def predictions(self, logits: TensorLike, keys: Sequence[Any] | None = None) -> dict[Any, Tensor]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Returns predictions by pairs of head and name, restricted to the pairs ``keys`` if given."""
        divided = self._divided(logits)
        found = {
            (head.name, key): value
            for head in self._heads
            for key, value in head.predictions(divided[head.name]).items()
        }
        return found if keys is None else {key: found[key] for key in keys}

    def loss(
        self,
        labels: Any,
        logits: TensorLike,
        features: Structure = None,
        mode: object = None,
        regularization_losses: Sequence[TensorLike] | None = None,
    ) -> Tensor:
        del mode
        return self._losses(labels, self._divided(logits), features, regularization_losses)[0]

    def _losses(self, labels: TensorLike, logits: Mapping[str, Tensor], features: Structure, more: Any) -> Any:
        """Returns the total loss, and the loss of each head by the head's name."""
        if not isinstance(labels, Mapping):
            raise ValueError(f"labels must be a dict by the names of heads. Given: {labels}")
        self._require("labels", labels)
        each = {head.name: head.loss(labels[head.name], logits[head.name], features) for head in self._heads}
        whole: Any = sum(loss * weight for loss, weight in zip(each.values(), self._head_weights, strict=True))
        return regularized(whole, more), each

    def create_estimator_spec(
        self,
        features: Mapping[str, Tensor],
        mode: str,
        logits: TensorLike,
        labels: Any = None,
        optimizer: object = None,
        trainable_variables: object = None,
        train_op_fn: Callable[[Tensor], OpOrTensor] | None = None,
        update_ops: object = None,
        regularization_losses: Sequence[TensorLike] | None = None,
    ) -> EstimatorSpec:
        divided = self._divided(logits)
        predictions: Any = self.predictions(divided)  # pyright: ignore[reportArgumentType]
        if mode == ModeKeys.PREDICT:
            return EstimatorSpec(mode, predictions=predictions, export_outputs=self._all_exports(features, divided))
        if labels is None:
            raise ValueError("You must provide a labels Tensor. Given: None.")
        loss, each = self._losses(labels, divided, features, regularization_losses)
        if mode == ModeKeys.EVAL:
            metrics: dict[str, object] = {}
            if regularization_losses is not None:
                metrics[f"regularization_loss/{self.name}"] = means.mean(sum(map(reduce_sum, regularization_losses)))
            for head in self._heads:
                metrics[f"loss/{head.name}"] = means.mean(each[head.name])
                spec = head.create_estimator_spec(features, mode, divided[head.name], labels[head.name])
                metrics.update(spec.eval_metric_ops)
            return EstimatorSpec(mode, predictions=predictions, loss=loss, eval_metric_ops=metrics)
        train = training_op(loss, optimizer, trainable_variables, train_op_fn, update_ops)
        return EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=train)

    def _all_exports(self, features: object, logits: Mapping[str, Tensor]) -> dict[str, ExportOutput]:
        """Each head's outputs by ``head`` and ``head/signature``; the first head's outputs are the default."""
        default = saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY
        found: dict[str, ExportOutput] = {}
        together: dict[str, Tensor] = {}
        for head in self._heads:
            outputs = head.create_estimator_spec(features, ModeKeys.PREDICT, logits[head.name]).export_outputs
            for key, output in outputs.items():
                found[head.name if key == default else f"{head.name}/{key}"] = output
                if key == default:
                    found.setdefault(default, output)
                if isinstance(output, PredictOutput):
                    together.update({f"{head.name}/{name}": value for name, value in output.outputs.items()})
        found["predict"] = PredictOutput(together)
        return found
