"""Attention mechanisms: weights over the steps of a memory, such as an encoder's outputs, for each query.

With the query q [batch, depth] and the keys k [batch, time, units], which a layer without bias computes from the
memory:

- Luong et al. (2015): score = g q·k, g = 1 without ``scale``;
- Bahdanau et al. (2015): score = v·tanh(W q + k), and g v/‖v‖·tanh(W q + k + b) with ``normalize``;
- monotonic (Raffel et al., 2017): the same scores as logits of stopping at each step, see `monotonic_attention`.
"""

from __future__ import annotations

import math as python_math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater import dtypes
from headwater.dtypes import as_dtype
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.shapes import dimension_value
from headwater.tf1.functional import arrays, checks, indexing, linalg, math, nest, nn, random, reductions
from headwater.tf1.functional.clip import clip_by_value
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.functional.scans import scan_over
from headwater.tf1.layers.base import Layer
from headwater.tf1.layers.core import Dense
from headwater.tf1.rnn.cells import zeros_of
from headwater.tf1.variables.initializers import ONES, ZEROS, Constant
from headwater.tf1.variables.variable_scope import get_variable, variable_scope

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import Structure, TensorLike


class AttentionMechanism:
    """Base of all mechanisms: ``alignments, next_state = mechanism(query, state)``."""

    @property
    def alignments_size(self) -> Any:
        """The number of steps of the memory."""
        raise NotImplementedError

    @property
    def state_size(self) -> Any:
        """The size of the state, without the batch."""
        raise NotImplementedError


