"""Functions that TensorFlow 1.15 does not have. The expected results are those of TensorFlow 2.21."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater import errors
from headwater.tf2.namespace import tf

MATRIX = [[4.0, 3.0, 1.0], [6.0, 3.0, 2.0], [1.0, 5.0, 9.0]]


def test_systems_of_equations_by_a_decomposition() -> None:
    lu, p = tf.linalg.lu(tf.constant([MATRIX, np.eye(3)[::-1]], tf.float32))
    np.testing.assert_allclose(tf.linalg.lu_reconstruct(lu, p)[0], MATRIX, rtol=1e-6)
    np.testing.assert_allclose(tf.linalg.lu_matrix_inverse(lu, p)[0], np.linalg.inv(MATRIX), rtol=1e-5)
    solved = tf.linalg.lu_solve(lu, p, tf.constant([[[1.0], [2.0], [3.0]]] * 2))
    np.testing.assert_allclose(solved[..., 0], [[0.29508203, -0.19672134, 0.40983608], [3, 2, 1]], rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("kaiser_window", {"window_length": 5}, [5.2773448e-05, 0.21567266, 1, 0.21567266, 5.2773448e-05]),
        ("kaiser_window", {"window_length": 1}, [1]),
        (
            "kaiser_bessel_derived_window",
            {"window_length": 6, "beta": 4.0},
            [0.22047876, 0.70710677, 0.97539175, 0.97539175, 0.70710677, 0.22047876],
        ),
        (
            "vorbis_window",
            {"window_length": 6},
            [0.10502934, 0.70710677, 0.99446911, 0.99446911, 0.70710677, 0.10502925],
        ),
    ],
)
def test_windows(name: str, arguments: Mapping[str, Any], expected: list[float]) -> None:
    np.testing.assert_allclose(getattr(tf.signal, name)(**arguments), expected, rtol=2e-6)


def test_elements_are_replaced_by_extremes() -> None:
    tensor, places = tf.constant([1, 2, 3, 4]), [[0], [2], [2]]
    assert tf.tensor_scatter_nd_max(tensor, places, [5, 1, 7]).numpy().tolist() == [5, 2, 7, 4]
    assert tf.tensor_scatter_nd_min(tensor, places, [5, 1, 7]).numpy().tolist() == [1, 2, 1, 4]
    with pytest.raises(errors.InvalidArgumentError):
        tf.tensor_scatter_nd_max(tensor, [[9]], [5])


def test_rows_are_crossed() -> None:
    ragged = tf.ragged.constant
    found = tf.ragged.cross(
        [ragged([[1], [2, 3]]), tf.constant([["x"], ["y"]]), tf.sparse.from_dense([[5, 0], [6, 7]])]
    )
    assert found.to_list() == [[b"1_X_x_X_5"], [b"2_X_y_X_6", b"2_X_y_X_7", b"3_X_y_X_6", b"3_X_y_X_7"]]
    texts = [ragged([["a"], ["b", "c"]]), ragged([["d"], ["e"]])]
    assert tf.ragged.cross_hashed(texts, num_buckets=100).to_list() == [[82], [61, 41]]
    numbers = tf.ragged.cross_hashed([ragged([[1], [2, 3]]), tf.constant([["x"], ["y"]])], hash_key=77)
    assert numbers.to_list() == [[6026945892435445044], [4662658448098729450, 22916824766786065]]
    assert tf.ragged.cross([]).to_list() == []


def _crossed(*parts: Any) -> Callable[[], Any]:
    return lambda: tf.ragged.cross(list(parts))


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (_crossed([["a"], ["b"]], [["d"]]), errors.InvalidArgumentError),
        (lambda: tf.sparse.cross([tf.constant([["a"], ["b"]]), tf.constant([["d"]])]), errors.InvalidArgumentError),
        (_crossed([[1.0]]), ValueError),
        (_crossed([[True]]), ValueError),
        (_crossed([[["a"]]]), ValueError),
        (lambda: tf.ragged.cross(tf.constant([["a"]])), TypeError),
    ],
)
def test_other_inputs_of_crossings_are_refused(make: Callable[[], object], error: type[Exception]) -> None:
    with pytest.raises(error):
        make()


def test_specs_of_values() -> None:
    spec = tf.type_spec_from_value
    assert spec(tf.constant([1, 2])) == tf.TensorSpec([2], tf.int32)
    assert spec(np.array([1.5])) == tf.TensorSpec([1], tf.float64)
    assert spec("a") == tf.TensorSpec([], tf.string)
    ragged = spec(tf.ragged.constant([[1], [2, 3]]))
    assert (ragged.shape.as_list(), ragged.dtype, ragged.ragged_rank) == ([2, None], tf.int32, 1)
    with pytest.raises(TypeError, match="Could not build a TypeSpec"):
        spec(object())


def test_tensors_of_traced_functions_are_symbolic() -> None:
    found: list[bool] = []

    @tf.function
    def function(x: Any) -> Any:
        found.append(tf.is_symbolic_tensor(x))
        return x

    function(tf.constant(1))
    assert (found, tf.is_symbolic_tensor(tf.constant(1)), tf.is_symbolic_tensor(tf.Variable(1))) == (
        [True],
        False,
        False,
    )


def test_the_current_name_scope() -> None:
    with tf.name_scope("a"), tf.name_scope("b"):
        inner = tf.get_current_name_scope()
    assert (inner, tf.get_current_name_scope(), tf.io.gfile.join("a", "b/", "c")) == ("a/b", "", "a/b/c")


def test_options_without_effect_are_accepted_and_others_refused(tmp_path: Path) -> None:
    module = tf.Module()
    module.v = tf.Variable(3.0)
    folder = str(tmp_path / "model")
    tf.saved_model.save(module, folder, options=tf.saved_model.SaveOptions(experimental_io_device="/job:localhost"))
    loaded = tf.saved_model.load(folder, options=tf.saved_model.LoadOptions(experimental_io_device="/job:localhost"))
    assert float(loaded.v) == 3
    options = tf.train.CheckpointOptions(experimental_io_device="/job:localhost")
    path = tf.train.Checkpoint(module=module).save(str(tmp_path / "checkpoint"), options=options)
    module.v.assign(5.0)
    tf.train.Checkpoint(module=module).restore(path, options=options)
    assert float(module.v) == 3
    with pytest.raises(NotImplementedError, match="allow_partial_checkpoint"):
        tf.saved_model.LoadOptions(allow_partial_checkpoint=True)
