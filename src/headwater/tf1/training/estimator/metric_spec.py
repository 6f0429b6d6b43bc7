"""``MetricSpec`` of ``tf.contrib.learn``: a metric function with the names of the tensors that it compares."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from headwater.graph.types import Structure

_LABELS = ("labels", "label", "targets", "target")
_PREDICTIONS = ("predictions", "prediction", "logits", "logit")
_WEIGHTS = ("weights", "weight")


class MetricSpec:
    """A metric of an evaluation.

    Args:
      metric_fn: returns a value, or a pair of a value and an update. Predictions, labels and weights are passed by name
        if it has arguments of such names; predictions are the first other argument.
      prediction_key, label_key: keys of the tensors in dictionaries of predictions and labels; None for one tensor.
      weight_key: key of the feature that weighs the examples.

    Raises:
      ValueError: ``metric_fn`` has no argument for labels or weights although their key is given.
    """

    def __init__(
        self,
        metric_fn: Callable[..., Structure],
        prediction_key: str | None = None,
        label_key: str | None = None,
        weight_key: str | None = None,
    ) -> None:
        self.metric_fn = metric_fn
        self.prediction_key = prediction_key
        self.label_key = label_key
        self.weight_key = weight_key
        known = list(inspect.signature(metric_fn).parameters)
        self._labels, self._predictions, self._weights = (
            next((name for name in known if name in names), None) for names in (_LABELS, _PREDICTIONS, _WEIGHTS)
        )
        for key, found, names in ((label_key, self._labels, _LABELS), (weight_key, self._weights, _WEIGHTS)):
            if key is not None and found is None:
                raise ValueError(f"{names} missing from {metric_fn}({known}).")
        self._labels_first = self._predictions is None and known[:1] == [self._labels]

    def create_metric_ops(self, inputs: Structure, labels: Structure, predictions: Structure) -> Structure:
        """Returns the result of the metric function.

        Raises:
          ValueError, KeyError: a key does not fit the predictions or labels.
        """
        prediction = _one("prediction", predictions, self.prediction_key)
        label = _one("label", labels, self.label_key)
        named: dict[Any, Structure] = {}
        if self.weight_key is not None:
            named[self._weights] = inputs[self.weight_key]
        if self._labels_first:
            return self.metric_fn(label, prediction, **named)
        if self._labels is not None:
            named[self._labels] = label
        if self._predictions is None:
            return self.metric_fn(prediction, **named)
        return self.metric_fn(**{self._predictions: prediction}, **named)


def items_of(given: Structure) -> Mapping[str, Structure] | None:
    """Returns tensors by name; None for a single tensor."""
    return cast("Mapping[str, Structure]", given) if isinstance(given, Mapping) else None


def _one(name: str, given: Structure, key: str | None) -> Structure:
    items = items_of(given)
    if key:
        if items is None:
            raise ValueError(f"MetricSpec with {name}_key specified requires {name}s dict, got {given}.")
        if key not in items:
            raise KeyError(f"Key '{key}' missing from {items.keys()}.")
        return items[key]
    if items is None:
        return given
    if len(items) != 1:
        raise ValueError(
            f"MetricSpec without specified {name}_key requires {name}s tensor or single element dict, got {items}"
        )
    return next(iter(items.values()))


def metric_ops(
    metrics: Mapping[Structure, Structure], features: Structure, labels: Structure, predictions: Structure
) -> dict[str, Structure]:
    """Returns the results of metrics by name.

    Args:
      metrics: by name a `MetricSpec` or a function of predictions and labels; by a pair of a name and a key of
        predictions a function.

    Raises:
      ValueError: predictions are a dictionary, and a function has no key.
    """
    found: dict[str, Structure] = {}
    for name, metric in sorted(metrics.items()):
        if isinstance(metric, MetricSpec):
            found[name] = metric.create_metric_ops(features, labels, predictions)
            continue
        by_name = items_of(labels) or {}
        label = next(iter(by_name.values())) if len(by_name) == 1 else labels
        if isinstance(name, tuple):
            shown, key = cast("tuple[str, str]", name)
            found[shown] = metric(predictions[key], by_name.get(key, label))
        elif items_of(predictions) is not None:
            raise ValueError(
                f"Metrics passed provide only name, no prediction, but predictions are dict. Metrics: {metrics}"
            )
        else:
            found[name] = metric(predictions, label)
    return found
