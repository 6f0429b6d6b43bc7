"""Saved models of TensorFlow 2: written and loaded here, and written by TensorFlow 2.21."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from headwater.data.io.saved_model import read
from headwater.tf2.namespace import tf

RECORDED = Path(__file__).parents[2] / "data" / "tf2" / "saved_models"
layers = tf.keras.layers


class Counting(tf.Module):
    """The module of ``tools/record_saved_models.py``."""

    def __init__(self) -> None:
        super().__init__()
        self.w = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")
        self.count = tf.Variable(0, trainable=False, name="count")
        pairs = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64))
        self.table = tf.lookup.StaticHashTable(pairs, -1)

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x")])
    def __call__(self, x: Any) -> Any:
        self.count.assign_add(1)
        return {"y": x @ self.w}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def look(self, keys: Any) -> Any:
        return self.table.lookup(keys)

    @tf.function
    def sums(self, x: Any, training: bool = False) -> Any:
        total = tf.constant(0.0)
        for _ in tf.range(3):
            total += tf.reduce_sum(x)
        return total if training else total * 2


def written_here(folder: Path) -> str:
    module = Counting()
    module.sums(tf.ones([2]))
    module.sums(tf.ones([3]), training=True)
    tf.saved_model.save(module, folder / "module", {"serving_default": module.__call__, "look": module.look})
    return str(folder / "module")


def written_by_tensorflow(folder: Path) -> str:
    del folder
    return str(RECORDED / "module")


def written_again(folder: Path) -> str:
    loaded = tf.saved_model.load(written_by_tensorflow(folder))
    tf.saved_model.save(loaded, folder / "again", {"serving_default": loaded.__call__, "look": loaded.look})
    return str(folder / "again")


@pytest.mark.parametrize("write", [written_here, written_by_tensorflow, written_again])
def test_a_loaded_module_has_variables_tables_functions_and_signatures(write: Any, tmp_path: Path) -> None:
    loaded = tf.saved_model.load(write(tmp_path))
    assert loaded.count.numpy() == 0
    np.testing.assert_array_equal(loaded(tf.ones([1, 2]))["y"], [[4, 6]])
    np.testing.assert_array_equal(loaded(x=tf.ones([3, 2]))["y"], [[4, 6]] * 3)
    assert loaded.count.numpy() == 2
    np.testing.assert_array_equal(loaded.look(tf.constant(["b", "q"])), [2, -1])
    assert float(loaded.sums(tf.ones([2]))) == 12
    assert float(loaded.sums(tf.ones([3]), training=True)) == 9
    assert float(loaded.sums(tf.ones([3]), True)) == 9
    served = loaded.signatures["serving_default"]
    assert served.structured_input_signature[1]["x"].shape.as_list() == [None, 2]
    np.testing.assert_array_equal(served(x=tf.ones([1, 2]))["y"], [[4, 6]])
    np.testing.assert_array_equal(loaded.signatures["look"](keys=tf.constant(["a"]))["output_0"], [1])


@pytest.mark.parametrize("write", [written_here, written_by_tensorflow])
def test_a_loaded_function_is_differentiable_and_can_be_compiled(write: Any, tmp_path: Path) -> None:
    loaded = tf.saved_model.load(write(tmp_path))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(loaded(tf.constant([[1.0, 2.0]]))["y"])
    np.testing.assert_array_equal(tape.gradient(loss, loaded.w), [[1, 1], [2, 2]])

    @tf.function
    def doubled(x: Any) -> Any:
        return loaded(x)["y"] * 2

    np.testing.assert_array_equal(doubled(tf.ones([1, 2])), [[8, 12]])
    assert loaded.count.numpy() == 2


def test_arguments_that_no_saved_function_takes_are_refused(tmp_path: Path) -> None:
    loaded = tf.saved_model.load(written_here(tmp_path))
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        loaded.sums(tf.ones([4]))
    with pytest.raises(TypeError, match="takes the tensors"):
        loaded.signatures["serving_default"](z=tf.ones([1, 2]))


@pytest.mark.parametrize(
    ("name", "inputs"),
    [("sequence", np.array([[1, 2, 0]], np.int32)), ("text", tf.constant([["The cat, sat."], ["a dog"]]))],
)
def test_models_that_tensorflow_exported_predict_the_same(name: str, inputs: Any) -> None:
    loaded = tf.saved_model.load(RECORDED / name)
    wanted = [float(word) for word in (RECORDED / f"{name}.txt").read_text().split()]
    np.testing.assert_allclose(np.ravel(loaded.serve(inputs)), wanted, rtol=1e-5)


def sequential() -> tuple[Any, Any]:
    parts = [layers.Dense(4, activation="gelu"), layers.BatchNormalization(), layers.Dropout(0.5), layers.Dense(2)]
    return tf.keras.Sequential([layers.Input((3,)), *parts]), np.ones((5, 3), np.float32)


def recurrent() -> tuple[Any, Any]:
    parts = [layers.Embedding(10, 4, mask_zero=True), layers.Bidirectional(layers.LSTM(3)), layers.Dense(1)]
    model = tf.keras.Sequential([layers.Input((None,), dtype="int32"), *parts])
    return model, np.array([[1, 2, 3, 0], [4, 5, 0, 0]], np.int32)


def several_inputs() -> tuple[Any, Any]:
    first, second = layers.Input((3,), name="first"), layers.Input((2,), name="second")
    joined = layers.Concatenate()([layers.Dense(4)(first), tf.tanh(second)])
    outputs = {"p": layers.Dense(1)(joined), "q": layers.Dense(2, activation="softmax")(joined)}
    return tf.keras.Model({"first": first, "second": second}, outputs), {
        "first": np.ones((2, 3), np.float32),
        "second": np.ones((2, 2), np.float32),
    }


def attention() -> tuple[Any, Any]:
    inputs = layers.Input((None, 6))
    hidden = layers.LayerNormalization()(layers.MultiHeadAttention(2, 4)(inputs, inputs) + inputs)
    return tf.keras.Model(inputs, layers.Dense(2)(hidden)), np.ones((2, 5, 6), np.float32)


class Subclass(tf.keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = layers.Dense(4), layers.Dense(2)
        self.scale = self.add_weight(shape=(), initializer="ones", name="scale")

    def call(self, x: Any, training: bool = False) -> Any:
        hidden = tf.nn.relu(self.first(x)) * self.scale
        hidden = tf.where(tf.reduce_mean(hidden) > 100, tf.zeros_like(hidden), hidden)
        return self.second(tf.reshape(hidden, [tf.shape(x)[0], -1]))


def subclass() -> tuple[Any, Any]:
    model = Subclass()
    model(np.ones((2, 3), np.float32))
    return model, np.ones((4, 3), np.float32)


@pytest.mark.parametrize("make", [sequential, recurrent, several_inputs, attention, subclass])
def test_an_exported_model_predicts_the_same_for_any_number_of_rows(make: Any, tmp_path: Path) -> None:
    model, inputs = make()
    model.export(tmp_path, verbose=False)
    loaded = tf.saved_model.load(tmp_path)
    for rows in (inputs, tf.nest.map_structure(lambda part: part[:1], inputs)):
        wanted = tf.nest.flatten(model.predict(rows, verbose=0))
        for found, right in zip(tf.nest.flatten(loaded.serve(rows)), wanted, strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)
    assert len(loaded.trainable_variables) == len(model.trainable_variables)
    found = [np.asarray(part) for part in tf.nest.flatten(loaded.serve(inputs))]
    for variable in loaded.trainable_variables:
        variable.assign(variable * 3 + 1)
    changed = [np.asarray(part) for part in tf.nest.flatten(loaded.serve(inputs))]
    assert any(not np.allclose(first, second) for first, second in zip(found, changed, strict=True))


def test_lookup_layers_are_exported_as_tables(tmp_path: Path) -> None:
    words = layers.Input((1,), dtype="string", name="words")
    number = layers.Input((1,), dtype="int64", name="number")
    text = layers.Input((1,), dtype="string", name="text")
    parts = [
        layers.StringLookup(vocabulary=["x", "y"], output_mode="one_hot")(words),
        layers.IntegerLookup(vocabulary=[10, 20, 30], num_oov_indices=2, output_mode="multi_hot")(number),
        layers.TextVectorization(vocabulary=["cat", "the"], output_mode="count")(text),
        layers.Flatten()(layers.Embedding(5, 3)(layers.Hashing(5, salt=[3, 4])(words))),
    ]
    model = tf.keras.Model([words, number, text], layers.Dense(2)(layers.Concatenate()(parts)))
    texts = tf.constant([["The cat!"], ["dog the the"]])
    inputs = [tf.constant([["x"], ["q"]]), tf.constant([[20], [7]], tf.int64), texts]
    model.export(tmp_path, verbose=False)
    np.testing.assert_allclose(tf.saved_model.load(tmp_path).serve(inputs), model(inputs), rtol=1e-5)
    library = read(str(tmp_path))[0].graph_def.library.function
    types = {node.op for function in library for node in function.node_def}
    assert {"LookupTableFindV2", "StringToHashBucketStrong", "StaticRegexReplace"} <= types
    assert "PyFunc" not in types


def test_files_do_not_name_folders_of_this_machine(tmp_path: Path) -> None:
    model, _ = recurrent()
    model.export(tmp_path, verbose=False)
    assert str(Path(keras.__file__).parents[2]).encode() not in (tmp_path / "saved_model.pb").read_bytes()


def test_an_archive_has_chosen_endpoints_and_a_layer_calls_them(tmp_path: Path) -> None:
    model = tf.keras.Sequential([layers.Input((3,)), layers.Dense(2, kernel_initializer="ones")])
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [1.0, 2.0]), 0.0)
    archive = tf.keras.export.ExportArchive()
    of_numbers = archive.track_and_add_endpoint("of_numbers", model, [tf.TensorSpec((None, 3), tf.float32)])

    @tf.function
    def of_words(words: Any) -> Any:
        return {"result": of_numbers(table.lookup(words))}

    archive.add_endpoint("serve", of_words, [tf.TensorSpec((None, 3), tf.string, name="words")])
    archive.add_variable_collection("kernels", [model.weights[0]])
    archive.write_out(tmp_path, verbose=False)
    loaded = tf.saved_model.load(tmp_path)
    assert sorted(loaded.signatures) == ["of_numbers", "serve", "serving_default"]
    np.testing.assert_allclose(loaded.serve(tf.constant([["a", "b", "q"]]))["result"], [[3, 3]])
    assert len(loaded.kernels) == 1
    layer = layers.TFSMLayer(tmp_path, call_endpoint="of_numbers")
    outer = tf.keras.Sequential([layers.Input((3,)), layer])
    np.testing.assert_allclose(outer.predict(np.ones((2, 3), np.float32), verbose=0), [[3, 3], [3, 3]])
    with pytest.raises(ValueError, match="neither an attribute nor a signature"):
        layers.TFSMLayer(tmp_path, call_endpoint="missing")


def test_a_model_or_a_concrete_function_is_the_default_signature(tmp_path: Path) -> None:
    model = tf.keras.Sequential([layers.Input((3,)), layers.Dense(2, kernel_initializer="ones")])
    tf.saved_model.save(model, tmp_path / "model")
    served = tf.saved_model.load(tmp_path / "model").signatures["serving_default"]
    np.testing.assert_allclose(served(inputs=tf.ones([1, 3]))["output_0"], [[3, 3]])
    spec = tf.TensorSpec([None, 3], tf.float32, name="given")
    concrete = tf.function(lambda x: model(x) * 2).get_concrete_function(spec)
    tf.saved_model.save(model, tmp_path / "concrete", concrete)
    served = tf.saved_model.load(tmp_path / "concrete").signatures["serving_default"]
    np.testing.assert_allclose(served(given=tf.ones([1, 3]))["output_0"], [[6, 6]])


def test_signatures_and_formats_that_are_not_possible_are_refused(tmp_path: Path) -> None:
    module = Counting()
    with pytest.raises(ValueError, match="give it an input_signature"):
        tf.saved_model.save(module, tmp_path, signatures=module.sums)
    with pytest.raises(ValueError, match="pass a tf"):
        tf.saved_model.save(module, tmp_path, signatures=lambda x: x)
    with pytest.raises(OSError, match="does not exist"):
        tf.saved_model.load(tmp_path / "nothing")
    with pytest.raises(ValueError, match="not supported"):
        sequential()[0].export(tmp_path, format="onnx")
    with pytest.raises(ValueError, match="has not yet been built"):
        tf.keras.Sequential([layers.Dense(2)]).export(tmp_path)
