"""TensorFlow 1.15 loads the models that Headwater's estimators export."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater import tf

pytestmark = [pytest.mark.peer, pytest.mark.slow]

FEATURES = {"age": tf.io.FixedLenFeature([1], tf.float32), "items": tf.io.VarLenFeature(tf.int64)}
BAGS = [[1, 2], [], [7], [3, 1, 3]]


def test_tensorflow_predicts_with_our_export(tmp_path: Path, tf1: Callable[..., str]) -> None:
    examples = tmp_path / "examples.tfrecord"
    with tf.io.TFRecordWriter(str(examples)) as writer:
        for age, bag in enumerate(BAGS):
            example = tf.train.Example()
            example.features.feature["age"].float_list.value.append(age)
            example.features.feature["items"].int64_list.value.extend(bag)
            writer.write(example.SerializeToString())

    def training() -> Any:
        records = tf.data.TFRecordDataset(str(examples)).batch(len(BAGS))
        return records.map(lambda serialized: (tf.io.parse_example(serialized, FEATURES), [0, 1, 1, 0])).repeat(3)

    column = tf.feature_column
    items = column.categorical_column_with_hash_bucket("items", 100, tf.int64)
    estimator = tf.estimator.DNNLinearCombinedClassifier(
        str(tmp_path / "model"),
        linear_feature_columns=[items],
        dnn_feature_columns=[column.numeric_column("age"), column.embedding_column(items, 4, combiner="mean")],
        dnn_hidden_units=[8],
    )
    estimator.train(training)
    receiver = tf.estimator.export.build_parsing_serving_input_receiver_fn(FEATURES)
    exported = estimator.export_saved_model(str(tmp_path / "served"), receiver).decode()
    predict = tf.contrib.predictor.from_saved_model(exported, "predict")
    ours = predict({"examples": list(tf.python_io.tf_record_iterator(str(examples)))})["logistic"].ravel()
    predict.session.close()
    np.testing.assert_allclose(json.loads(tf1("tf1_predict.py", exported, examples)), ours, rtol=1e-5)
