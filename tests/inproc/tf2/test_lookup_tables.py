"""Lookup tables with eager execution, in functions and in datasets. The values are TensorFlow 2.21's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater.errors import InvalidArgumentError
from headwater.tf2.namespace import tf


def pairs() -> Any:
    return tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64))


def test_a_static_table_returns_values() -> None:
    table = tf.lookup.StaticHashTable(pairs(), -1)
    np.testing.assert_array_equal(table.lookup(tf.constant(["b", "z"])), [2, -1])
    np.testing.assert_array_equal(table[tf.constant(["a"])], [1])
    assert int(table.size()) == 2
    assert table.lookup(tf.ragged.constant([["a"], ["b", "c"]])).to_list() == [[1], [2, -1]]


def test_functions_and_datasets_look_up() -> None:
    table = tf.lookup.StaticHashTable(pairs(), -1)
    words = tf.data.Dataset.from_tensor_slices(["a", "z"])
    assert [int(number) for number in words.map(table.lookup)] == [1, -1]

    @tf.function
    def doubled(keys: Any) -> Any:
        return table.lookup(keys) * 2

    np.testing.assert_array_equal(doubled(tf.constant(["a"])), [2])


def test_a_vocabulary_has_buckets_for_other_keys() -> None:
    entries = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([0, 1], tf.int64))
    table = tf.lookup.StaticVocabularyTable(entries, 3)
    np.testing.assert_array_equal(table.lookup(tf.constant(["b", "z", "y", "q"])), [1, 3, 4, 4])
    assert int(table.size()) == 5
    with pytest.raises(ValueError, match="must be > 0"):
        tf.lookup.StaticVocabularyTable(entries, 0)


def test_mutable_tables_change() -> None:
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    table.insert(["k", "l"], [5, 6])
    np.testing.assert_array_equal(table.lookup(tf.constant(["l", "x"])), [6, -1])
    table.remove(tf.constant(["k"]))
    assert [part.numpy().tolist() for part in table.export()] == [[b"l"], [6]]
    dense = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, empty_key=-1, deleted_key=-2)
    dense.insert(tf.constant([3, 4], tf.int64), tf.constant([7, 8], tf.int64))
    np.testing.assert_array_equal(dense.lookup(tf.constant([4, 9], tf.int64)), [8, -1])
    with pytest.raises(InvalidArgumentError, match="not allowed"):
        dense.insert(tf.constant([-1], tf.int64), tf.constant([1], tf.int64))


def test_a_table_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("x\ny\n")
    entries = tf.lookup.TextFileInitializer(
        str(tmp_path / "words.txt"),
        tf.string,
        tf.lookup.TextFileIndex.WHOLE_LINE,
        tf.int64,
        tf.lookup.TextFileIndex.LINE_NUMBER,
    )
    np.testing.assert_array_equal(tf.lookup.StaticHashTable(entries, -1).lookup(tf.constant(["y", "z"])), [1, -1])


def test_models_are_called_on_strings() -> None:
    layers = tf.keras.layers
    lookup = layers.StringLookup(vocabulary=["x", "y"])
    embed = layers.Embedding(3, 1, embeddings_initializer="ones")
    for model in (
        tf.keras.Sequential([layers.Input((1,), dtype="string"), lookup, embed]),
        tf.keras.Sequential([lookup, embed]),
    ):
        assert model(tf.constant([["x"], ["q"]])).shape == (2, 1, 1)
