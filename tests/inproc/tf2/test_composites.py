"""Sparse and ragged tensors equal TensorFlow 2's: datasets of each kind of element, and functions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater.tf2.namespace import tf
from tests.inproc.tf2 import composite_cases, ragged_dispatch_cases

_DATA = Path(__file__).parents[2] / "data" / "tf2"
_DATASETS: dict[str, Any] = json.loads((_DATA / "composites.json").read_text(encoding="utf-8"))
_FUNCTIONS: dict[str, Any] = json.loads((_DATA / "ragged_dispatch.json").read_text(encoding="utf-8"))
_CASES = composite_cases.all_cases(tf)


@pytest.mark.parametrize("name", _DATASETS)
def test_datasets_as_tensorflow_2(name: str) -> None:
    assert json.loads(json.dumps(_CASES[name]())) == _DATASETS[name]


def test_functions_of_ragged_tensors_as_tensorflow_2() -> None:
    found = ragged_dispatch_cases.answers(tf)
    assert {name: found[name] for name in _FUNCTIONS} == _FUNCTIONS


@pytest.mark.parametrize("make", [tf.distribute.MirroredStrategy, tf.distribute.get_strategy])
def test_strategies_distribute_sparse_and_ragged_elements(make: Callable[[], Any]) -> None:
    rows = {"s": composite_cases.sparse_rows(tf), "r": tf.ragged.constant([[1, 2], [], [3], [4, 5, 6]], tf.int32)}
    strategy = make()
    batches = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices(rows).batch(2))

    @tf.function
    def step(iterator: Any) -> Any:
        return strategy.run(lambda each: tf.reduce_sum(each["s"].values) + tf.reduce_sum(each["r"].flat_values),
                            args=(next(iterator),))  # fmt: skip

    iterator = iter(batches)
    assert [int(strategy.reduce("SUM", step(iterator), axis=None)) for _ in range(2)] == [6, 36]


def test_saved_datasets_refuse_other_elements(tmp_path: Path) -> None:
    folder = str(tmp_path / "kept")
    tf.data.Dataset.range(3).save(folder)
    with pytest.raises(ValueError, match="not of element_spec"):
        tf.data.Dataset.load(folder, tf.TensorSpec([], tf.float32))
    with pytest.raises(tf.errors.NotFoundError, match="holds no saved dataset"):
        tf.data.Dataset.load(str(tmp_path))


def test_keras_layers_accept_tensors_of_a_graph() -> None:
    with tf.Graph().as_default():
        found = tf.keras.layers.Dense(2)(tf.compat.v1.placeholder(tf.float32, [None, 3]))
    assert found.shape.as_list() == [None, 2]
