"""Layers that prepare features, on text and on ragged and sparse tensors. Expected values: TensorFlow 2.21, Keras 3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from headwater.tf2.namespace import tf

TEXTS = ["The cat sat!", "the dog sat, sat"]
_layers: Any = tf.keras.layers


def words() -> Any:
    return tf.ragged.constant([["a", "b"], ["c"], []])


def numbers() -> Any:
    return tf.ragged.constant([[1, 2], [3], []], dtype=tf.int64)


def test_lookups_of_ragged_tensors_are_ragged() -> None:
    lookup = _layers.StringLookup(vocabulary=["a", "b"])
    assert lookup(words()).to_list() == [[1, 2], [0], []]
    assert lookup(words()).to_tensor().numpy().tolist() == [[1, 2], [0, 0], [0, 0]]
    assert _layers.IntegerLookup(vocabulary=[1, 2])(numbers()).to_list() == [[1, 2], [0], []]
    back = _layers.StringLookup(vocabulary=["a", "b"], invert=True)
    assert back(numbers()).to_list() == [[b"a", b"b"], [b"[UNK]"], []]
    assert back(tf.constant([1])).numpy().tolist() == [b"a"]
    assert _layers.Hashing(3)(words()).to_list() == [[0, 1], [1], []]
    assert _layers.Discretization([0.0, 1.0])(tf.ragged.constant([[-1.0, 0.5], [2.0]])).to_list() == [[0, 1], [2]]


@pytest.mark.parametrize("mode", ["multi_hot", "count"])
def test_rows_of_ragged_tensors_are_encoded(mode: str) -> None:
    lookup = _layers.StringLookup(vocabulary=["a", "b"], output_mode=mode)
    assert lookup(words()).numpy().tolist() == [[0, 1, 1], [1, 0, 0], [0, 0, 0]]
    codes = _layers.CategoryEncoding(4, output_mode=mode)(numbers())
    assert codes.numpy().tolist() == [[0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]]


def test_lookups_of_sparse_tensors_are_sparse() -> None:
    sparse = tf.SparseTensor([[0, 0], [1, 1]], ["a", "z"], [2, 3])
    found = _layers.StringLookup(vocabulary=["a", "b"])(sparse)
    assert found.values.numpy().tolist() == [1, 0]
    assert found.indices.numpy().tolist() == [[0, 0], [1, 1]]
    assert _layers.Hashing(3)(sparse).values.numpy().tolist() == [0, 1]
    lookup = _layers.StringLookup(vocabulary=["a", "b"], output_mode="multi_hot")
    assert lookup(sparse).numpy().tolist() == [[0, 1, 0], [1, 0, 0]]


def test_a_vocabulary_adapts_to_ragged_tensors() -> None:
    lookup = _layers.StringLookup()
    lookup.adapt(words())
    assert lookup.get_vocabulary() == ["[UNK]", "c", "b", "a"]


def adapted(**settings: Any) -> Any:
    layer = _layers.TextVectorization(**settings)
    layer.adapt(TEXTS)
    return layer


@pytest.mark.parametrize(
    ("settings", "texts", "expected"),
    [
        ({}, ["the cat ran", "Dog"], [[3, 5, 1], [4, 0, 0]]),
        ({"output_sequence_length": 4}, [["the cat ran"], ["Dog"]], [[3, 5, 1, 0], [4, 0, 0, 0]]),
        ({"output_mode": "multi_hot"}, ["the cat ran"], [[1, 0, 1, 0, 1]]),
        ({"output_mode": "tf_idf"}, ["the cat ran the"], [[0.601986, 0, 1.021651, 0, 0.693147]]),
        ({"ngrams": 2}, ["the cat sat"], [[3, 10, 2, 5, 9]]),
        ({"split": "character"}, ["tcx"], [[2, 11, 1]]),
        ({"split": lambda text: tf.strings.split(text, " ")}, ["the cat"], [[3, 5]]),
        (
            {"standardize": lambda text: tf.strings.regex_replace(tf.strings.lower(text), "[^ a-z.?!,]", "")},
            ["the cat ran!"],
            [[2, 7, 1]],
        ),
    ],
)
def test_texts_become_numbers(settings: dict[str, Any], texts: Any, expected: Any) -> None:
    np.testing.assert_allclose(adapted(**settings)(tf.constant(texts)).numpy(), expected, rtol=1e-5)


def test_texts_become_ragged_numbers_and_one_text_a_vector() -> None:
    assert adapted(ragged=True)(["the cat ran", "dog"]).to_list() == [[3, 5, 1], [4]]
    assert adapted()(tf.constant("the cat")).numpy().tolist() == [3, 5]
    assert adapted().get_vocabulary() == ["", "[UNK]", "sat", "the", "dog", "cat"]


def test_datasets_adapt_and_map_texts() -> None:
    layer = _layers.TextVectorization(max_tokens=4, output_sequence_length=3)
    layer.adapt(tf.data.Dataset.from_tensor_slices(["a b", "b c", "c c"]).batch(2))
    found = list(tf.data.Dataset.from_tensor_slices(["a c b", "c"]).batch(2).map(layer))
    assert found[0].numpy().tolist() == [[1, 2, 3], [2, 0, 0]]


def test_a_saved_model_of_texts_keeps_its_vocabulary(tmp_path: Path) -> None:
    inputs = keras.Input((1,), dtype="string")
    model = keras.Model(inputs, adapted(output_sequence_length=4)(inputs))
    model.save(tmp_path / "texts.keras")
    loaded: Any = keras.models.load_model(tmp_path / "texts.keras")
    texts = np.array([["the cat ran"]], object)
    assert np.asarray(loaded(texts)).tolist() == np.asarray(model(texts)).tolist() == [[3, 5, 1, 0]]
