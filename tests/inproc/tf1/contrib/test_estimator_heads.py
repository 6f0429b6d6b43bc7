"""Heads and wrappers of ``tf.contrib.estimator``, and TensorFlow's modules of canned estimators and feature columns."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater import tf
from headwater.tf1.contrib.estimator import heads

SUM = tf.losses.Reduction.SUM
ONE = [[0.0], [1.0], [1.0], [1.0]]
#: Metrics and loss with TensorFlow 1.15, rounded; the logits go from -1 to 2 in equal steps.
CASES: dict[str, tuple[Callable[[], Any], Any, dict[str, float]]] = {
    "two classes": (
        lambda: heads._binary_logistic_or_multi_class_head(2, "w", None, SUM),
        [[0], [1], [1], [1]],
        {
            "average_loss": 0.45662,
            "accuracy": 0.5,
            "precision": 1.0,
            "recall": 0.33333,
            "prediction/mean": 0.53743,
            "label/mean": 0.75,
            "accuracy_baseline": 0.75,
            "auc": 1.0,
            "auc_precision_recall": 1.0,
            "loss": 1.82648,
        },
    ),
    "three classes": (
        lambda: heads._binary_logistic_or_multi_class_head(3, "w", None, SUM),
        [[0], [1], [2], [1]],
        {"average_loss": 1.19144, "accuracy": 0.0, "loss": 4.76574},
    ),
    "numbers": (
        lambda: heads._regression_head("w", 2),
        [[0.0, 1], [1, 1], [1, 2], [1, 0]],
        {"average_loss": 1.42857, "prediction/mean": 0.28571, "label/mean": 0.75, "loss": 11.42857},
    ),
    "name and threshold": (
        lambda: tf.contrib.estimator.binary_classification_head("w", [0.5], name="a"),
        [[0], [1], [1], [1]],
        {"average_loss/a": 0.45662, "auc/a": 1.0, "recall/positive_threshold_0.5/a": 0.33333, "loss": 0.45662},
    ),
    "counts": (
        lambda: tf.contrib.estimator.poisson_regression_head("w"),
        ONE,
        {"average_loss": 1.93923, "prediction/mean": 2.43923, "label/mean": 0.75, "loss": 1.93923},
    ),
    "probabilities": (
        lambda: tf.contrib.estimator.logistic_regression_head("w"),
        ONE,
        {"average_loss": 0.45662, "prediction/mean": 0.53743, "label/mean": 0.75, "loss": 0.45662},
    ),
    "several labels": (
        lambda: tf.contrib.estimator.multi_label_head(3, "w"),
        [[0, 1, 1], [1, 0, 1], [0, 0, 0], [1, 1, 1]],
        {"average_loss": 0.5827, "auc": 0.7037, "auc_precision_recall": 0.89889, "loss": 0.5827},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_heads_give_tensorflows_metrics(case: str) -> None:
    make, labels, expected = CASES[case]
    with tf.Graph().as_default(), tf.Session() as session:
        head = make()
        logits = np.linspace(-1, 2, 4 * head.logits_dimension).reshape(4, -1)
        spec = head.create_estimator_spec(
            features={"w": tf.constant([1.0, 2, 0, 1])},
            mode=tf.estimator.ModeKeys.EVAL,
            logits=tf.constant(logits, tf.float32),
            labels=tf.constant(labels),
        )
        session.run([tf.local_variables_initializer(), tf.tables_initializer()])
        session.run([update for _, update in spec.eval_metric_ops.values()])
        found = session.run({name: value for name, (value, _) in spec.eval_metric_ops.items()} | {"loss": spec.loss})
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=2e-5)


def test_several_heads_and_clipped_gradients() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        one = tf.contrib.estimator.binary_classification_head(name="one")
        both = tf.contrib.estimator.multi_head([one, tf.contrib.estimator.multi_class_head(3, name="two")], [1.0, 2.0])
        assert both.logits_dimension == 4
        values = tf.Variable([3.0, 4.0])
        optimizer = tf.contrib.estimator.clip_gradients_by_norm(tf.train.GradientDescentOptimizer(1.0), 1.0)
        step = optimizer.minimize(tf.reduce_sum(values**2) / 2)
        session.run(tf.global_variables_initializer())
        session.run(step)
        np.testing.assert_allclose(session.run(values), [2.4, 3.2], rtol=1e-6)


def test_features_in_predictions(tmp_path: Path) -> None:
    def data() -> Any:
        bag = tf.SparseTensor([[0, 0], [1, 0], [1, 1]], [7, 8, 9], [2, 2])
        return {"x": tf.constant([[1.0], [2.0]]), "id": tf.constant([[5], [6]]), "bag": bag}, tf.constant([[0], [1]])

    column = tf.feature_column.numeric_column("x")
    plain = tf.estimator.LinearClassifier([column], model_dir=str(tmp_path))
    forwarded = tf.contrib.estimator.forward_features(plain, ["id", "bag"], {"bag": -1})
    forwarded.train(data, steps=1)
    found = list(zip(forwarded.predict(data), range(2), strict=False))
    assert [each["id"].tolist() for each, _ in found] == [[5], [6]]
    assert [each["bag"].tolist() for each, _ in found] == [[7, -1], [8, 9]]
    with pytest.raises(ValueError, match="should be a Tensor"):
        next(iter(tf.contrib.estimator.forward_features(plain).predict(data)))
    with pytest.raises(ValueError, match='Key "y" is not in features'):
        next(iter(tf.contrib.estimator.forward_features(plain, "y").predict(data)))
    with pytest.raises(TypeError, match="either a string or a list"):
        tf.contrib.estimator.forward_features(plain, 3)  # type: ignore[arg-type]


def test_optimizers_by_name() -> None:
    found = heads.get_optimizer_instance("Adagrad", 0.1)
    assert isinstance(found, tf.train.AdagradOptimizer)
    assert heads.get_optimizer_instance(lambda: found) is found
    for wrong, rate, why in (("Adagrad", None, "must be specified"), ("Lion", 1.0, "Unsupported"), (3, 1.0, "not an")):
        with pytest.raises(ValueError, match=why):
            heads.get_optimizer_instance(wrong, rate)


_IMPORTS = """
import tensorflow as tf
from tensorflow.python.estimator.canned import head, metric_keys, optimizers, prediction_keys
from tensorflow.python.estimator.export.export import build_parsing_serving_input_receiver_fn
from tensorflow.python.estimator.inputs import numpy_io
from tensorflow.python.estimator.model_fn import ModeKeys
from tensorflow.python.feature_column import feature_column_lib
from tensorflow.python.feature_column.feature_column import _EmbeddingColumn, embedding_column
from tensorflow.python.feature_column.feature_column_v2 import EmbeddingColumn, NumericColumn
from tensorflow.python.ops.init_ops import GlorotNormal
from tensorflow.python.ops.init_ops_v2 import Zeros, glorot_normal
from tensorflow.python.ops.lookup_ops import StaticHashTable, TextFileInitializer

column = tf.feature_column.embedding_column(tf.feature_column.categorical_column_with_identity("a", 3), 2)
assert isinstance(column, _EmbeddingColumn) and isinstance(column, EmbeddingColumn)
assert not isinstance(column, NumericColumn)
assert metric_keys.MetricKeys.AUC_PR == "auc_precision_recall"
assert prediction_keys.PredictionKeys.LOGISTIC == "logistic"
print(head._binary_logistic_head_with_sigmoid_cross_entropy_loss().logits_dimension)
"""


def test_inner_modules_that_programs_import(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_IMPORTS)
    command = [sys.executable, "-m", "headwater", "exec", "--dialect", "1", "program.py"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split() == ["1"]
