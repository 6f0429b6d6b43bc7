"""``tf.random.experimental``: random number generators with a variable as state, compatible with TensorFlow's.

Uniform numbers and integers are bitwise equal; normal numbers agree up to rounding of logarithms, sines and cosines.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np

from headwater import dtypes
from headwater.dtypes import DType, DTypeLike, as_dtype
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.graph import Graph
from headwater.graph.operation import Operation, Tensor
from headwater.graph.registry import HostArray
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, math
from headwater.tf1.functional.random import shape_tensor
from headwater.tf1.variables.state import update_op
from headwater.tf1.variables.variables import Variable

PHILOX: Final = 1
_SIZE: Final = 3
_MASK: Final = (1 << 64) - 1


def create_rng_state(seed: int | Sequence[int] | HostArray, algorithm: int) -> HostArray:
    """Returns the state of a generator, int64 of shape (3,).

    Args:
      seed: an integer of up to 192 bits, stored with the lowest 64 bits first; or integers, padded with leading zeros.
      algorithm: 1, Philox.

    Raises:
      ValueError: the algorithm is not supported.
    """
    if algorithm != PHILOX:
        raise ValueError(f"Unsupported algorithm id: {algorithm}")
    if isinstance(seed, int):
        parts = [(seed >> (64 * at)) & _MASK for at in range(_SIZE)]
    else:
        given = [int(each) & _MASK for each in np.ravel(np.asarray(seed))]
        parts = ([0] * (_SIZE - len(given)) + given)[:_SIZE]
    return np.array(parts, np.uint64).view(np.int64)


class Generator:
    """Draws random numbers. Running a draw advances the state.

    Args:
      copy_from: another generator whose state is the initial state.
      state: the initial state, three int64.
      alg: 1, Philox; given with ``state``.

    Raises:
      ValueError: the algorithm is not supported, or the state has the wrong shape.
    """

    def __init__(
        self, copy_from: Generator | None = None, state: TensorLike | None = None, alg: int | None = None
    ) -> None:
        if copy_from is not None:
            assert alg is None, "alg must not be given with copy_from"
            assert state is None, "state must not be given with copy_from"
            self._algorithm = copy_from.algorithm
            initial: TensorLike | Tensor = copy_from.state.initialized_value()
        else:
            assert alg is not None, "state requires alg"
            assert state is not None, "alg requires state"
            if alg != PHILOX:
                raise ValueError(f"Unsupported algorithm id: {alg}")
            self._algorithm = alg
            initial = convert_to_tensor(state, dtypes.int64)
            initial.shape.assert_is_compatible_with([_SIZE])
        self._state = Variable(initial, dtype=dtypes.int64, trainable=False)

    @classmethod
    def from_state(cls, state: TensorLike, alg: int) -> Generator:
        """Returns a generator with the initial state ``state``."""
        return cls(state=state, alg=alg)

    @classmethod
    def from_seed(cls, seed: int | Sequence[int], alg: int | None = None) -> Generator:
        """Returns a generator with the initial state of a seed; see `create_rng_state`."""
        alg = PHILOX if alg is None else alg
        return cls(state=create_rng_state(seed, alg), alg=alg)

    @classmethod
    def from_non_deterministic_state(cls, alg: int | None = None) -> Generator:
        """Returns a generator with a random initial state."""
        return cls.from_seed(secrets.randbits(64 * _SIZE), alg)

    @classmethod
    def from_key_counter(cls, key: TensorLike, counter: TensorLike, alg: int) -> Generator:
        """Returns a generator with a key, a scalar, and a counter, two numbers with the low one first."""
        return cls(state=_key_counter(key, counter), alg=alg)

    @property
    def state(self) -> Variable:
        """The state: the counter, and the key."""
        return self._state

    @property
    def algorithm(self) -> int:
        """The number of the algorithm: 1, Philox."""
        return self._algorithm

    @property
    def key(self) -> Tensor:
        """The key of the algorithm."""
        return self._state[2]

    def reset(self, state: TensorLike) -> Operation:
        """Returns an operation that sets the state."""
        return self._state.assign(convert_to_tensor(state, dtypes.int64)).op

    def reset_from_seed(self, seed: int | Sequence[int]) -> Operation:
        """Returns an operation that sets the state to the initial state of a seed."""
        return self.reset(create_rng_state(seed, self._algorithm))

    def reset_from_key_counter(self, key: TensorLike, counter: TensorLike) -> Operation:
        """Returns an operation that sets the key and the counter."""
        return self.reset(_key_counter(key, counter))

    def skip(self, delta: TensorLike) -> Operation:
        """Returns an operation that advances the state by ``delta`` numbers."""
        return self._drawn("PhiloxSkip", ("delta", delta, dtypes.int64)).op

    def normal(
        self,
        shape: TensorLike,
        mean: TensorLike = 0.0,
        stddev: TensorLike = 1.0,
        dtype: DTypeLike = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:
        """Draws normal numbers, float32 or float64."""
        with name_scope(name, "stateful_normal", [shape, mean, stddev]) as scope:
            drawn = self._floats("PhiloxNormal", shape, dtype)
            return math.add(drawn * convert_to_tensor(stddev, drawn.dtype), convert_to_tensor(mean, drawn.dtype), scope)

    def truncated_normal(
        self,
        shape: TensorLike,
        mean: TensorLike = 0.0,
        stddev: TensorLike = 1.0,
        dtype: DTypeLike = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:
        """Draws normal numbers within two standard deviations, float32 or float64."""
        with name_scope(name, "truncated_normal", [shape, mean, stddev]) as scope:
            drawn = self._floats("PhiloxNormal", shape, dtype, truncated=True)
            return math.add(drawn * convert_to_tensor(stddev, drawn.dtype), convert_to_tensor(mean, drawn.dtype), scope)

    def uniform(
        self,
        shape: TensorLike,
        minval: TensorLike = 0,
        maxval: TensorLike | None = None,
        dtype: DTypeLike = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:
        """Draws uniform numbers in [minval, maxval), ``maxval`` by default 1: float32, float64, or integers.

        Raises:
          ValueError: integers are requested without ``maxval``.
        """
        kind = as_dtype(dtype)
        if maxval is None and kind.is_integer:
            raise ValueError(f"Must specify maxval for integer dtype {kind!r}")
        with name_scope(name, "stateful_uniform", [shape, minval, maxval]) as scope:
            low = convert_to_tensor(minval, kind, name="min")
            high = convert_to_tensor(1 if maxval is None else maxval, kind, name="max")
            if kind.is_integer:
                self._must_be(kind, _INTEGERS)
                sizes, bounds = shape_tensor(shape), (("low", low, kind), ("high", high, kind))
                return self._drawn("PhiloxIntegersBetween", ("shape", sizes, None), *bounds, dtype=kind)
            return math.add(self._floats("PhiloxUniform", shape, kind) * (high - low), low, scope)

    def uniform_full_int(self, shape: TensorLike, dtype: DTypeLike = dtypes.uint64, name: str | None = None) -> Tensor:
        """Draws integers over the full range of their type."""
        kind = as_dtype(dtype)
        self._must_be(kind, _INTEGERS)
        with name_scope(name, "stateful_uniform_full_int", [shape]):
            return self._drawn("PhiloxIntegers", ("shape", shape_tensor(shape), None), dtype=kind)

    def make_seeds(self, count: int = 1) -> Tensor:
        """Draws seeds for stateless functions of `tf.random`, int64 of shape (2, count)."""
        return arrays.stack([self.uniform_full_int([count], dtypes.int64), arrays.zeros([count], dtypes.int64)])

    def _floats(self, op_type: str, shape: TensorLike, dtype: DTypeLike, **attrs: object) -> Tensor:
        kind = as_dtype(dtype)
        self._must_be(kind, _FLOATS)
        return self._drawn(op_type, ("shape", shape_tensor(shape), None), dtype=kind, **attrs)

    def _drawn(self, op_type: str, *values: tuple[str, object, DType | None], **attrs: object) -> Tensor:
        return update_op(op_type, [self._state], values, {**attrs, "algorithm": self._algorithm})

    def _must_be(self, kind: DType, kinds: tuple[DType, ...]) -> None:
        if kind not in kinds:
            raise TypeError(f"dtype must be one of {', '.join(each.name for each in kinds)}, not {kind.name}")


_FLOATS: Final = (dtypes.float32, dtypes.float64)
_INTEGERS: Final = (dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64)


def _key_counter(key: TensorLike, counter: TensorLike) -> Tensor:
    whole = convert_to_tensor(counter, dtypes.int64)
    whole.shape.assert_is_compatible_with([_SIZE - 1])
    return arrays.concat([whole, arrays.reshape(convert_to_tensor(key, dtypes.int64), [1])], 0)


_of_graphs: WeakKeyDictionary[Graph, Generator] = WeakKeyDictionary()


def get_global_generator() -> Generator:
    """The generator of the default graph; the first call makes it, with a random state."""
    graph = get_default_graph()
    if graph not in _of_graphs:
        _of_graphs[graph] = Generator.from_non_deterministic_state()
    return _of_graphs[graph]


def set_global_generator(generator: Generator) -> None:
    """Sets the generator of the default graph."""
    _of_graphs[get_default_graph()] = generator
