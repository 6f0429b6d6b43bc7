"""Estimators with a given head behave like those with a built-in head; TensorFlow's accept only heads of contrib."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater import tf

X = [[1.0], [2.0], [3.0], [4.0]]
CLASSES = [[1], [0], [1], [1]]
NUMBERS = [[1.0], [0.0], [2.0], [1.5]]


def _trained(estimator: Any, labels: Any) -> Any:
    def inputs() -> Any:
        return tf.data.Dataset.from_tensors(({"x": tf.constant(X)}, tf.constant(labels))).repeat()

    estimator.train(inputs, steps=5)
    return estimator.evaluate(inputs, steps=1)


def _columns() -> list[Any]:
    return [tf.feature_column.numeric_column("x")]


def _config() -> Any:
    return tf.estimator.RunConfig(tf_random_seed=3)


def _regression() -> Any:
    return tf.estimator.RegressionHead(loss_reduction="sum")


def _together(make: Callable[..., Any], first: list[Any], folder: Path) -> Any:
    return make(
        *first,
        model_dir=str(folder),
        linear_feature_columns=_columns(),
        dnn_feature_columns=_columns(),
        dnn_hidden_units=[2],
        config=_config(),
    )


def test_linear(tmp_path: Path) -> None:
    e, config = tf.estimator, _config()
    ours = _trained(e.LinearEstimator(_regression(), _columns(), str(tmp_path / "a"), config=config), NUMBERS)
    assert ours == pytest.approx(_trained(e.LinearRegressor(_columns(), str(tmp_path / "b"), config=config), NUMBERS))


@pytest.mark.long
def test_linear_classes(tmp_path: Path) -> None:
    e, config = tf.estimator, _config()
    head = e.BinaryClassHead(loss_reduction="sum")
    ours = _trained(e.LinearEstimator(head, _columns(), str(tmp_path / "c"), config=config), CLASSES)
    canned = _trained(e.LinearClassifier(_columns(), str(tmp_path / "d"), config=config), CLASSES)
    # Canned estimators of TensorFlow 1 sum this area by trapezoids, heads that programs make interpolate.
    assert ours.pop("auc_precision_recall") == pytest.approx(canned.pop("auc_precision_recall"), abs=0.01)
    assert ours == pytest.approx(canned)


@pytest.mark.long
def test_deep(tmp_path: Path) -> None:
    e, config = tf.estimator, _config()
    ours = _trained(e.DNNEstimator(_regression(), [2], _columns(), str(tmp_path / "a"), config=config), NUMBERS)
    assert ours == pytest.approx(_trained(e.DNNRegressor([2], _columns(), str(tmp_path / "b"), config=config), NUMBERS))


@pytest.mark.long
def test_both(tmp_path: Path) -> None:
    e = tf.estimator
    ours = _trained(_together(e.DNNLinearCombinedEstimator, [_regression()], tmp_path / "a"), NUMBERS)
    assert ours == pytest.approx(_trained(_together(e.DNNLinearCombinedRegressor, [], tmp_path / "b"), NUMBERS))


def test_metrics_of_thresholds_and_names() -> None:
    head = tf.estimator.BinaryClassHead(thresholds=[0.25], name="n")
    with tf.Graph().as_default(), tf.Session() as session:
        logits = tf.constant([[0.5], [-1.0], [2.0], [-3.0]])
        spec = head.create_estimator_spec({}, "eval", logits, tf.constant([[1], [0], [1], [1]]))
        session.run(tf.local_variables_initializer())
        session.run([update for _, update in spec.eval_metric_ops.values()])
        found = session.run({name: value for name, (value, _) in spec.eval_metric_ops.items()})
    # the second example counts as class 1 from a probability of 0.25
    assert found["accuracy/positive_threshold_0.25/n"] == 0.5
    assert found["recall/positive_threshold_0.25/n"] == pytest.approx(2 / 3)
    assert found["precision/positive_threshold_0.25/n"] == pytest.approx(2 / 3)
    assert found["accuracy/n"] == 0.75


def test_the_optimizer_of_a_program() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.get_or_create_global_step()
        v, w = tf.Variable(1.0), tf.Variable(1.0)
        logits = tf.constant([[2.0]]) * v * w
        head = tf.estimator.RegressionHead()
        settings = {"optimizer": tf.train.GradientDescentOptimizer(0.25), "trainable_variables": [v]}
        spec = head.create_estimator_spec({}, "train", logits, tf.constant([[1.0]]), **settings)
        session.run(tf.global_variables_initializer())
        session.run(spec.train_op)
        assert session.run([v, w]) == [0.0, 1.0]
        with pytest.raises(ValueError, match="cannot both"):
            head.create_estimator_spec({}, "train", logits, tf.constant([[1.0]]))
