"""Initial values computed by NumPy, compared with JAX's generator and with the same operations compiled by XLA."""

from __future__ import annotations

from typing import Any

import jax
import jax.extend
import numpy as np
import pytest

from headwater import tf
from headwater.graph.kernels import generator
from headwater.graph.runtime import compile as executables
from headwater.graph.runtime import programs

_jax: Any = jax


def _bits(count: int) -> np.ndarray[Any, Any]:
    """Returns 23-bit numbers: evenly spaced ones, and the extremes."""
    ends = np.arange(2_000, dtype=np.uint32)
    return np.concatenate([ends, np.arange(0, 1 << 23, (1 << 23) // count, dtype=np.uint32), (1 << 23) - 1 - ends])


class TestHostRandom:
    @pytest.mark.parametrize("shape", [(), (1,), (0, 3), (7, 11), (3, 40_000)])
    def test_draws_are_those_of_jax(self, shape: tuple[int, ...]) -> None:
        folded = _jax.random.fold_in(_jax.random.fold_in(_jax.random.key(-3), 0xFFFFFFFF), 12)
        key = generator.fold_in(generator.fold_in(generator.seed_key(-3), 0xFFFFFFFF), 12)
        assert key == tuple(np.asarray(_jax.random.key_data(folded)).tolist())
        for ours, jaxs in [
            (generator.uniform, _jax.random.uniform),
            (generator.normal, _jax.random.normal),
            (generator.truncated_normal, lambda *args: _jax.random.truncated_normal(args[0], -2.0, 2.0, *args[1:])),
        ]:
            wanted = np.asarray(_jax.jit(jaxs, static_argnums=(1, 2))(folded, shape, np.float32))
            drawn = ours(key, shape)
            assert drawn.shape == shape
            np.testing.assert_array_equal(drawn, wanted)

    def test_normal_numbers_of_all_kinds_of_bits(self) -> None:
        bits = _bits(1 << 18)
        found = np.empty(len(bits), np.float32)
        generator._normal(bits.copy(), found)
        low = np.nextafter(np.float32(-1), np.float32(0))
        fractions = (bits | np.uint32(0x3F800000)).view(np.float32) - np.float32(1)

        def wanted(fractions: Any) -> Any:
            return np.float32(np.sqrt(2)) * _jax.lax.erf_inv(_jax.lax.max(low, fractions * np.float32(2) + low))

        np.testing.assert_array_equal(found, np.asarray(_jax.jit(wanted)(fractions)))

    def test_large_draws_by_table_and_threads_are_the_same(self, monkeypatch: pytest.MonkeyPatch) -> None:
        plain = generator.normal((1, 2), (1 << 17,))
        monkeypatch.setattr(generator, "_normals", generator._Tabulated(generator._normal))
        monkeypatch.setattr(generator, "_TABLE_FROM_NUMBERS", 1)
        monkeypatch.setattr(generator, "_LARGE", 1)
        np.testing.assert_array_equal(generator.normal((1, 2), (1 << 17,)), plain)

    def test_counters_pass_32_bits(self) -> None:
        place, ones = np.array([5], np.uint32), np.array([1], np.uint32)
        generator._threefry((3, 4), ones, place, np.empty(1, np.uint32))
        first, second = _jax.extend.random.threefry_2x32(np.array([3, 4], np.uint32), np.array([1, 5], np.uint32))
        assert (int(ones[0]), int(place[0])) == (int(first), int(second))


def _program() -> list[Any]:
    """Builds variables with all kinds of initial values."""
    tf.set_random_seed(5)
    shape = [30, 7]
    initializers: list[Any] = [
        tf.glorot_uniform_initializer(),
        tf.variance_scaling_initializer(),
        tf.random_normal_initializer(mean=0.3, stddev=0.7),
        tf.truncated_normal_initializer(mean=-1.5, stddev=0.1),
        tf.random_uniform_initializer(-0.3, 0.9),
        tf.constant_initializer(4.5),
        tf.zeros_initializer(),
        tf.orthogonal_initializer(),
    ]
    made = [tf.get_variable(f"v{i}", shape, initializer=one) for i, one in enumerate(initializers)]
    made += [
        tf.get_variable(f"r{dtype.name}", shape, dtype, tf.random_normal_initializer(dtype=dtype))
        for dtype in (tf.float16, tf.float64)
    ]
    made.append(tf.get_variable("twice", initializer=made[2].initialized_value() * 2.0))
    made.append(tf.get_variable("given", initializer=np.arange(4, dtype=np.int64)))
    return made


def test_values_are_those_of_compiled_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[list[Any]] = []
    for runs in (executables.MAX_RUNS, 0):
        monkeypatch.setattr(executables, "MAX_RUNS", runs)
        with tf.Graph().as_default(), tf.Session() as session:
            variables = _program()
            session.run(tf.global_variables_initializer())
            found.append(session.run(variables))
    for one, other in zip(*found, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_random_initializers_are_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        for index in range(3):
            tf.get_variable(f"v{index}", [5 + index], initializer=tf.random_normal_initializer())
        init = tf.global_variables_initializer()
        monkeypatch.setattr(programs, "trace", _refuse_to_compile)
        session.run(init)


def _refuse_to_compile(self: object, *args: object) -> None:
    raise AssertionError(f"compiles {self}")


def test_a_wrong_shape_names_the_operation() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        shape = tf.placeholder(tf.int32, [None])
        value = tf.Variable(tf.random_normal(shape), validate_shape=False, name="odd")
        with pytest.raises(tf.errors.InvalidArgumentError, match="RandomStandardNormal operation 'random_normal/"):
            session.run(value.initializer, {shape: [-1, 2]})
        session.run(value.initializer, {shape: [4, 2]})
        assert session.run(value).shape == (4, 2)


def test_a_value_read_before_is_the_old_one() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        noise = tf.get_variable("noise", [3], initializer=tf.zeros_initializer(), use_resource=False)
        session.run(noise.initializer)
        old = tf.identity(noise + 1.0)
        with tf.control_dependencies([old]):
            drawn = tf.assign(noise, tf.random_uniform([3], seed=1))
        before, after = session.run([old, drawn])
        np.testing.assert_array_equal(before, [1, 1, 1])
        np.testing.assert_array_equal(after, session.run(noise))
        assert len({*session.run(drawn).tolist(), *after.tolist()}) == 6


def test_a_fed_array_stays_the_program_s() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(tf.float32, [2])
        variable = tf.get_variable("v", initializer=tf.zeros([2]))
        value = np.ones(2, np.float32)
        session.run(tf.assign(variable, fed * 2.0 + 1.0).op, {fed: value})
        np.testing.assert_array_equal(value, [1, 1])
        np.testing.assert_array_equal(session.run(variable), [3, 3])
        session.run(tf.assign(variable, fed).op, {fed: value})
        value[0] = 9
        np.testing.assert_array_equal(session.run(variable), [1, 1])
