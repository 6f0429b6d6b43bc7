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


#: Values and slopes at 0.3, 2.5 and 20.
SPECIAL: Mapping[str, tuple[list[float], list[float]]] = {
    "bessel_j0": (
        [0.9776262465382962, -0.04838377646819804, 0.16702466434058325],
        [-0.148318816273104, -0.497094102464274, -0.0668331241758502],
    ),
    "bessel_j1": (
        [0.148318816273104, 0.497094102464274, 0.0668331241758502],
        [0.48323019229461617, -0.24722141745390763, 0.16368300813179074],
    ),
    "bessel_k0": (
        [1.3724600605442978, 0.062347553200366196, 5.741237815336523e-10],
        [-3.055992033457325, -0.07389081634774716, -5.883057969557039e-10],
    ),
    "bessel_k0e": (
        [1.8526273007720149, 0.7595486903280997, 0.2785448766571822],
        [-2.272530461472455, -0.14062573357977837, -0.006880620283544303],
    ),
    "bessel_k1": (
        [3.055992033457325, 0.07389081634774716, 5.883057969557039e-10],
        [-11.559100172068714, -0.09190387973946502, -6.035390713814375e-10],
    ),
    "bessel_k1e": (
        [4.12515776224447, 0.900174423907878, 0.2854254969407265],
        [-11.47799541267578, -0.21944403598337292, -0.007390654563492027],
    ),
    "bessel_y0": (
        [-0.8072735778045196, 0.498070359615232, 0.0626405968093837],
        [2.2931051383885293, -0.14591813796678577, 0.16551161436252124],
    ),
    "bessel_y1": (
        [-2.2931051383885293, 0.14591813796678577, -0.16551161436252124],
        [6.836410216823912, 0.4397031044285177, 0.07091617752750977],
    ),
    "dawsn": (
        [0.28263166502131193, 0.22308372216743652, 0.025031367926403675],
        [0.8304210009872128, -0.11541861083717753, -0.0012547170561469922],
    ),
    "expint": (
        [-0.30266853926582604, 7.073765894578601, 25615652.664056588],
        [4.499529358586678, 4.872997584281389, 24258259.770489514],
    ),
    "fresnel_cos": (
        [0.2994009760520472, 0.45741300964177706, 0.49998733497234443],
        [0.9900236577165575, -0.9238795325112867, 1.0],
    ),
    "fresnel_sin": (
        [0.014116998006576587, 0.6191817558195929, 0.4840845359259539],
        [0.14090123193758267, -0.38268343236508984, 3.928773447456944e-15],
    ),
    "spence": (
        [0.8893776242860388, -1.1473806603755703, -5.927839724376521],
        [-1.7199611490370514, -0.6108604879161034, -0.15767011966073635],
    ),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions_and_their_slopes(name: str) -> None:
    values, slopes = SPECIAL[name]
    function = getattr(tf.math.special, name)
    x = tf.constant([0.3, 2.5, 20.0], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    np.testing.assert_allclose(y, values, rtol=1e-12)
    np.testing.assert_allclose(tape.gradient(y, x), slopes, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(function(tf.constant([0.3, 2.5, 20.0])), values, rtol=3e-6)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bessel_j0", [0.5118276717359181, 1, np.nan]),
        ("bessel_j1", [-0.5579365079100997, 0, np.nan]),
        ("bessel_k0", [np.inf, np.inf, 0]),
        ("bessel_k1e", [np.inf, np.inf, 0]),
        ("bessel_y0", [-np.inf, -np.inf, np.nan]),
        ("bessel_y1", [-np.inf, -np.inf, np.nan]),
        ("dawsn", [-0.42824907108539856, 0, 0]),
        ("expint", [np.nan, -np.inf, None]),
        ("fresnel_cos", [-0.44526117603982157, 0, 0.5]),
        ("fresnel_sin", [-0.697504960082093, 0, 0.5]),
        ("spence", [np.nan, 1.6449340668482264, None]),
    ],
)
def test_special_functions_of_negative_numbers_zero_and_infinity(name: str, expected: list[float | None]) -> None:
    found = getattr(tf.math.special, name)(tf.constant([-1.5, 0, np.inf], tf.float64)).numpy()
    for value, wanted in zip(found, expected, strict=True):
        if wanted is not None:  # TensorFlow's infinite limits of expint and spence are NaN
            np.testing.assert_allclose(value, wanted, rtol=1e-13, atol=1e-14)


def _in_order(values: Any) -> Any:
    return sorted(np.round(np.ravel(values), 5).tolist(), key=lambda value: (value.real, value.imag))


def test_eigenvalues_of_any_matrix() -> None:
    draw = np.random.RandomState(0)
    matrix, matrices = draw.randn(4, 4).astype(np.float32), draw.randn(2, 3, 3)
    values, vectors = tf.linalg.eig(matrix)
    assert (values.dtype, values.shape, vectors.shape) == (tf.complex64, (4,), (4, 4))
    assert _in_order(values) == pytest.approx([-1.37643, -0.471963, 0.146749, 2.966137], abs=1e-5)
    np.testing.assert_allclose(matrix @ vectors.numpy(), vectors.numpy() * values.numpy(), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=0), 1, rtol=1e-6)
    found = tf.linalg.eigvals(matrices)
    assert (found.dtype, tf.eigvals(matrix).dtype, tf.eig(matrix)[1].shape) == (tf.complex128, tf.complex64, (4, 4))
    assert _in_order(found[1]) == pytest.approx([-1.722306 - 0.314814j, -1.722306 + 0.314814j, 1.478808], abs=1e-5)
    with pytest.raises(ValueError, match="square"):
        tf.linalg.eig([[1.0, 2, 3], [3, 4, 5]])