class _BaseAttentionMechanism(AttentionMechanism):
    """A mechanism with keys and values computed from a memory.

    Args:
      query_layer: applied to queries; None for the query itself.
      memory: [batch, time, …], or a nested structure of such tensors.
      probability_fn: ``f(score, state)`` returns alignments.
      memory_sequence_length: number of steps of each example, all positive; later ones are masked.
      memory_layer: computes the keys from the memory.
      check_inner_dims_defined: require known sizes after [batch, time].
      score_mask_value: the score of masked steps; -∞ if None.
      custom_key_value_fn: ``f(keys, values)`` returns keys and values to use instead.

    Raises:
      TypeError: a layer is not a `Layer`, or ``probability_fn`` is not callable.
      ValueError: sizes after [batch, time] are not known.
    """

    def __init__(
        self,
        query_layer: Layer | None,
        memory: Structure,
        probability_fn: Callable[..., Any],
        memory_sequence_length: TensorLike | None = None,
        memory_layer: Layer | None = None,
        check_inner_dims_defined: bool = True,
        score_mask_value: Any = None,
        custom_key_value_fn: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> None:
        for word, layer in (("query_layer", query_layer), ("memory_layer", memory_layer)):
            if layer is not None and not isinstance(layer, Layer):  # pyright: ignore[reportUnnecessaryIsInstance]  user's
                raise TypeError(f"{word} is not a Layer: {type(layer).__name__}")
        if not callable(probability_fn):
            raise TypeError(f"probability_fn must be callable, saw type: {type(probability_fn).__name__}")
        self.query_layer: Layer | None = query_layer
        self.memory_layer: Layer | None = memory_layer
        self._own_probability_fn = probability_fn
        self._mask: Tensor | None = None
        with name_scope(name, "BaseAttentionMechanismInit", nest.flatten(memory)):
            tensors = nest.map_structure(convert_to_tensor, memory)
            first: Tensor = nest.flatten(tensors)[0]
            if check_inner_dims_defined:
                for tensor in nest.flatten(tensors):
                    if not tensor.shape[2:].is_fully_defined():
                        raise ValueError(
                            f"Expected memory {tensor.name} to have fully defined inner dims, but saw shape: "
                            f"{tensor.shape}"
                        )
            self.dtype: Any = first.dtype.base_dtype.name if memory_layer is None else memory_layer.dtype
            self.values: Any = tensors
            if memory_sequence_length is not None:
                self._mask = _mask(memory_sequence_length, first)
                self.values = nest.map_structure(self._masked, tensors)
            self.keys: Any = self.values if memory_layer is None else memory_layer(self.values)
            if custom_key_value_fn is not None:
                self.keys, self.values = custom_key_value_fn(self.keys, self.values)
            self.batch_size: Any = _size(self.keys, 0)
            self._alignments_size = _size(self.keys, 1)
        lowest = -np.inf if score_mask_value is None else score_mask_value
        self._score_mask_value = lowest

    @property
    def alignments_size(self) -> Any:
        return self._alignments_size

    @property
    def state_size(self) -> Any:
        return self._alignments_size

    def initial_alignments(self, batch_size: TensorLike, dtype: DTypeLike) -> Any:
        """Zeros [batch, time]."""
        return zeros_over(self._alignments_size, batch_size, dtype)

    def initial_state(self, batch_size: TensorLike, dtype: DTypeLike) -> Any:
        """The `initial_alignments`."""
        return self.initial_alignments(batch_size, dtype)

    def _probability_fn(self, score: Tensor, state: Structure) -> Any:
        """The alignments for the scores [batch, time] of a query, without the masked steps."""
        if self._mask is not None:
            lowest = convert_to_tensor(self._score_mask_value, score.dtype.base_dtype)
            score = indexing.where(self._mask, score, lowest * arrays.ones_like(score))
        return self._own_probability_fn(score, state)

    def _masked(self, tensor: Tensor) -> Tensor:
        assert self._mask is not None
        rank = len(tensor.dims or ())
        mask = math.cast(self._mask, tensor.dtype.base_dtype)
        for _ in range(rank - 2):
            mask = arrays.expand_dims(mask, -1)
        return tensor * mask


def _mask(lengths: TensorLike, memory: Tensor) -> Tensor:
    lengths = convert_to_tensor(lengths, name="memory_sequence_length")
    message = "All values in memory_sequence_length must be greater than zero."
    with control_dependencies([checks.assert_positive(lengths, message=message)]):
        return indexing.sequence_mask(lengths, maxlen=arrays.shape(memory)[1])


def _size(tensor: Tensor, axis: int) -> Any:
    known = None if tensor.dims is None else tensor.dims[axis]
    return arrays.shape(tensor)[axis] if known is None else known


def zeros_over(size: Any, batch_size: TensorLike, dtype: DTypeLike) -> Any:
    """Zeros of shape [batch, size]; both sizes may be computed by the graph."""
    if isinstance(size, Tensor):
        return arrays.zeros(arrays.stack([batch_size, size]), as_dtype(dtype))
    return zeros_of(size, batch_size, dtype)


# Scores -----------------------------------------------------------------------------------------------------------


def _luong_score(query: Tensor, keys: Tensor, scale: Any) -> Tensor:
    """Products of the query [batch, units] with the keys [batch, time, units].

    Raises:
      ValueError: the numbers of units differ or are not known.
    """
    depth, units = dimension_value(query.shape[-1]), dimension_value(keys.shape[-1])
    if depth is None or depth != units:
        raise ValueError(
            "Incompatible or unknown inner dimensions between query and keys. "
            f"Query ({query.name}) has units: {depth}. Keys ({keys.name}) have units: {units}. "
            "Set num_units to the query's depth"
        )
    score = arrays.squeeze(linalg.matmul(arrays.expand_dims(query, 1), keys, transpose_b=True), [1])
    return score if scale is None else scale * score


def _bahdanau_score(
    processed_query: Tensor, keys: Tensor, attention_v: Any, attention_g: Any = None, attention_b: Any = None
) -> Tensor:
    """Sums of v·tanh(query + key) for the keys [batch, time, units]; with g and b, of the normalized v."""
    total = keys + arrays.expand_dims(processed_query, 1)
    if attention_g is not None and attention_b is not None:
        norm = math.rsqrt(reductions.reduce_sum(math.square(attention_v)))
        return reductions.reduce_sum(attention_g * attention_v * norm * math.tanh(total + attention_b), [2])
    return reductions.reduce_sum(attention_v * math.tanh(total), [2])


class _Scoring(_BaseAttentionMechanism):
    """A mechanism that creates its variables at its first call, in its own scope."""

    _scope: str
    _num_units: int
    _score_bias_init: Any = None

    def __call__(self, query: Tensor, state: Structure) -> tuple[Any, Any]:
        """Returns the alignments [batch, time] for a query [batch, depth], and the next state."""
        with variable_scope(None, self._scope, [query]):
            score = self._score(query)
            if self._score_bias_init is not None:
                score = score + get_variable(
                    "attention_score_bias", shape=[], dtype=query.dtype, initializer=Constant(self._score_bias_init)
                )
        alignments = self._probability_fn(score, state)
        return alignments, alignments

    def _score(self, query: Tensor) -> Tensor:
        raise NotImplementedError


class _Luong(_Scoring):
    _scale: bool

    def _score(self, query: Tensor) -> Tensor:
        scale = get_variable("attention_g", shape=(), dtype=query.dtype, initializer=ONES) if self._scale else None
        return _luong_score(query, self.keys, scale)


class _Bahdanau(_Scoring):
    _normalize: bool

    def _score(self, query: Tensor) -> Tensor:
        processed = query if self.query_layer is None else self.query_layer(query)
        units, dtype = self._num_units, query.dtype
        v = get_variable("attention_v", [units], dtype=dtype)
        if not self._normalize:
            return _bahdanau_score(processed, self.keys, v)
        g = get_variable(
            "attention_g", shape=(), dtype=dtype, initializer=Constant(python_math.sqrt(1.0 / self._num_units))
        )
        b = get_variable("attention_b", [units], dtype=dtype, initializer=ZEROS)
        return _bahdanau_score(processed, self.keys, v, g, b)


def _layer(units: int, name: str, dtype: DTypeLike | None) -> Dense:
    return Dense(units, name=name, use_bias=False, dtype=dtypes.float32 if dtype is None else dtype)


def _stateless(probability_fn: Callable[[Tensor], Tensor] | None) -> Callable[[Tensor, object], Tensor]:
    own = probability_fn or nn.softmax
    return lambda score, _: own(score)


class LuongAttention(_Luong):
    """Multiplicative attention (Luong et al., 2015).

    Args:
      num_units: the depth of the keys and of queries.
      scale: learn a factor of the scores.
      probability_fn: ``f(score)``; the softmax if None.
      dtype: the dtype of the layer of keys.
      memory, memory_sequence_length, score_mask_value, custom_key_value_fn, name: see `_BaseAttentionMechanism`.
    """

    _scope = "luong_attention"

    def __init__(
        self,
        num_units: int,
        memory: Structure,
        memory_sequence_length: TensorLike | None = None,
        scale: bool = False,
        probability_fn: Callable[[Tensor], Tensor] | None = None,
        score_mask_value: float | None = None,
        dtype: DTypeLike | None = None,
        custom_key_value_fn: Callable[..., Any] | None = None,
        name: str = "LuongAttention",
    ) -> None:
        super().__init__(
            None,
            memory,
            _stateless(probability_fn),
            memory_sequence_length,
            _layer(num_units, "memory_layer", dtype),
            score_mask_value=score_mask_value,
            custom_key_value_fn=custom_key_value_fn,
            name=name,
        )
        self._num_units, self._scale, self._name = num_units, scale, name


class BahdanauAttention(_Bahdanau):
    """Additive attention (Bahdanau et al., 2015).

    Args:
      num_units: the depth of the keys and of processed queries.
      normalize: normalize v (Salimans and Kingma, 2016), and add a bias.
      probability_fn, dtype, memory, memory_sequence_length, score_mask_value, custom_key_value_fn, name: see
        `LuongAttention`.
    """

    _scope = "bahdanau_attention"

    def __init__(
        self,
        num_units: int,
        memory: Structure,
        memory_sequence_length: TensorLike | None = None,
        normalize: bool = False,
        probability_fn: Callable[[Tensor], Tensor] | None = None,
        score_mask_value: float | None = None,
        dtype: DTypeLike | None = None,
        custom_key_value_fn: Callable[..., Any] | None = None,
        name: str = "BahdanauAttention",
    ) -> None:
        super().__init__(
            _layer(num_units, "query_layer", dtype),
            memory,
            _stateless(probability_fn),
            memory_sequence_length,
            _layer(num_units, "memory_layer", dtype),
            score_mask_value=score_mask_value,
            custom_key_value_fn=custom_key_value_fn,
            name=name,
        )
        self._num_units, self._normalize, self._name = num_units, normalize, name


# Monotonic attention ----------------------------------------------------------------------------------------------


class _Monotonic(_Scoring):
    """A mechanism whose initial alignment is the first step of the memory."""

    def initial_alignments(self, batch_size: TensorLike, dtype: DTypeLike) -> Any:
        """Returns 1 for the first step and 0 elsewhere."""
        first = arrays.zeros(arrays.expand_dims(batch_size, 0), dtypes.int32)
        return indexing.one_hot(first, self._alignments_size, dtype=as_dtype(dtype))


def _monotonic_probability_fn(noise: float, mode: str, seed: int | None) -> Callable[[Tensor, Tensor], Tensor]:
    def alignments(score: Tensor, previous: Tensor) -> Tensor:
        if noise > 0:
            score = score + noise * random.random_normal(arrays.shape(score), dtype=score.dtype, seed=seed)
        stops = math.cast(score > 0, score.dtype) if mode == "hard" else math.sigmoid(score)
        return monotonic_attention(stops, previous, mode)

    return alignments


class BahdanauMonotonicAttention(_Monotonic, _Bahdanau):
    """Monotonic attention (Raffel et al., 2017) with Bahdanau's scores.

    Args:
      sigmoid_noise: standard deviation of noise that is added to the scores.
      sigmoid_noise_seed: the seed of the noise.
      score_bias_init: the initial value of the learned bias of the scores.
      mode: see `monotonic_attention`; ``hard`` stops where the score is positive.
      num_units, normalize, memory, memory_sequence_length, score_mask_value, dtype, name: see `BahdanauAttention`.
    """

    _scope = "bahdanau_monotonic_attention"

    def __init__(
        self,
        num_units: int,
        memory: Structure,
        memory_sequence_length: TensorLike | None = None,
        normalize: bool = False,
        score_mask_value: float | None = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: DTypeLike | None = None,
        name: str = "BahdanauMonotonicAttention",
    ) -> None:
        super().__init__(
            _layer(num_units, "query_layer", dtype),
            memory,
            _monotonic_probability_fn(sigmoid_noise, mode, sigmoid_noise_seed),
            memory_sequence_length,
            _layer(num_units, "memory_layer", dtype),
            score_mask_value=score_mask_value,
            name=name,
        )
        self._num_units, self._normalize, self._name = num_units, normalize, name
        self._score_bias_init = score_bias_init


class LuongMonotonicAttention(_Monotonic, _Luong):
    """Monotonic attention (Raffel et al., 2017) with Luong's scores; arguments as for `BahdanauMonotonicAttention`."""

    _scope = "luong_monotonic_attention"

    def __init__(
        self,
        num_units: int,
        memory: Structure,
        memory_sequence_length: TensorLike | None = None,
        scale: bool = False,
        score_mask_value: float | None = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: DTypeLike | None = None,
        name: str = "LuongMonotonicAttention",
    ) -> None:
        super().__init__(
            None,
            memory,
            _monotonic_probability_fn(sigmoid_noise, mode, sigmoid_noise_seed),
            memory_sequence_length,
            _layer(num_units, "memory_layer", dtype),
            score_mask_value=score_mask_value,
            name=name,
        )
        self._num_units, self._scale, self._name = num_units, scale, name
        self._score_bias_init = score_bias_init


def safe_cumprod(x: TensorLike, *args: Any, **kwargs: Any) -> Tensor:
    """Cumulative product of numbers in [0, 1], as the exponential of a sum of logarithms.

    Args:
      x: numbers, clipped to the smallest normal number of their type.
      args, kwargs: see `tf.cumsum`.
    """
    with name_scope(None, "SafeCumprod", [x]):
        x = convert_to_tensor(x, name="x")
        tiny = float(np.finfo(x.dtype.base_dtype.numpy_dtype).tiny)
        return math.exp(reductions.cumsum(math.log(clip_by_value(x, tiny, 1)), *args, **kwargs))


def monotonic_attention(p_choose_i: TensorLike, previous_attention: TensorLike, mode: str) -> Tensor:
    """The distribution over the steps of the memory at which a monotonic scan stops (Raffel et al., 2017).

    Args:
      p_choose_i: the probability of stopping at each step, [batch, time].
      previous_attention: the distribution for the previous output, [batch, time].
      mode: ``recursive``, exact, step by step; ``parallel``, with cumulative sums and products; ``hard``, for
        probabilities that are 0 or 1.

    Raises:
      ValueError: ``mode`` is unknown.
    """
    p = convert_to_tensor(p_choose_i, name="p_choose_i")
    previous = convert_to_tensor(previous_attention, name="previous_attention")
    if mode == "recursive":
        return p * _recursive(p, previous)
    if mode == "parallel":
        passed = safe_cumprod(1 - p, axis=1, exclusive=True)
        return p * passed * reductions.cumsum(previous / clip_by_value(passed, 1e-10, 1.0), axis=1)
    if mode == "hard":
        p = p * reductions.cumsum(previous, axis=1)
        return p * reductions.cumprod(1 - p, axis=1, exclusive=True)
    raise ValueError("mode must be 'recursive', 'parallel', or 'hard'.")


def _recursive(p: Tensor, previous: Tensor) -> Tensor:
    """q with q_j = (1 - p_{j-1}) q_{j-1} + previous_j."""
    shifted = arrays.concat([arrays.ones_like(p[:, :1]), 1 - p[:, :-1]], 1)

    def step(states: Any, slices: Any) -> Any:
        reached = slices[0] * states[0] + slices[1]
        return [reached], [reached]

    start = arrays.zeros_like(p[:, 0])
    _, (stacked,) = scan_over(step, [start], [arrays.transpose(shifted), arrays.transpose(previous)])
    return arrays.transpose(stacked)


def hardmax(logits: TensorLike, name: str | None = None) -> Tensor:
    """Returns 1 for the largest element of each row and 0 elsewhere; a ``probability_fn``."""
    with name_scope(name, "Hardmax", [logits]):
        logits = convert_to_tensor(logits, name="logits")
        depth = dimension_value(logits.shape[-1])
        depth = arrays.shape(logits)[-1] if depth is None else depth
        return indexing.one_hot(reductions.argmax(logits, -1), depth, dtype=logits.dtype.base_dtype)
