"""Experiments and estimators of ``tf.contrib.learn``; tables and staging in monitored sessions."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from headwater import tf

X = np.random.default_rng(0).standard_normal((32, 2)).astype(np.float32)
WORDS = np.where(X[:, 1] > 0, "up", "down")
Y = (X[:, 0] > 0).astype(np.int64)


def _input_fn():
    features = {"x": X, "w": WORDS.astype(object)}
    return tf.data.Dataset.from_tensor_slices((features, Y)).repeat().batch(16)


def _eval_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": X, "w": WORDS.astype(object)}, Y)).batch(16)


def _estimator(folder: str):
    layers = tf.contrib.layers
    x = layers.real_valued_column("x", dimension=2)
    words = layers.sparse_column_with_keys("w", ["up", "down"])
    hashed = layers.sparse_column_with_hash_bucket("w", 10)
    wide = [words, layers.crossed_column([words, hashed], 20)]
    deep = [x, layers.embedding_column(hashed, 3)]
    return tf.contrib.learn.DNNLinearCombinedClassifier(
        model_dir=folder, linear_feature_columns=wide, dnn_feature_columns=deep, dnn_hidden_units=[4]
    )


def test_an_experiment_trains_and_evaluates(tmp_path: Path) -> None:
    def experiment_fn(folder: str):
        return tf.contrib.learn.Experiment(_estimator(folder), _input_fn, _eval_fn, train_steps=6, eval_steps=None)

    metrics, _ = tf.contrib.learn.learn_runner.run(experiment_fn, str(tmp_path))
    assert metrics["global_step"] == 6
    assert 0 <= metrics["accuracy"] <= 1


@pytest.mark.parametrize("as_triple", [False, True])
def test_an_estimator_of_any_model(tmp_path: Path, as_triple: bool) -> None:
    def model(features: dict[str, tf.Tensor], labels: tf.Tensor, mode: str, params: dict[str, float]):
        y = tf.layers.dense(features["x"], 1)[:, 0]
        if mode == tf.contrib.learn.ModeKeys.INFER:
            return tf.contrib.learn.ModelFnOps(mode, {"y": y})
        loss = tf.losses.mean_squared_error(labels, y)
        train = tf.contrib.layers.optimize_loss(loss, tf.train.get_global_step(), params["rate"], "SGD")
        return (y, loss, train) if as_triple else tf.contrib.learn.ModelFnOps(mode, y, loss, train)

    def doubled(features: dict[str, tf.Tensor], labels: tf.Tensor | None):
        return features, None if labels is None else tf.to_float(labels) * 2.0

    made = tf.contrib.learn.Estimator(model, str(tmp_path), params={"rate": 0.2}, feature_engineering_fn=doubled)
    made.fit(input_fn=lambda: ({"x": tf.constant([[1.0]])}, tf.constant([3])), steps=20)
    found = made.evaluate(input_fn=lambda: ({"x": tf.constant([[1.0]])}, tf.constant([3])), steps=1)
    assert found["global_step"] == 20
    assert found["loss"] < 1e-6
    rows = {"x": np.ones((2, 1), np.float32)}
    predicted = made.predict(input_fn=lambda: tf.data.Dataset.from_tensors(rows), as_iterable=False)
    np.testing.assert_allclose(predicted["y"], [6.0, 6.0], rtol=1e-3)
    with pytest.raises(ValueError, match="output_alternatives"):
        tf.contrib.learn.ModelFnOps("infer", {"y": 1.0}, output_alternatives={"x": 1})


def test_the_fitted_data_are_logged_once(tmp_path: Path) -> None:
    estimator = _estimator(str(tmp_path))
    estimator.fit(input_fn=_input_fn, steps=2)
    assert estimator.evaluate(input_fn=_eval_fn)["global_step"] == 2
    with pytest.raises(ValueError, match="both input_fn and x"):
        estimator.fit(X, Y, _input_fn, steps=1)
    with pytest.raises(ValueError, match="Either x or input_fn"):
        estimator.fit(steps=1)
    with pytest.raises(ValueError, match="feed_fn is not supported"):
        estimator.evaluate(input_fn=_eval_fn, feed_fn=dict)


def test_arrays_are_fitted_evaluated_and_predicted(tmp_path: Path) -> None:
    columns = tf.contrib.learn.infer_real_valued_columns_from_input(X)
    assert [column.name for column in columns] == [""]
    classifier = tf.contrib.learn.LinearClassifier(columns, str(tmp_path), optimizer=tf.train.FtrlOptimizer(1.0))
    classifier.fit(X, Y, steps=40)
    found = classifier.evaluate(X, Y, batch_size=8)
    assert found["global_step"] == 40
    classes = classifier.predict(X, as_iterable=False)
    assert found["accuracy"] == pytest.approx(np.mean(classes == Y))
    assert found["accuracy"] > 0.9
    assert list(classifier.predict_classes(X[:3], batch_size=2)) == classes[:3].tolist()


def test_arrays_by_name_are_fitted_in_batches(tmp_path: Path) -> None:
    estimator = _estimator(str(tmp_path))
    features = {"x": X, "w": WORDS.astype(object)}
    estimator.fit(features, Y, steps=3, batch_size=8)
    assert estimator.evaluate(features, Y)["global_step"] == 3
    assert len(list(estimator.predict(features))) == len(X)


def test_a_monitored_session_initialises_tables() -> None:
    with tf.Graph().as_default():
        table = tf.contrib.lookup.index_table_from_tensor(["a", "b"])
        found = table.lookup(tf.constant(["b", "a"]))
        tf.train.get_or_create_global_step()
        with tf.train.MonitoredTrainingSession() as session:
            np.testing.assert_array_equal(session.run(found), [1, 0])


def test_elements_pass_through_a_staging_area_in_order() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        area = tf.contrib.staging.StagingArea([tf.float32, tf.int32], [[2], []], names=["x", "n"])
        number = tf.placeholder(tf.int32, [])
        put = area.put({"x": tf.ones([2]) * tf.to_float(number), "n": number})
        got, size = area.get(), area.size()
        for value in (3, 4):
            session.run(put, {number: value})
        assert session.run(size) == 2
        assert session.run(got)["n"] == 3
        assert session.run(got)["x"].tolist() == [4.0, 4.0]
        with pytest.raises(ValueError, match="names"):
            area.put({"y": tf.ones([2])})


def test_metrics_of_an_evaluation(tmp_path: Path) -> None:
    """All values are TensorFlow 1.15's."""
    learn, squared = tf.contrib.learn, tf.contrib.metrics.streaming_mean_squared_error
    x = np.array([1.0, 2.0, 3.0, 4.0], np.float32)

    def model(features: dict[str, tf.Tensor], labels: tf.Tensor, mode: str):
        y = features["x"] * tf.get_variable("w", [], initializer=tf.constant_initializer(2.0))
        loss = tf.losses.mean_squared_error(labels, y)
        train = tf.contrib.layers.optimize_loss(loss, tf.train.get_global_step(), 0.1, "SGD")
        return {"y": y, "z": y + 1.0}, loss, train if mode != tf.contrib.learn.ModeKeys.INFER else None

    def inputs():
        return {"x": tf.constant(x), "w": tf.constant([1.0, 0.0, 0.0, 3.0])}, tf.constant(x * 3)

    estimator, spec = learn.Estimator(model, str(tmp_path)), tf.contrib.learn.MetricSpec
    estimator.fit(input_fn=inputs, steps=1)
    specs = {
        "a": spec(squared, prediction_key="y"),
        "b": spec(tf.metrics.mean_absolute_error, "z", weight_key="w"),
        "d": spec(lambda logits: tf.metrics.mean(logits), "y"),
    }
    found = estimator.evaluate(input_fn=inputs, steps=1, metrics=specs)
    assert found == {"a": 1.875, "b": 2.625, "d": 8.75, "loss": 1.875, "global_step": 1}
    by_key = {("c", "z"): lambda predictions, labels: tf.metrics.mean(predictions - labels)}
    assert estimator.evaluate(input_fn=inputs, steps=1, metrics=by_key) == {"c": 2.25, "loss": 1.875, "global_step": 1}
    experiment = learn.Experiment(
        estimator, inputs, inputs, eval_metrics={"a": specs["a"]}, eval_steps=1, eval_delay_secs=0
    )
    assert experiment.evaluate()["a"] == 1.875
    for metric, message in (
        (spec(squared), "MetricSpec without specified prediction_key requires"),
        (spec(squared, "y", label_key="l"), "MetricSpec with label_key specified requires labels dict"),
        (squared, "Metrics passed provide only name, no prediction"),
    ):
        with pytest.raises(ValueError, match=message):
            estimator.evaluate(input_fn=inputs, steps=1, metrics={"m": metric})
    with pytest.raises(KeyError, match="Key 'q' missing"):
        estimator.evaluate(input_fn=inputs, steps=1, metrics={"m": spec(squared, "q")})
    with pytest.raises(ValueError, match="weight"):
        spec(lambda predictions: predictions, weight_key="w")