def test_slopes_of_eigenvalues_and_eigenvectors() -> None:
    draw = np.random.RandomState(0)
    for size in ((4, 4), (2, 3, 3), (3, 3), (3, 3)):
        draw.randn(*size)
    x = tf.constant(draw.randn(3, 3))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        values, vectors = tf.linalg.eig(x)
        squares = tf.reduce_sum(tf.math.real(values) ** 2)
        sizes = tf.reduce_sum(tf.abs(vectors) ** 4)
        cubes = tf.reduce_sum(tf.math.real(tf.linalg.eigvals(x) ** 3))
    for target, expected in (
        (squares, [[-0.919313, 0.003827, 0.020859], [-0.481007, -0.795315, 0.58191], [-0.316755, 0.070302, -0.518869]]),
        (sizes, [[0.285311, -0.182939, -0.159951], [0.442519, -0.038138, -1.038399], [0.146827, 0.057214, -0.247174]]),
        (cubes, [[-0.680712, -1.146502, 1.785594], [1.60429, -1.832991, 2.906105], [-0.971283, -0.586056, 1.081082]]),
    ):
        np.testing.assert_allclose(tape.gradient(target, x), expected, atol=2e-6)


# TensorFlow computes these transforms only on GPUs, so the expected values are those of NumPy.
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize(
    ("lengths", "axes"), [(None, None), ([2, 2], [1, 2]), (None, [-1]), ([5], [0]), ([2, 6, 4], None), ([4, 2], [2, 0])]
)
def test_fourier_transforms_along_any_dimensions(
    norm: str | None, lengths: list[int] | None, axes: list[int] | None
) -> None:
    draw = np.random.RandomState(0)
    real = draw.randn(2, 3, 4).astype(np.float32)
    values = (real + 1j * draw.randn(2, 3, 4)).astype(np.complex64)
    for name, given in (("fft", values), ("ifft", values), ("rfft", real), ("irfft", values)):
        found = getattr(tf.signal, name + "nd")(given, lengths, axes, norm)
        expected = getattr(np.fft, name + "n")(given, lengths, axes if axes else (0, 1, 2), norm)
        assert found.dtype == (tf.float32 if name == "irfft" else tf.complex64)
        np.testing.assert_allclose(found, expected, atol=2e-5)
    assert tf.signal.rfftnd(tf.constant(real, tf.float64)).dtype == tf.complex128


def test_lengths_and_dimensions_of_fourier_transforms_must_agree() -> None:
    with pytest.raises(ValueError, match="fft_length has 1 elements, but axes has 2"):
        tf.signal.fftnd(np.ones((2, 2), np.complex64), [2], [0, 1])
