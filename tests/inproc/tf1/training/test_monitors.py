"""Monitors of ``tf.contrib.learn``. All values are TensorFlow 1.15's."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater.tf1.compat import tf

learn: Any = tf.contrib.learn
monitors: Any = tf.contrib.learn.monitors
X = np.array([[1.0], [2.0], [3.0], [4.0]], np.float32)


def _inputs() -> Any:
    return {"x": tf.constant(X)}, tf.constant(X[:, 0] * 3)


def _model(features: Any, labels: Any, mode: str) -> Any:
    with tf.variable_scope("m"):
        w = tf.get_variable("w", [], initializer=tf.constant_initializer(2.0))
    y = features["x"][:, 0] * w
    loss = tf.identity(tf.losses.mean_squared_error(labels, y), name="myloss")
    return {"p": y}, loss, tf.contrib.layers.optimize_loss(loss, tf.train.get_global_step(), 0.001, "SGD")


@pytest.fixture(name="estimator")
def _estimator(tmp_path: Path) -> Any:
    config = learn.RunConfig(save_checkpoints_steps=2, save_checkpoints_secs=None)
    return learn.Estimator(_model, str(tmp_path / "model"), config=config)


class _Recorder(monitors.EveryN):
    def __init__(self, every_n: int) -> None:
        super().__init__(every_n, 1)
        self.log: list[Any] = []

    def begin(self, max_steps: int | None = None) -> None:
        super().begin(max_steps)
        self.log.append(("begin", max_steps))

    def end(self, session: Any = None) -> None:
        super().end(session)
        self.log.append(("end", session is not None))

    def every_n_step_begin(self, step: int) -> list[Any]:
        super().every_n_step_begin(step)
        self.log.append(("b", step))
        return ["m/w:0", "myloss"]

    def every_n_step_end(self, step: int, outputs: Any) -> bool:
        super().every_n_step_end(step, outputs)
        self.log.append(("e", step, sorted(outputs)))
        return False

    def every_n_post_step(self, step: int, session: Any) -> None:
        super().every_n_post_step(step, session)
        self.log.append(("p", step))


def _active(step: int) -> list[Any]:
    return [("b", step), ("e", step, ["m/w:0", "myloss"]), ("p", step)]


def test_callbacks_of_every_few_steps(estimator: Any) -> None:
    recorder, captured = _Recorder(3), monitors.CaptureVariable("m/w:0", every_n=2, first_n=2)
    estimator.fit(input_fn=_inputs, steps=8, monitors=[recorder, captured])
    steps = [*_active(1), *_active(4), *_active(7)]
    assert recorder.log == [("begin", None), *steps, ("p", 8), ("end", True)]
    assert list(captured.values) == [1, 2, 4, 6, 8]
    np.testing.assert_allclose(list(captured.values.values()), [2.015, 2.03, 2.059, 2.087, 2.114], atol=6e-4)
    recorder = _Recorder(3)
    estimator.fit(input_fn=_inputs, steps=5, monitors=[recorder])
    assert recorder.log == [("begin", None), *_active(9), *_active(12), ("p", 13), ("end", True)]


def test_a_training_stops_at_a_step(estimator: Any) -> None:
    estimator.fit(input_fn=_inputs, steps=100, monitors=[monitors.StopAtStep(num_steps=3)])
    assert estimator.get_variable_value("global_step") == 3
    estimator.fit(input_fn=_inputs, steps=100, monitors=[monitors.StopAtStep(last_step=7)])
    assert estimator.get_variable_value("global_step") == 7


def test_checkpoints_are_validated(estimator: Any, tmp_path: Path) -> None:
    options: Any = {"input_fn": _inputs, "eval_steps": 1, "every_n_steps": 2, "check_interval_secs": None}
    metrics = {"m": learn.MetricSpec(tf.contrib.metrics.streaming_mean_absolute_error, "p")}
    monitor = monitors.ValidationMonitor(name="val", metrics=metrics, early_stopping_rounds=100, **options)
    estimator.fit(input_fn=_inputs, steps=7, monitors=[monitor])
    assert (monitor.best_step, monitor.early_stopped) == (6, False)
    expected = {"m": 2.2832704, "loss": 6.255988, "global_step": 6}
    assert monitor.best_metrics == pytest.approx(expected, rel=1e-5)
    assert (tmp_path / "model" / "eval_val").is_dir()

    monitor = monitors.ValidationMonitor(early_stopping_rounds=4, early_stopping_metric_minimize=False, **options)
    estimator.fit(input_fn=_inputs, steps=50, monitors=[monitor])
    assert (monitor.best_step, monitor.early_stopped) == (8, True)
    assert estimator.get_variable_value("global_step") == 12
    monitor = monitors.ValidationMonitor(early_stopping_rounds=4, early_stopping_metric="nope", **options)
    with pytest.raises(ValueError, match="Metric nope missing from outputs"):
        estimator.fit(input_fn=_inputs, steps=50, monitors=[monitor])


def test_arrays_are_validated_and_experiments_have_monitors(tmp_path: Path) -> None:
    config = learn.RunConfig(save_checkpoints_steps=2, save_checkpoints_secs=None)
    columns = [tf.contrib.layers.real_valued_column("", 1)]
    classifier = learn.LinearClassifier(columns, str(tmp_path / "a"), config=config)
    options: Any = {"every_n_steps": 5, "check_interval_secs": None, "early_stopping_rounds": 1000}
    monitor = monitors.ValidationMonitor(X, np.array([0, 0, 1, 1]), **options)
    classifier.fit(X, np.array([0, 0, 1, 1]), steps=12, monitors=[monitor])
    assert monitor.best_step is not None
    assert "accuracy" in monitor.best_metrics
    trained = learn.Estimator(_model, str(tmp_path / "b"))
    stop, hook = monitors.StopAtStep(num_steps=2), tf.train.StopAtStepHook(5)
    experiment = learn.Experiment(trained, _inputs, _inputs, train_steps=9, train_monitors=[stop, hook], eval_steps=1)
    experiment.train()
    assert trained.get_variable_value("global_step") == 2


def test_hooks_of_monitors(estimator: Any) -> None:
    given = [monitors.PrintTensor(["myloss"]), tf.train.StopAtStepHook(3)]
    found = monitors.replace_monitors_with_hooks(given, estimator)
    assert [type(each).__name__ for each in found] == ["StopAtStepHook", "RunHookAdapterForMonitors"]
    assert monitors.replace_monitors_with_hooks(None, estimator) == []
    for request, raised in ((["nosuch"], KeyError), (("m/w:0",), ValueError)):
        recorder: Any = _Recorder(1)
        recorder.every_n_step_begin = lambda step, request=request: request
        with pytest.raises(raised):
            estimator.fit(input_fn=_inputs, steps=1, monitors=[recorder])


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("ValidationMonitor", ()),
        ("StopAtStep", ()),
        ("StopAtStep", (1, 2)),
        ("CheckpointSaver", ("unused",)),
        ("CheckpointSaver", ("unused", 1, 1)),
    ],
)
def test_invalid_arguments(kind: str, arguments: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"provide|specified"):
        getattr(monitors, kind)(*arguments)


def _run_until_stopped(loss_fails: bool, folder: str) -> int:
    """Returns the number of steps; in the fourth, the loss is not a number."""
    with tf.Graph().as_default():
        w = tf.get_variable("w", [], initializer=tf.constant_initializer(2.0))
        step = tf.assign_add(tf.train.get_or_create_global_step(), 1)
        with tf.control_dependencies([step]):
            loss = tf.where(step > 3, w * float("nan"), w)
        given = [
            monitors.NanLoss(loss, 2, loss_fails),
            monitors.StepCounter(2, folder),
            *monitors.get_default_monitors(loss, tf.summary.scalar("a", w), 2, folder),
            monitors.LoggingTrainable(),
            monitors.CheckpointSaver(folder, save_steps=2, saver=tf.train.Saver()),
        ]
        count = 0
        with tf.train.MonitoredSession(hooks=[monitors.RunHookAdapterForMonitors(given)]) as session:
            while not session.should_stop():
                session.run(step)
                count += 1
        return count


def test_monitors_in_a_session(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    folder = tmp_path / "a"
    assert _run_until_stopped(False, str(folder)) == 5
    assert "Logging Trainable: Step 1: w:0 = 2.0" in caplog.text
    assert "Step 1: loss = 2.0" in caplog.text
    events = [each for path in sorted(folder.glob("events*")) for each in tf.train.summary_iterator(str(path))]
    assert "a" in {value.tag for each in events for value in each.summary.value}
    names = sorted(path.name for path in folder.glob("*.index"))
    assert names == ["model.ckpt-1.index", "model.ckpt-3.index", "model.ckpt-5.index"]
    with pytest.raises(monitors.NanLossDuringTrainingError, match="NaN loss during training"):
        _run_until_stopped(True, str(tmp_path / "b"))