def test_delays_of_an_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Worker i waits for the global step 8000 log(i + 1), and an evaluation for ``eval_delay_secs``, as in 1.15."""
    waits: list[float] = []
    monkeypatch.setattr("headwater.tf1.training.estimator.learn.pause", waits.append)
    trained: list[list[int]] = []

    def train(input_fn: object, hooks: list[tf.train.GlobalStepWaiterHook], **options: object) -> None:
        del input_fn, options
        trained.append([hook._wait_until_step for hook in hooks])

    def experiment(task: int):
        config = SimpleNamespace(master="", task_id=task, is_chief=task == 0)
        estimator: Any = SimpleNamespace(config=config, train=train, evaluate=dict)
        return tf.contrib.learn.Experiment(
            estimator, _input_fn, _eval_fn, delay_workers_by_global_step=True, train_steps=6, eval_delay_secs=7
        )

    experiment(0).train()
    experiment(1).train()
    experiment(3).train(delay_secs=2)
    assert trained == [[0], [5545], []]
    assert waits == [2]
    experiment(0).evaluate()
    experiment(0).evaluate(delay_secs=0)
    assert waits == [2, 7]


def test_features_and_labels_of_a_model_that_is_fitted_with_arrays(tmp_path: Path) -> None:
    """As in TensorFlow 1.15, one array is a tensor, and predictions have placeholders for labels."""
    learn, seen = tf.contrib.learn, list[Any]()

    def model(features: tf.Tensor, target: tf.Tensor):
        seen.append((features.dtype.name, features.shape.as_list(), target.dtype.name, target.shape.as_list()))
        y = tf.contrib.layers.linear(features, 1, weights_initializer=tf.zeros_initializer())[:, 0]
        loss = tf.losses.mean_squared_error(target, y)
        return {"y": y}, loss, tf.contrib.layers.optimize_loss(loss, None, 0.1, "SGD")

    x = np.random.RandomState(0).randn(20, 2)
    estimator = learn.Estimator(model, str(tmp_path))
    estimator.fit(x, x.sum(1), steps=3, batch_size=20)
    found = [each["y"] for each in estimator.predict(x[:2])]
    np.testing.assert_allclose(found, [1.52, 1.9497], atol=6e-5)
    assert seen == [("float64", [None, 2], "float64", [None])] * 2


def test_metrics_and_probabilities_of_a_classifier(tmp_path: Path) -> None:
    """All values are TensorFlow 1.15's."""
    x = np.random.RandomState(0).randn(40, 3).astype(np.float32)
    labels = (x[:, 0] > 0).astype(np.int32)
    columns = tf.contrib.learn.infer_real_valued_columns_from_input(x)
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    classifier = tf.contrib.learn.LinearClassifier(columns, str(tmp_path), optimizer=optimizer)
    classifier.fit(x, labels, steps=10)
    expected = {
        "accuracy": 0.925,
        "accuracy/baseline_label_mean": 0.575,
        "accuracy/threshold_0.500000_mean": 0.925,
        "auc": 1.0,
        "auc_precision_recall": 1.0,
        "global_step": 10,
        "labels/actual_label_mean": 0.575,
        "labels/prediction_mean": 0.536,
        "loss": 0.542,
        "precision/positive_threshold_0.500000_mean": 0.885,
        "recall/positive_threshold_0.500000_mean": 1.0,
    }
    assert classifier.evaluate(x, labels, steps=1) == pytest.approx(expected, abs=6e-4)
    probabilities = [[0.321, 0.679], [0.264, 0.736]]
    np.testing.assert_allclose(list(classifier.predict_proba(x[:2])), probabilities, atol=6e-4)
    np.testing.assert_allclose(classifier.predict_proba(x[:2], as_iterable=False), probabilities, atol=6e-4)
