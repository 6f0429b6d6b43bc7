"""Random numbers that follow from a seed. The expected results are those of TensorFlow 2.21."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from headwater import errors
from headwater import tf as graphs
from headwater.tf2.namespace import tf

SEED = [7, -3]
random = tf.random


@pytest.mark.parametrize(
    ("dtype", "uniform", "normal"),
    [
        (
            "float32",
            [0.4346421957015991, 0.06527590751647949, 0.7476129531860352, 0.14876413345336914],
            [0.51473767, 1.1838536, 0.61355257, 0.45309275],
        ),
        (
            "float64",
            [0.47713778180121613, 0.9809041063278245, 0.7182915943104444, 0.42682149360606525],
            [-0.1456107780640622, 1.2077654819729078, 0.36099545311012377, -0.7290004301586933],
        ),
        ("float16", [0.5888671875, 0.740234375, 0.4453125, 0.67578125], [0.51464844, 1.1835938, 0.61376953, 0.453125]),
        ("bfloat16", [0.7109375, 0.921875, 0.5625, 0.40625], [0.515625, 1.1875, 0.61328125, 0.453125]),
    ],
)
def test_uniform_and_normal_numbers(dtype: str, uniform: list[float], normal: list[float]) -> None:
    found = random.stateless_uniform([3, 5], SEED, dtype=dtype)
    assert found.numpy().astype(float).ravel()[:4].tolist() == uniform
    found = random.stateless_normal([3, 5], SEED, dtype=dtype).numpy().astype(float).ravel()[:4]
    np.testing.assert_allclose(found, normal, rtol=3e-7 if "float16" not in dtype else 1e-3)


def test_bounds_and_large_seeds() -> None:
    expected = [2.457455635070801, 1.5963761806488037, 2.7943649291992188, 2.2401986122131348]
    np.testing.assert_allclose(random.stateless_uniform([4], [2**40, 5], -2, 3), expected, rtol=1e-7)
    expected = [6.088220119476318, 5.414760589599609, 5.147128582000732, 5.092869281768799]
    np.testing.assert_allclose(
        random.stateless_normal([4], tf.constant([1, 2], tf.int64), 5.0, 2.0), expected, rtol=1e-6
    )


@pytest.mark.parametrize(
    ("dtype", "start", "total"),
    [
        (
            "float32",
            [0.51473767, 1.1838536, 0.61355257, 0.45309275, 1.0124135, -0.017789516, 0.0064007393],
            20.204790744464844,
        ),
        (
            "float64",
            [-0.1456107780640622, 1.2077654819729078, -0.28848604561432045, -0.14262208278233368],
            -21.077779533979964,
        ),
    ],
)
def test_truncated_normal_numbers(dtype: str, start: list[float], total: float) -> None:
    found = random.stateless_truncated_normal([301], SEED, dtype=dtype).numpy()
    np.testing.assert_allclose(found[: len(start)], start, rtol=1e-6, atol=3e-7)
    np.testing.assert_allclose(found.astype(float).sum(), total, rtol=1e-6)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("int32", [2125963867, 973626102, 694137288, -2129458508, 969637407]),
        ("int64", [4181692268747924059, -9145954649354817080, 6028316063551946271, -4160119432241818558]),
        ("uint32", [2125963867, 973626102, 694137288, 2165508788, 969637407]),
        ("uint64", [4181692268747924059, 9300789424354734536, 6028316063551946271, 14286624641467733058]),
    ],
)
def test_integers_over_their_full_range(dtype: str, expected: list[int]) -> None:
    found = random.stateless_uniform([5], SEED, minval=None, maxval=None, dtype=dtype)
    assert (found.dtype, found.numpy().tolist()[: len(expected)]) == (dtype, expected)


def test_integers_in_an_interval() -> None:
    for dtype, expected in (("int32", [49, 960, 102, 692, 193]), ("int64", [723, 678, 785, 76, 670])):
        found = random.stateless_uniform([5], SEED, minval=-3, maxval=1000, dtype=dtype)
        assert (found.dtype, found.numpy().tolist()) == (dtype, expected)


def test_seeds_that_follow_from_seeds() -> None:
    assert random.split(SEED).numpy().tolist() == [[2125963867, 973626102], [694137288, -2129458508]]
    wide = random.split(tf.constant(SEED, tf.int64), 3)
    assert wide.numpy()[2].tolist() == [-2371071146355166744, 5831326824053774581]
    assert random.fold_in(SEED, 5).numpy().tolist() == [2125963867, 5]
    assert random.fold_in(SEED, tf.constant(5, tf.int64)).numpy().tolist() == [4181692268747924059, 5]
    assert random.experimental.stateless_split(SEED, 4).numpy()[0].tolist() == [2125963867, 973626102]
    assert random.experimental.stateless_fold_in(SEED, 4).numpy().tolist() == [2125963867, 4]


def test_states_of_generators() -> None:
    assert random.create_rng_state(1, "philox").tolist() == [1, 0, 0]
    assert random.create_rng_state([1, 2, 3], random.Algorithm.PHILOX).tolist() == [1, 2, 3]
    assert random.create_rng_state(2**70 + 1, 1).tolist() == [1, 64, 0]


def test_classes() -> None:
    found = random.stateless_categorical([[0.0, 1.0, 2.0], [3.0, 0.0, -1.0]], 8, SEED)
    assert found.numpy().tolist() == [[2, 2, 2, 2, 1, 2, 2, 2], [0, 0, 2, 0, 0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("alpha", "expected", "total"),
    [
        (
            0.3,
            [0.8983543515205383, 0.8073456883430481, 0.042826008051633835, 8.121377845782263e-07],
            2.0743391327804943,
        ),
        (1.0, [3.958281993865967, 0.3389461934566498, 0.7506440877914429, 0.443429559469223], 10.086858451366425),
        (2.5, [4.475010871887207, 1.940049409866333, 0.13295620679855347, 1.3410834074020386], 13.536885201931),
        ([0.5, 1.0, 7.0], [1.5570355653762817, 0.8938157558441162, 8.082813262939453], 60.74630849022651),
    ],
)
def test_gamma_numbers(alpha: Any, expected: list[float], total: float) -> None:
    found = random.stateless_gamma([6, *np.shape(alpha)], SEED, alpha).numpy()
    np.testing.assert_allclose(found.ravel()[: len(expected)], expected, rtol=2e-6)
    np.testing.assert_allclose(found.astype(float).sum(), total, rtol=1e-6)


def test_gamma_numbers_of_many_parameters() -> None:
    found = random.stateless_gamma([50, 2, 3], SEED, [[0.5], [3.0]], [1.0, 2.0, 3.0]).numpy()
    np.testing.assert_allclose(found[0, 1], [3.7443039417266846, 3.7353875637054443, 0.3873181641101837], rtol=1e-6)
    np.testing.assert_allclose(found.astype(float).sum(), 307.57768322574293, rtol=1e-6)
    wide = random.stateless_gamma([3], SEED, 2.5, dtype=tf.float64).numpy()
    np.testing.assert_allclose(wide, [4.475010815605966, 1.940049407264217, 0.13295621093555057], rtol=1e-14)


@pytest.mark.parametrize(
    ("rate", "start", "total"),
    [
        (0.5, [1, 0, 0, 0, 2, 1, 0], 32),
        (9.9, [14, 9, 3, 7, 11, 9, 12], 547),
        (10.0, [9, 8, 10, 9, 18, 12, 11], 602),
        (50.0, [48, 45, 51, 47, 68, 55, 52], 3019),
        ([0.5, 100.0], [1, 110, 0, 102, 0, 95, 0], 6024),
        (12, [11, 10, 12, 10, 15, 15, 13], 694),
    ],
)
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_poisson_numbers(rate: Any, start: list[int], total: int, dtype: str) -> None:
    found = random.stateless_poisson([60, *np.shape(rate)], SEED, rate, dtype).numpy()
    assert (found.dtype, found.ravel()[:7].tolist(), found.sum()) == (dtype, start, total)


@pytest.mark.parametrize(
    ("counts", "probs", "start", "total"),
    [
        (10.0, 0.3, [5, 1, 2, 2, 2, 3, 2], 121),
        (100.0, 0.3, [29, 27, 30, 28, 41, 33, 31], 1188),
        (100.0, 0.8, [81, 83, 80, 82, 76, 77, 79], 3188),
        (10.0, 0.9, [8, 10, 9, 9, 9, 8, 9], 358),
        (0.0, 0.5, [0] * 7, 0),
        (5.0, 0.0, [0] * 7, 0),
        (5.0, 1.0, [5] * 7, 200),
        ([10.0, 100.0], [0.2, 0.6], [3, 64, 1, 64, 2, 64, 2], 2475),
        ([[10.0], [100.0]], [0.2, 0.6, 0.01], [3, 7, 0, 23, 56, 1, 1], 3548),
    ],
)
def test_binomial_numbers(counts: Any, probs: Any, start: list[int], total: int) -> None:
    sizes = np.broadcast_shapes(np.shape(counts), np.shape(probs))
    found = random.stateless_binomial([40, *sizes], SEED, counts, probs).numpy()
    assert (found.dtype, found.ravel()[:7].tolist(), found.sum()) == ("int32", start, total)


# TensorFlow's numbers depend on the number of its threads, so moments are compared, with those of the distribution.
@pytest.mark.parametrize(
    ("parameters", "mean", "deviation"),
    [
        ((0.0, 1.0, -2.0, 2.0), 0.0, 0.8796),
        ((0.0, 1.0, 3.0, 9.0), 3.2831, 0.2659),
        ((1.0, 2.0, -np.inf, 0.0), -1.2822, 1.0361),
        ((5.0, 1.0, -1.0, 2.0), 1.7169, 0.2659),
        ((0.0, 1.0, -0.5, 0.5), 0.0, 0.2844),
    ],
)
def test_normal_numbers_between_bounds(parameters: tuple[float, ...], mean: float, deviation: float) -> None:
    found = random.stateless_parameterized_truncated_normal([20000], SEED, *parameters).numpy()
    assert found.min() >= parameters[2]
    assert found.max() <= parameters[3]
    np.testing.assert_allclose([found.mean(), found.std()], [mean, deviation], atol=0.025)
    pairs = random.stateless_parameterized_truncated_normal([40, 2], SEED, [0.0, 9.0], 1.0, -1.0, 30.0).numpy()
    assert (pairs[:, 1] > 4).all()


def test_slopes_of_numbers() -> None:
    alpha, scale = tf.constant([0.5, 2.0]), tf.constant([2.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([alpha, scale])
        gammas = random.stateless_gamma([4, 2], SEED, alpha)
        others = random.stateless_normal([2], SEED, scale, scale) + random.stateless_uniform([2], SEED, 0.0, scale)
    np.testing.assert_allclose(tape.gradient(gammas, alpha), [4.824563503265381, 2.8054306507110596], rtol=1e-6)
    np.testing.assert_allclose(tape.gradient(others, scale), [1.949379801750183, 2.2491295337677], rtol=1e-6)


def test_traced_functions_and_graphs_draw_the_same_numbers() -> None:
    draws: Mapping[str, Callable[[Any], Any]] = {
        "uniform": lambda seed: random.stateless_uniform([2], seed),
        "truncated": lambda seed: random.stateless_truncated_normal([9], seed),
        "gamma": lambda seed: random.stateless_gamma([3], seed, 2.0),
        "poisson": lambda seed: random.stateless_poisson([3], seed, 4.0),
        "binomial": lambda seed: random.stateless_binomial([3], seed, 10.0, 0.5),
        "classes": lambda seed: random.stateless_categorical([[0.0, 1.0]], 9, seed),
    }
    seed = tf.constant([1, 2])
    for name, draw in draws.items():
        np.testing.assert_allclose(tf.function(draw)(seed), draw(seed), rtol=1e-6, err_msg=name)
    np.testing.assert_array_equal(draws["uniform"](seed), [0.8440604209899902, 0.19204533100128174])
    assert draws["poisson"](seed).numpy().tolist() == [6, 5, 6]
    with graphs.Graph().as_default(), graphs.Session() as session:
        given = graphs.placeholder(graphs.int32, [2])
        for drawn, expected in (
            (
                graphs.random.stateless_uniform([3], given),
                [0.4346421957015991, 0.06527590751647949, 0.7476129531860352],
            ),
            (graphs.random.stateless_uniform([3], given, -5, 100, graphs.int32), [92, 52, 28]),
            (graphs.random.stateless_uniform([3], given, -5, 100, graphs.int64), [89, 36, 46]),
            (graphs.random.stateless_multinomial([[0.0, 1.0, 2.0]], 5, given), [[2, 2, 2, 2, 1]]),
        ):
            np.testing.assert_array_equal(session.run(drawn, {given: SEED}), expected)


@pytest.mark.parametrize("alg", ["philox", "auto_select", 1, 3, random.Algorithm.PHILOX])
def test_names_of_the_algorithm(alg: object) -> None:
    assert random.stateless_uniform([1], SEED, alg=alg).numpy().tolist() == [0.4346421957015991]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: random.stateless_uniform([2], SEED, alg="threefry"), errors.InvalidArgumentError, "ThreeFry"),
        (lambda: random.stateless_uniform([2], SEED, alg="x"), ValueError, "unsupported value x"),
        (lambda: random.stateless_uniform([2], SEED, dtype=tf.int32), ValueError, "must be both None or not None"),
        (lambda: random.stateless_uniform([2], SEED, None, 5, tf.int32), ValueError, "must be both None or not None"),
        (lambda: random.stateless_uniform([2], SEED, 0, 5, tf.uint32), ValueError, "invalid value"),
        (lambda: random.stateless_uniform([2], SEED, 5, 5, tf.int32), errors.InvalidArgumentError, "minval < maxval"),
        (lambda: random.stateless_uniform([2], [1, 2, 3]), errors.InvalidArgumentError, "seed must have shape"),
        (lambda: random.stateless_uniform([2], 1), errors.InvalidArgumentError, "seed must have shape"),
        (lambda: random.stateless_gamma([5], SEED, [1.0, 2.0]), errors.InvalidArgumentError, "must end with"),
        (lambda: random.stateless_poisson([5], SEED, [1.0, 2.0]), errors.InvalidArgumentError, "must end with"),
        (lambda: random.stateless_binomial([5], SEED, [1.0, 2.0], 0.5), errors.InvalidArgumentError, "must end with"),
        (
            lambda: random.stateless_parameterized_truncated_normal([5], SEED, 0.0, -1.0, -1.0, 1.0),
            errors.InvalidArgumentError,
            "Invalid parameters",
        ),
    ],
)
def test_invalid_arguments(make: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()
