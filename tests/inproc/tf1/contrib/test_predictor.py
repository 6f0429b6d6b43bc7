"""`tf.contrib.predictor`: exported models and estimators as functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater import tf


@pytest.fixture
def exported(tmp_path: Path) -> str:
    """A model whose output is its input plus 2."""
    path = str(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None], "x")
        y = tf.add(x, tf.Variable(2.0), name="y")
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, path, {"x": x}, {"y": y})
    return path


def test_of_a_saved_model(exported: str) -> None:
    predict = tf.contrib.predictor.from_saved_model(exported)
    np.testing.assert_array_equal(predict({"x": [1.0, 3.0]})["y"], [3.0, 5.0])
    assert predict.fetch_tensors["y"].name == "y:0"
    predict.session.close()


def test_of_named_tensors(exported: str) -> None:
    predict = tf.contrib.predictor.from_saved_model(exported, input_names={"a": "x:0"}, output_names={"b": "y:0"})
    np.testing.assert_array_equal(predict({"a": [1.0]})["b"], [3.0])
    predict.session.close()


def test_unknown_keys_and_alternatives_are_errors(exported: str) -> None:
    predict = tf.contrib.predictor.from_saved_model(exported)
    with pytest.raises(ValueError, match=r"unexpected keys in input_dict: \['z'\]; expected: \['x'\]"):
        predict({"z": 1.0})
    predict.session.close()
    with pytest.raises(ValueError, match=r'"other"\. Available signatures of .* are \[\'serving_default\'\]'):
        tf.contrib.predictor.from_saved_model(exported, "other")
    with pytest.raises(ValueError, match="at most one"):
        tf.contrib.predictor.from_saved_model(exported, "other", input_names={}, output_names={})
    with pytest.raises(ValueError, match="both be"):
        tf.contrib.predictor.from_saved_model(exported, input_names={})


def test_of_an_estimator(tmp_path: Path) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        step = tf.train.get_or_create_global_step()
        weight = tf.get_variable("weight", [], initializer=tf.constant_initializer(3.0))
        output = features["x"] * weight
        if mode == tf.estimator.ModeKeys.PREDICT:
            exports = {"serving_default": tf.estimator.export.PredictOutput({"y": output})}
            return tf.estimator.EstimatorSpec(mode, {"y": output}, export_outputs=exports)
        loss = tf.reduce_mean(tf.square(output - labels))
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.assign_add(step, 1))

    estimator = tf.estimator.Estimator(model_fn, str(tmp_path / "run"))
    estimator.train(lambda: ({"x": tf.constant([1.0])}, tf.constant([1.0])), steps=1)

    def receive() -> Any:
        x = tf.placeholder(tf.float32, [None])
        return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})

    predict = tf.contrib.predictor.from_estimator(estimator, receive)
    np.testing.assert_array_equal(predict({"x": [2.0]})["y"], [6.0])
    predict.session.close()
    with pytest.raises(KeyError, match="serving_default"):
        tf.contrib.predictor.from_estimator(estimator, receive, "other")
    with pytest.raises(TypeError, match="str"):
        tf.contrib.predictor.from_estimator("estimator", receive)  # type: ignore[bad-argument-type]
