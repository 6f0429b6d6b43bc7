"""Settings, checks and methods of TensorFlow 2. The expected results are those of TensorFlow 2.21."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater import errors
from headwater.tf2 import at_once
from headwater.tf2.namespace import tf


def test_the_value_of_a_variable_is_a_method() -> None:
    variable = tf.Variable([1.0, 2.0])
    assert variable.value().numpy().tolist() == [1, 2]
    variable.assign_add([1.0, 1.0])
    doubled = tf.function(lambda: variable.value() * 2)
    assert doubled().numpy().tolist() == [4, 6]
    layer = tf.keras.layers.Dense(1)
    layer.build((None, 2))
    assert layer.kernel.value.shape == (2, 1)  # Keras's own variables have an attribute


@pytest.fixture
def checks() -> Iterator[None]:
    tf.debugging.enable_check_numerics()
    yield
    tf.debugging.disable_check_numerics()
    assert np.isinf(tf.math.log(0.0))


@pytest.mark.usefixtures("checks")
def test_results_are_checked_for_numbers_that_are_not_finite() -> None:
    x = tf.constant([1.0, 0.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sqrt(x)
    with pytest.raises(FloatingPointError):
        tape.gradient(y, x)
    for function in (lambda: 1 / x, lambda: tf.math.log(x - 1), lambda: tf.function(lambda: tf.math.log(x - 1))()):
        with pytest.raises(FloatingPointError):
            function()
    assert tf.where([True, False], [1.0, 2.0], [np.inf, 1.0]).numpy().tolist() == [1, 1]


def test_options_of_the_optimizer_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    from headwater.graph.session import default_config

    monkeypatch.setattr(default_config, "_settings", default_config._Settings())
    options = tf.config.optimizer
    assert options.get_jit() == ""
    for given in (True, "autoclustering"):
        options.set_jit(given)
        assert options.get_jit() == "autoclustering"
    options.set_jit(False)
    assert options.get_jit() == ""
    options.set_experimental_options({"constant_folding": False, "layout_optimizer": True})
    options.set_experimental_options({"auto_mixed_precision": False, "min_graph_nodes": 3, "bogus": 1})
    assert options.get_experimental_options() == {
        "layout_optimizer": True,
        "constant_folding": False,
        "disable_model_pruning": False,
        "auto_mixed_precision": False,
        "disable_meta_optimizer": False,
        "min_graph_nodes": 3,
    }


def test_memory_and_details_of_a_cpu() -> None:
    config = tf.config.experimental
    assert (config.get_memory_info("CPU:0"), config.get_memory_usage("CPU:0")) == ({"current": 0, "peak": 0}, 0)
    assert config.get_device_details(tf.config.list_physical_devices("CPU")[0]) == {}
    with pytest.raises(ValueError, match="Failed parsing device name"):
        config.get_memory_info("CPU:99")


def test_deterministic_random_numbers_need_a_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_once._Seeds, "seed", None)
    monkeypatch.setattr(at_once._Seeds, "required", False)
    tf.config.experimental.enable_op_determinism()
    with pytest.raises(RuntimeError, match="Random ops require a seed"):
        tf.random.normal([2])
    assert tf.random.normal([2], seed=1).shape == (2,)
    tf.random.set_seed(1)
    assert tf.random.normal([2]).shape == (2,)


def _webp(frames: list[np.ndarray[Any, Any]]) -> bytes:
    images = pytest.importorskip("PIL.Image")
    first, *others = (images.fromarray(frame) for frame in frames)
    buffer = io.BytesIO()
    first.save(buffer, "WEBP", lossless=True, exact=True, save_all=bool(others), append_images=others)
    return buffer.getvalue()


def test_webp_images() -> None:
    colours = (np.arange(105) * 2 % 256).astype(np.uint8).reshape(5, 7, 3)
    whole = np.concatenate([colours, np.full((5, 7, 1), 128, np.uint8)], -1)
    for pixels in (colours, whole):
        for channels in (0, pixels.shape[-1]):
            found = tf.io.decode_webp(_webp([pixels]), channels)
            assert found.dtype == tf.uint8
            np.testing.assert_array_equal(found, pixels[None])
    np.testing.assert_array_equal(tf.image.decode_webp(_webp([colours, 255 - colours])), [colours, 255 - colours])
    for channels, message in ((1, "only supports 3 or 4"), (4, "does not match input")):
        with pytest.raises(errors.InvalidArgumentError, match=message):
            tf.io.decode_webp(_webp([colours]), channels)
    with pytest.raises(errors.InvalidArgumentError):
        tf.io.decode_webp(b"junk")


def _elements(dataset: Any) -> list[Any]:
    return [each.tolist() for each in dataset.as_numpy_iterator()]


def test_the_number_of_elements_is_asserted() -> None:
    numbers, expect = tf.data.Dataset.range(3), tf.data.experimental.assert_cardinality
    stated = numbers.filter(lambda x: x >= 0).apply(expect(3))
    assert (stated.cardinality().numpy(), len(stated), _elements(stated)) == (3, 3, [0, 1, 2])
    for count, message in ((4, "contain 4 elements but contained only 3"), (2, "contain 2 elements but contained at")):
        with pytest.raises(errors.FailedPreconditionError, match=message):
            _elements(numbers.apply(expect(count)))
    endless = numbers.repeat().apply(expect(tf.data.experimental.INFINITE_CARDINALITY))
    assert (endless.cardinality().numpy(), _elements(endless.take(4))) == (-1, [0, 1, 2, 0])


def test_lists_and_single_elements() -> None:
    made = tf.data.experimental.from_list([(1, "a"), (2, "b")])
    assert list(made.as_numpy_iterator()) == [(1, b"a"), (2, b"b")]
    assert tf.data.experimental.at(tf.data.Dataset.range(5), 3).numpy() == 3
    for index in (5, -1):
        with pytest.raises(errors.OutOfRangeError):
            tf.data.experimental.at(tf.data.Dataset.range(5), index)
    with pytest.raises(ValueError, match="should not be empty"):
        tf.data.experimental.from_list([])


def test_functions_that_write_datasets(tmp_path: Path) -> None:
    numbers = tf.data.Dataset.range(3)
    tf.data.experimental.save(numbers, str(tmp_path / "saved"))
    assert _elements(tf.data.experimental.load(str(tmp_path / "saved"))) == [0, 1, 2]
    kept: Callable[[Any], Any] = tf.data.experimental.snapshot(str(tmp_path / "kept"))
    assert _elements(numbers.apply(kept)) == [0, 1, 2]


def test_all_elements_are_shuffled() -> None:
    numbers = tf.data.Dataset.range(2000)
    for dataset in (numbers, numbers.filter(lambda x: x >= 0), numbers.batch(7)):
        given = _elements(dataset)
        found = _elements(dataset.shuffle(tf.data.UNKNOWN_CARDINALITY, seed=1))
        assert found != given
        assert sorted(found) == given
    shuffled = numbers.shuffle(-2, seed=1, reshuffle_each_iteration=False)
    assert _elements(shuffled) == _elements(shuffled)
    for size in (-1, 0):
        with pytest.raises(errors.InvalidArgumentError):
            numbers.shuffle(size)
    with pytest.raises(errors.InvalidArgumentError, match="without an end"):
        numbers.repeat().shuffle(-2)


def test_a_buffer_may_be_larger_than_the_memory() -> None:
    numbers = tf.data.Dataset.range(2000)
    assert sorted(_elements(numbers.shuffle(1 << 60))) == list(range(2000))
    order = _elements(numbers.shuffle(500, seed=1))
    assert sorted(order) == list(range(2000))
    assert all(value < place + 500 for place, value in enumerate(order))
