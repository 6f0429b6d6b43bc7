"""Names and order of metrics in TensorFlow 1.15's ``tf.keras``: ``acc`` of ``metrics=["accuracy"]``, for example."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras

from headwater.keras.internals import MonitorCallback, python_utils
from headwater.keras.types import Tree

_keras: Tree = keras
_monitor: Tree = MonitorCallback
_OLD = {
    "accuracy": "acc",
    "crossentropy": "ce",
    "learning_rate": "lr",
    "mae": "mean_absolute_error",
    "mape": "mean_absolute_percentage_error",
    "mse": "mean_squared_error",
    "msle": "mean_squared_logarithmic_error",
}
"""TensorFlow 1.15's name of a metric that is given as text, and of the rate that callbacks log."""


class Logs(dict[str, Any]):
    """The values of metrics by Keras 3's name; TensorFlow 1.15's names denote the same values."""

    def __getitem__(self, name: str) -> Any:
        return super().__getitem__(self._present(name))

    def __contains__(self, name: object) -> bool:
        return super().__contains__(self._present(name))

    def get(self, name: str, default: Any = None) -> Any:
        """Returns the value of a metric."""
        return super().get(self._present(name), default)

    def _present(self, name: Any) -> Any:
        if super().__contains__(name) or not isinstance(name, str):
            return name
        name = name.removeprefix("weighted_")
        for new, old in _OLD.items():
            if name == old or name.endswith(f"_{old}"):
                return name.removesuffix(old) + new
        return name


def accept_old_metric_names() -> None:
    """Makes logs and callbacks accept TensorFlow 1.15's names, and gives lists of results its order. Idempotent."""
    model = _keras.Model
    if model._flatten_metrics_in_order is _flattened:
        return
    model.metrics_names = property(lambda self: [old for old, _ in _names(self)])
    model._flatten_metrics_in_order = _flattened
    as_python = python_utils.pythonify_logs
    python_utils.pythonify_logs = lambda logs: Logs(as_python(logs))
    _keras.callbacks.History.__init__ = _with_old_names(_keras.callbacks.History.__init__)
    _monitor._set_monitor_op = _with_old_rule(_monitor._set_monitor_op)


def _with_old_names(original: Callable[[Any], None]) -> Callable[[Any], None]:
    @functools.wraps(original)
    def __init__(self: Any) -> None:
        original(self)
        self.history = Logs()

    return __init__


def _names(model: Tree) -> list[tuple[str, str]]:
    """Returns TensorFlow 1.15's name and Keras 3's of each metric, in TensorFlow's order: losses, metrics of outputs,
    others."""
    losses: list[tuple[str, str]] = []
    others: list[tuple[str, str]] = []
    of_outputs: list[tuple[str, str]] = []
    compiled, losses_of_outputs = model._compile_metrics, getattr(model._compile_loss, "metrics", ())
    for metric in model.metrics:
        if metric is compiled:
            metrics = _keras.tree.flatten([metric._user_metrics, metric._user_weighted_metrics])
            texts = [each for each in metrics if isinstance(each, str)]
            names = list(metric.result()) if metric.built else [getattr(each, "name", each) for each in metrics if each]
            prefixes = ["", *(f"{output}_" for output in metric.output_names or ())]
            of_outputs = [(_old_name(str(name), texts, prefixes), str(name)) for name in names]
        else:
            is_loss = metric is model._loss_tracker or any(metric is each for each in losses_of_outputs)
            (losses if is_loss else others).append((metric.name, metric.name))
    return [*losses, *of_outputs, *others]


def _old_name(name: str, texts: Sequence[str], prefixes: Sequence[str]) -> str:
    for new, old in _OLD.items():
        if new in texts and name.removesuffix(new) in prefixes:
            return name.removesuffix(new) + old
    return name


def _flattened(self: Tree, logs: Mapping[str, float]) -> Any:
    """Returns the values of metrics as a list in the order of ``metrics_names``; a single value as such."""
    known = [name for _, name in _names(self) if name in logs]
    results = [logs[name] for name in (*known, *sorted(name for name in logs if name not in known))]
    return results[0] if len(results) == 1 else results


def _with_old_rule(original: Callable[[Any], None]) -> Callable[[Any], None]:
    @functools.wraps(original)
    def set_monitor_op(self: Any) -> None:
        try:
            original(self)
        except ValueError:  # no metric of this name
            rises = "acc" in self.monitor or self.monitor.startswith("fmeasure")
            self.monitor_op = _keras.ops.greater if rises else _keras.ops.less

    return set_monitor_op
