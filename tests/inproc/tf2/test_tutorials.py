"""Idioms of TensorFlow 2's tutorials and guides. The values are TensorFlow 2.21's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater.tf1.compat.dialect import dialect_of
from headwater.tf2.namespace import tf

layers = tf.keras.layers


def set_weights(model: Any) -> None:
    """Sets weights that are the same in every program."""
    random = np.random.default_rng(7)
    for weight in model.weights:
        if "seed" not in weight.path:
            weight.assign((random.normal(size=tuple(weight.shape)) * 0.3).astype("float32"))


TEXTS = np.array([["good great film"], ["bad awful film"], ["really great fun"], ["terrible plot"]] * 4, object)
LABELS = np.array([1, 0, 1, 0] * 4)


def vectorization() -> Any:
    made = layers.TextVectorization(max_tokens=30, output_sequence_length=4)
    made.adapt(TEXTS)
    return made


def test_a_sequential_model_learns_from_strings() -> None:
    parts = [layers.Embedding(30, 4, mask_zero=True), layers.Bidirectional(layers.LSTM(3))]
    model = tf.keras.Sequential([vectorization(), *parts, layers.Dense(1, activation="sigmoid")])
    model(tf.constant(["a good film"]))
    set_weights(model)
    model.compile("sgd", "binary_crossentropy", metrics=["accuracy"])
    dataset = tf.data.Dataset.from_tensor_slices((TEXTS[:, 0], LABELS)).batch(4)
    history = model.fit(dataset, epochs=3, verbose=0).history
    np.testing.assert_allclose(history["loss"], [0.698, 0.697, 0.697], atol=1e-3)
    assert model.evaluate(dataset, verbose=0)[1] == history["accuracy"][-1]
    assert model.predict(tf.constant(["good great", "awful"]), verbose=0).shape == (2, 1)


def test_a_functional_model_learns_from_strings_and_numbers() -> None:
    text, number = layers.Input((1,), dtype="string", name="text"), layers.Input((2,), name="number")
    embedded = layers.GlobalAveragePooling1D()(layers.Embedding(30, 4)(vectorization()(text)))
    outputs = layers.Dense(1, activation="sigmoid")(layers.Concatenate()([embedded, number]))
    model = tf.keras.Model({"text": text, "number": number}, outputs)
    set_weights(model)
    model.compile("sgd", "binary_crossentropy")
    inputs = {"text": TEXTS, "number": np.ones((16, 2), np.float32)}
    dataset = tf.data.Dataset.from_tensor_slices((inputs, LABELS)).batch(8)
    before = model(inputs | {"text": tf.constant(TEXTS)})
    np.testing.assert_allclose(model.predict(dataset, verbose=0), before, rtol=1e-5)
    losses = model.fit(dataset, epochs=3, verbose=0, validation_data=dataset).history
    assert losses["loss"][2] < losses["loss"][0]
    assert losses["val_loss"][2] == pytest.approx(model.evaluate(dataset, verbose=0))


def test_a_model_learns_behind_a_model_that_prepares_features() -> None:
    kinds = np.array(["x", "y", "x", "z"])
    features = {"age": np.array([5.0, 15.0, 25.0, 40.0], np.float32), "kind": kinds}
    inputs = {"age": layers.Input((1,), name="age"), "kind": layers.Input((1,), name="kind", dtype="string")}
    scale, look = layers.Normalization(axis=None), layers.StringLookup(output_mode="multi_hot")
    scale.adapt(features["age"])
    look.adapt(kinds)
    prepared = tf.keras.Model(inputs, layers.Concatenate()([scale(inputs["age"]), look(inputs["kind"])]))
    model = tf.keras.Model(inputs, layers.Dense(1, kernel_initializer="ones")(prepared(inputs)))
    model.compile("sgd", "mse")
    dataset = tf.data.Dataset.from_tensor_slices((features, np.array([0.0, 1.0, 2.0, 3.0], np.float32))).batch(2)
    losses = model.fit(dataset, epochs=2, verbose=0).history["loss"]
    np.testing.assert_allclose(losses, [0.274, 0.247], atol=1e-3)
    np.testing.assert_allclose(model.predict(dataset, verbose=0)[:2], [[-0.21], [0.561]], atol=1e-3)


def test_a_whole_pipeline_evaluates_strings() -> None:
    inner = tf.keras.Sequential([layers.Embedding(30, 2), layers.GlobalAveragePooling1D(), layers.Dense(1)])
    whole = tf.keras.Sequential([vectorization(), inner, layers.Activation("sigmoid")])
    whole.compile(loss="binary_crossentropy", metrics=["accuracy"])
    dataset = tf.data.Dataset.from_tensor_slices((TEXTS[:, 0], LABELS)).batch(4)
    assert len(whole.evaluate(dataset, verbose=0)) == 2
    texts = tf.constant(TEXTS[:3, 0])
    np.testing.assert_allclose(whole.predict(texts, verbose=0), whole(texts), rtol=1e-5)


def test_methods_with_signatures_take_named_arguments_and_structures() -> None:
    class Scaling(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.factor = tf.Variable(2.0)

        @tf.function(input_signature=[{"a": tf.TensorSpec([None]), "b": tf.TensorSpec([])}])
        def of_structure(self, parts: Any) -> Any:
            return parts["a"] * self.factor + parts["b"]

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def of_tensor(self, x: Any) -> Any:
            return x * self.factor

    first, second = Scaling(), Scaling()
    second.factor.assign(3.0)
    np.testing.assert_array_equal(first.of_tensor(x=tf.ones([2])), [2, 2])
    np.testing.assert_array_equal(second.of_tensor([1.0]), [3])
    found = first.of_structure({"a": tf.ones([2]), "b": tf.constant(1.0)})
    np.testing.assert_array_equal(found, [3, 3])
    with pytest.raises(TypeError, match="unexpected keyword argument 'y'"):
        first.of_tensor(y=tf.ones([2]))


def test_concrete_functions_take_tensors_by_name() -> None:
    @tf.function
    def scaled(x: Any, factor: int = 2, *, offset: Any) -> Any:
        return x * factor + offset

    concrete = scaled.get_concrete_function(tf.TensorSpec([None]), 3, offset=tf.TensorSpec([]))
    np.testing.assert_array_equal(concrete(x=tf.ones([2]), offset=tf.constant(1.0)), [4, 4])
    assert concrete.structured_input_signature[0][1] == 3


def test_a_function_creates_variables_at_its_first_call() -> None:
    class Counter(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.total: Any = None

        @tf.function
        def __call__(self, x: Any) -> Any:
            if self.total is None:
                self.total = tf.Variable(x)
            return self.total.assign_add(x)

    counter = Counter()
    assert [float(counter(tf.constant(value))) for value in (2.0, 3.0)] == [4, 7]

    @tf.function
    def always(x: Any) -> Any:
        return tf.Variable(x) + x

    always(tf.constant(1.0))
    with pytest.raises(ValueError, match="non-first call"):
        always(tf.constant(1.0))


def test_numbers_are_keys() -> None:
    assert {tf.constant(2).numpy(): "a", tf.Variable(3).numpy(): "b"} == {2: "a", 3: "b"}
    assert isinstance(tf.constant(2.5).numpy(), np.float32)


def test_linspace_and_map_fn() -> None:
    whole = tf.linspace(-2, 2, 5)
    assert whole.dtype == np.float64
    np.testing.assert_array_equal(whole, [-2, -1, 0, 1, 2])
    np.testing.assert_allclose(tf.linspace([0.0, 1.0], [1.0, 5.0], 3), [[0, 1], [0.5, 3], [1, 5]])
    np.testing.assert_allclose(tf.linspace([0.0, 1.0], [1.0, 5.0], 3, axis=-1), [[0, 0.5, 1], [1, 3, 5]])
    rows = tf.ragged.constant([[3, 1], [], [5]])
    assert tf.map_fn(tf.math.square, rows).to_list() == [[9, 1], [], [25]]
    sums = tf.map_fn(tf.reduce_sum, rows, fn_output_signature=tf.int32)
    np.testing.assert_array_equal(sums, [4, 0, 5])
    spec = tf.RaggedTensorSpec([None], tf.int32)
    assert tf.map_fn(tf.range, tf.constant([2, 0, 1]), fn_output_signature=spec).to_list() == [[0, 1], [], [0]]
    np.testing.assert_array_equal(tf.map_fn(lambda x: x > 1, tf.constant([1, 2]), fn_output_signature=tf.bool), [0, 1])
    np.testing.assert_array_equal(tf.range(tf.constant(3), dtype=tf.float32), [0, 1, 2])


def test_stacked_vectors_are_ragged() -> None:
    for rows in ([[1, 2], [3]], [[1, 2], [3, 4]]):
        assert tf.ragged.stack([tf.constant(row) for row in rows]).to_list() == rows
    assert tf.ragged.stack([tf.constant([1, 2]), tf.constant([3, 4])], axis=1).to_list() == [[1, 3], [2, 4]]


def test_rows_of_csv_files_are_tensors(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y,name\n1,2.5,a\n,6.5,c\n")
    defaults = [tf.constant([9.0], tf.float32), tf.float32, tf.string]
    rows = tf.data.experimental.CsvDataset(str(tmp_path / "a.csv"), defaults, header=True)
    assert [[value.numpy() for value in row] for row in rows] == [[1.0, 2.5, b"a"], [9.0, 6.5, b"c"]]
    batches = tf.data.experimental.make_csv_dataset(str(tmp_path / "a.csv"), 1, label_name="y", num_epochs=1)
    features, label = next(iter(batches.take(1)))
    assert features["name"].numpy()[0] in (b"a", b"c")
    assert label.numpy().shape == (1,)


def test_reduce_returns_a_tensor_of_the_type_of_the_state() -> None:
    numbers = tf.data.Dataset.from_tensor_slices([8, 3, 0])
    total = numbers.reduce(0, lambda state, value: state + value)
    assert (total.numpy(), total.dtype) == (11, np.int32)


def test_a_dataset_creator_is_data_of_fit() -> None:
    def make(context: Any) -> Any:
        assert context.num_input_pipelines == 1
        return tf.data.Dataset.from_tensor_slices((np.ones((4, 2), np.float32), np.ones(4))).batch(2)

    model = tf.keras.Sequential([layers.Input((2,)), layers.Dense(1)])
    model.compile("sgd", "mse")
    creator = tf.keras.utils.experimental.DatasetCreator
    assert len(model.fit(creator(make), epochs=2, verbose=0).history["loss"]) == 2
    with pytest.raises(TypeError, match="callable"):
        creator(3)


@pytest.mark.parametrize(
    ("program", "dialect"),
    [
        ("import tensorflow as tf\nfor x in tf.data.Dataset.range(3): print(x.numpy(), tf.io.gfile)", "2"),
        ("import numpy\nimport tensorflow as tf\ntf.train.Saver()", "1"),
        ("import tensorflow as tf\ntf.placeholder(tf.int32)\nprint(other.numpy())", "1"),
    ],
)
def test_values_of_tensors_show_the_version_of_a_program(program: str, dialect: str) -> None:
    assert dialect_of(compile(program, "program.py", "exec")) == dialect


def test_lookups_return_sparse_tensors() -> None:
    words = layers.StringLookup(vocabulary=["a", "b"], output_mode="multi_hot", sparse=True)
    found = words(tf.constant([["a", "b"], ["z", "a"]]))
    assert found.indices.numpy().tolist() == [[0, 1], [0, 2], [1, 0], [1, 1]]
    assert found.values.numpy().tolist() == [1, 1, 1, 1]
    assert (found.dense_shape.numpy().tolist(), found.dtype) == ([2, 3], tf.int64)
    counts = layers.IntegerLookup(vocabulary=[5, 6], output_mode="count", sparse=True)(tf.constant([[5, 5], [7, 6]]))
    assert counts.values.numpy().tolist() == [2, 1, 1]
    assert layers.Hashing(4, output_mode="multi_hot", sparse=True)(tf.constant([["a", "b"]])).dtype == tf.float32
    with pytest.raises(ValueError, match="may only be true"):
        layers.StringLookup(vocabulary=["a"], sparse=True)
    assert layers.StringLookup.from_config(words.get_config()).sparse


def test_crossings_have_the_hashes_of_tensorflow() -> None:
    crossing = layers.HashedCrossing(5)
    np.testing.assert_array_equal(crossing((tf.constant(["a", "b"]), tf.constant([1, 2]))), [0, 2])
    pair = tf.constant([["x"], ["y"]]), tf.constant([["u"], ["v"]])
    np.testing.assert_array_equal(crossing(pair), [[4], [4]])
    three = tf.constant([1, 2]), tf.constant([3, 4]), tf.constant(["é", "z"])
    np.testing.assert_array_equal(layers.HashedCrossing(1000)(three), [308, 652])
    encoded = layers.HashedCrossing(4, output_mode="one_hot")((tf.constant([1, 2]), tf.constant([3, 4])))
    np.testing.assert_array_equal(encoded, [[0, 0, 0, 1], [0, 0, 0, 1]])
    with pytest.raises(ValueError, match="equal shape"):
        crossing((tf.constant([1]), tf.constant([1, 2])))


def test_images_are_resized_without_distortion() -> None:
    image = tf.reshape(tf.range(256.0), [16, 16, 1])
    found = tf.image.resize_with_pad(image, 32, 7).numpy()[..., 0]
    assert found.shape == (32, 7)
    assert np.flatnonzero(found.sum(1)).tolist() == list(range(12, 18))  # 6 rows: TensorFlow rounds 6.9999995 down
    np.testing.assert_array_equal(found[:, 6], 0)
