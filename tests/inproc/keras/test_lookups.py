"""Lookups and hashes on the host. Expected numbers are the results of TensorFlow 2's layers for the same arguments."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from headwater import tf
from headwater.keras.host_layers import results
from headwater.keras.lookups import Hashing, IntegerLookup, StringLookup

import keras  # isort: skip - the package before it chooses the backend

# Keras's own arrays do not support NumPy's newest keyword.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

STRINGS = np.array([["a", "b", "zz"], ["c", "", "q"]])
INTEGERS = np.array([[1, 7, 42], [3, 0, -5]])


def same(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)


def test_hashes() -> None:
    same(Hashing(5)(STRINGS), EXPECTED["h int"])
    same(Hashing(5, mask_value=0)(INTEGERS), EXPECTED["hi int"])
    same(Hashing(5, mask_value="", salt=[3, 4])(STRINGS), EXPECTED["hs int"])
    same(Hashing(5, output_mode="one_hot")(STRINGS[:, :1]), EXPECTED["h one_hot"])
    same(Hashing(5, output_mode="count")(STRINGS), EXPECTED["h count"])


@pytest.mark.parametrize("mode", ["int", "one_hot", "multi_hot", "count"])
@pytest.mark.parametrize("unknown", [1, 2])
def test_lookups(mode: str, unknown: int) -> None:
    columns = slice(0, 1) if mode == "one_hot" else slice(None)
    strings = StringLookup(vocabulary=["a", "b", "c"], num_oov_indices=unknown, mask_token="", output_mode=mode)
    same(strings(STRINGS[:, columns]), EXPECTED[f"s {mode} {unknown}"])
    integers = IntegerLookup(vocabulary=[1, 3, 42], num_oov_indices=unknown, mask_token=0, output_mode=mode)
    same(integers(INTEGERS[:, columns]), EXPECTED[f"i {mode} {unknown}"])


def test_vocabularies_are_by_frequency() -> None:
    data = np.array(["b", "a", "a", "c", "d", "d", "e", ""])
    for most in (None, 4):
        for mask in (None, ""):
            lookup = StringLookup(max_tokens=most, mask_token=mask)
            lookup.adapt([data[:4], data[4:]])
            assert lookup.get_vocabulary() == EXPECTED[f"ad {most} {mask}"]
    lookup = IntegerLookup(mask_token=0)
    lookup.adapt(np.array([5, 5, 2, 9, 9, 1, 0]))
    assert lookup.get_vocabulary() == EXPECTED["adi None"]


def test_weights_are_inverse_document_frequencies() -> None:
    lookup = StringLookup(output_mode="tf_idf")
    lookup.adapt(np.array([["a", "b"], ["a", "c"], ["d", "a"]]))
    same(lookup(np.array([["a", "a"], ["b", "zz"]])), EXPECTED["idf"])


def test_strings_survive_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "convert", lambda array: array)  # programs of TensorFlow 2 get bytes
    lookup = StringLookup(vocabulary=["a", "b", "c"], invert=True)
    assert lookup(INTEGERS).tolist() == [["a", "[UNK]", "[UNK]"], ["c", "[UNK]", "[UNK]"]]


def test_unknown_tokens_without_a_number_are_an_error() -> None:
    with pytest.raises(ValueError, match="num_oov_indices=0"):
        StringLookup(vocabulary=["a"], num_oov_indices=0)(STRINGS)
    with pytest.raises(ValueError, match="has no vocabulary yet"):
        StringLookup()(STRINGS)


def test_integers_work_within_compiled_functions() -> None:
    lookup = IntegerLookup(vocabulary=[1, 3, 42])
    same(jax.jit(lookup)(np.int32(INTEGERS)), lookup(INTEGERS))


@pytest.mark.parametrize("dtype", [str, bytes, object])
def test_functional_models_look_up_strings(dtype: Any) -> None:
    words = keras.Input((1,), dtype="string", name="words")
    model = keras.Model({"words": words}, StringLookup(vocabulary=["a"], output_mode="multi_hot")(words))
    model.compile("sgd", "mse")
    texts = np.array([["a"], ["b"]], dtype)
    for x in ({"words": texts}, tf.data.Dataset.from_tensor_slices({"words": texts}).batch(2)):
        np.testing.assert_array_equal(model.predict(x, verbose=0), [[0, 1], [1, 0]])
    targets = np.array([[0.0, 1.0], [1.0, 1.0]])
    assert model.evaluate({"words": texts}, targets, verbose=0) == pytest.approx(0.25)


class Looking(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.lookup = StringLookup(vocabulary=["a"], output_mode="multi_hot")

    def call(self, inputs: Any) -> Any:
        return self.lookup(inputs["words"])


@pytest.mark.parametrize("dtype", [str, bytes, object])
@pytest.mark.parametrize("method", ["fit", "predict"])
def test_other_models_refuse_strings(method: str, dtype: Any) -> None:
    model = Looking()
    model.compile("sgd", "mse")
    words = np.array([["a"], ["b"]], dtype)
    for x in ({"words": words}, tf.data.Dataset.from_tensor_slices({"words": words}).batch(2)):
        with pytest.raises(ValueError, match=r"strings at \['words'\], which compiled functions cannot process: look"):
            getattr(model, method)(x, verbose=0)


def test_lookups_are_saved_with_their_model(tmp_path: Path) -> None:
    numbers = keras.Input((3,), dtype="int32")
    lookup = IntegerLookup()
    lookup.adapt(INTEGERS)
    model = keras.Model(numbers, keras.layers.Embedding(8, 2)(lookup(numbers)))
    expected = model.predict(INTEGERS, verbose=0)
    model.save(tmp_path / "model.keras")
    same(keras.models.load_model(tmp_path / "model.keras").predict(INTEGERS, verbose=0), expected)


def test_lookups_replace_those_of_keras() -> None:
    assert keras.layers.StringLookup is tf.keras.layers.StringLookup is StringLookup
    assert keras.layers.Hashing is tf.keras.layers.Hashing is Hashing
    with pytest.raises(AttributeError, match="has no attribute 'Lookup'"):
        _ = keras.layers.Lookup  # pyrefly: ignore[missing-attribute] - that there is none is what is tested
    assert tf.keras.layers.Dense is keras.layers.Dense


def test_datasets_look_words_up_and_go_into_fit() -> None:
    lookup, hashed = StringLookup(vocabulary=["a", "b", "c"]), Hashing(7, output_mode="one_hot")
    words = np.array(["a", "c", "z", "b"])
    data = tf.data.Dataset.from_tensor_slices((words, np.arange(4.0))).map(
        lambda word, y: (lookup(word), hashed(word), y)
    )
    with tf.Session() as session:
        numbers, bins, _ = session.run(data.batch(4).make_one_shot_iterator().get_next())
    np.testing.assert_array_equal(numbers, lookup(words))
    np.testing.assert_array_equal(bins, hashed(words))
    assert numbers.dtype == np.int64
    assert bins.dtype == np.float32
    model = keras.Sequential([keras.Input((), dtype="int32"), keras.layers.Embedding(5, 2), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    history = model.fit(data.map(lambda number, bin, y: (number, y)).batch(2), epochs=2, verbose=0)
    assert len(history.history["loss"]) == 2


EXPECTED: dict[str, Any] = {
    "h int": [[4, 2, 2], [2, 3, 3]],
    "hi int": [[2, 1, 1], [2, 0, 1]],
    "hs int": [[1, 3, 3], [3, 0, 1]],
    "s int 1": [[2, 3, 1], [4, 0, 1]],
    "i int 1": [[2, 1, 4], [3, 0, 1]],
    "s int 2": [[3, 4, 1], [5, 0, 2]],
    "i int 2": [[3, 2, 5], [4, 0, 2]],
    "h one_hot": [[0.0, 0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0, 0.0]],
    "hi one_hot": [[0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0]],
    "hs one_hot": [[0.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 0.0]],
    "s one_hot 1": [[0, 1, 0, 0], [0, 0, 0, 1]],
    "i one_hot 1": [[0, 1, 0, 0], [0, 0, 1, 0]],
    "s one_hot 2": [[0, 0, 1, 0, 0], [0, 0, 0, 0, 1]],
    "i one_hot 2": [[0, 0, 1, 0, 0], [0, 0, 0, 1, 0]],
    "h multi_hot": [[0.0, 0.0, 1.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0, 0.0]],
    "hi multi_hot": [[0.0, 1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0, 0.0]],
    "hs multi_hot": [[0.0, 1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 0.0, 1.0, 0.0]],
    "s multi_hot 1": [[1, 1, 1, 0], [1, 0, 0, 1]],
    "i multi_hot 1": [[1, 1, 0, 1], [1, 0, 1, 0]],
    "s multi_hot 2": [[1, 0, 1, 1, 0], [0, 1, 0, 0, 1]],
    "i multi_hot 2": [[0, 1, 1, 0, 1], [0, 1, 0, 1, 0]],
    "h count": [[0.0, 0.0, 2.0, 0.0, 1.0], [0.0, 0.0, 1.0, 2.0, 0.0]],
    "hi count": [[0.0, 2.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0, 0.0]],
    "hs count": [[0.0, 1.0, 0.0, 2.0, 0.0], [1.0, 1.0, 0.0, 1.0, 0.0]],
    "s count 1": [[1, 1, 1, 0], [1, 0, 0, 1]],
    "i count 1": [[1, 1, 0, 1], [1, 0, 1, 0]],
    "s count 2": [[1, 0, 1, 1, 0], [0, 1, 0, 0, 1]],
    "i count 2": [[0, 1, 1, 0, 1], [0, 1, 0, 1, 0]],
    "ad None None": ["[UNK]", "d", "a", "e", "c", "b", ""],
    "ad None ": ["", "[UNK]", "d", "a", "e", "c", "b"],
    "adi None": [0, -1, 9, 5, 2, 1],
    "ad 4 None": ["[UNK]", "d", "a", "e"],
    "ad 4 ": ["", "[UNK]", "d", "a"],
    "adi 4": [0, -1, 9, 5],
    "idf": [[0.0, 1.1192315816879272, 0.0, 0.0, 0.0], [0.8271220326423645, 0.0, 0.0, 0.0, 0.9162907600402832]],
    "pad": [[1, 1, 1, 0, 0, 0], [3, 0, 0, 0, 0, 0]],
    "rank1": [1, 1, 1],
}


def test_preprocessing_layers_compute_arrays_beside_a_module_named_tensorflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", tf)
    layer = keras.layers.Discretization([0.0, 1.0])
    np.testing.assert_array_equal(layer([0.5, 2.0]), [1, 2])
