"""`tf.random.Generator`: random numbers with a state in a variable. The numbers differ from TensorFlow's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import jax
import jax.numpy as jnp
import keras

from headwater.dtypes import as_dtype, float32, int64
from headwater.tf2.at_once import adds_operations
from headwater.tf2.tensors import to_numpy
from headwater.tf2.tracing import RunsInPython

if TYPE_CHECKING:
    from headwater.keras.types import Tree

_random = jax.random


class Generator:
    """A generator of random numbers; made by `from_seed` or `from_non_deterministic_state`.

    Args:
      seed: its seed; None for a random one.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._seeds = keras.random.SeedGenerator(seed)

    @classmethod
    def from_seed(cls, seed: object, alg: object = None) -> Self:
        """Returns a generator with this seed. ``alg`` is ignored: JAX computes the numbers."""
        del alg
        return cls(int(to_numpy(seed)))

    @classmethod
    def from_non_deterministic_state(cls, alg: object = None) -> Self:
        """Returns a generator with a random seed."""
        del alg
        return cls()

    @property
    def state(self) -> Tree:
        """The variable with the state."""
        return self._seeds.state

    def reset_from_seed(self, seed: object) -> None:
        """Sets the state that a new generator with this seed has."""
        self.state.assign(keras.random.SeedGenerator(int(to_numpy(seed))).state.value)

    def _key(self) -> jax.Array:
        if adds_operations():
            # A dataset then calls its function for each element, instead of tracing it once.
            raise RunsInPython("tf.random.Generator draws numbers for each element")
        return _random.wrap_key_data(jnp.asarray(self._seeds.next(), jnp.uint32))

    def normal(self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = float32, name: object = None) -> Tree:
        """Returns normally distributed numbers."""
        del name
        kind = as_dtype(dtype).numpy_dtype
        return _random.normal(self._key(), _sizes(shape), kind) * jnp.asarray(stddev, kind) + jnp.asarray(mean, kind)

    def truncated_normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = float32, name: object = None
    ) -> Tree:
        """Returns normally distributed numbers within two standard deviations."""
        del name
        kind = as_dtype(dtype).numpy_dtype
        found = _random.truncated_normal(self._key(), -2.0, 2.0, _sizes(shape), kind)
        return found * jnp.asarray(stddev, kind) + jnp.asarray(mean, kind)

    def uniform(
        self, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = float32, name: object = None
    ) -> Tree:
        """Returns uniformly distributed numbers from ``minval`` to ``maxval``, which is 1 by default.

        Raises:
          ValueError: integers are requested without ``maxval``.
        """
        del name
        kind = as_dtype(dtype)
        if kind.is_integer:
            if maxval is None:
                raise ValueError("uniform of integers needs maxval")
            return _random.randint(self._key(), _sizes(shape), minval, maxval, kind.numpy_dtype)
        return _random.uniform(self._key(), _sizes(shape), kind.numpy_dtype, minval, 1.0 if maxval is None else maxval)

    def make_seeds(self, count: int = 1) -> Tree:
        """Returns seeds for stateless functions: [2, count]."""
        limit = 1 << 31
        return _random.randint(self._key(), (2, int(count)), 0, limit - 1).astype(int64.numpy_dtype)

    def split(self, count: int = 1) -> list[Generator]:
        """Returns new generators with seeds that this one draws."""
        return [Generator(int(seed)) for seed in to_numpy(self.make_seeds(count))[0]]


def _sizes(shape: object) -> tuple[int, ...]:
    return tuple(int(size) for size in to_numpy(shape).reshape(-1))


class _Global:
    generator: Generator | None = None


def get_global_generator() -> Generator:
    """Returns the generator of the process."""
    if _Global.generator is None:
        _Global.generator = Generator()
    return _Global.generator


def set_global_generator(generator: Generator) -> None:
    """Replaces the generator of the process."""
    _Global.generator = generator
