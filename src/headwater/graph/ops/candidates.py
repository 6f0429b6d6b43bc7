"""Random samples of classes, for losses that consider only a few of very many classes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from headwater.dtypes import float32, int32, int64
from headwater.errors import InvalidArgumentError
from headwater.graph.ops.define import host, random
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.graph.resources.host_context import HostContext
from headwater.lazy_jax import jax, jnp, lax

Draw: TypeAlias = "Callable[[jax.Array, int], jax.Array]"
"""A function of a key and a number; it draws that number of classes."""
Probability: TypeAlias = "Callable[[jax.Array], jax.Array]"
"""A function of classes; it returns the probability of each, in float64."""
Drawn: TypeAlias = "tuple[jax.Array, jax.Array, jax.Array]"
"""The drawn classes, then the expected counts of the true classes and of the drawn classes among them."""


def _sampler_spec(inference: Inference) -> Sequence[Spec]:
    attrs, dims = inference.attrs, inference.inputs[0].dims
    if dims is not None and len(dims) != 2:
        raise ValueError(f"Shape must be rank 2 but is rank {len(dims)}")
    count, true = attrs["num_sampled"], attrs["num_true"]
    if dims is not None and dims[1] not in (None, true):
        raise ValueError(f"true_classes must have num_true = {true} columns, not {dims[1]}")
    return [Spec(int64, (count,)), Spec(float32, (None if dims is None else dims[0], true)), Spec(float32, (count,))]


def _sample(
    key: jax.Array,
    true_classes: jax.Array,
    draw: Draw,
    probability: Probability,
    *,
    count: int,
    unique: bool,
    classes: int,
) -> Drawn:
    """Draws ``count`` classes; also returns expected counts.

    Let p be the probability of a class. If classes are drawn independently, the expected count of the class is
    ``count`` p. If they are drawn without repetition, the expected count is 1 - (1 - p)ⁿ, where n is the number of
    draws that were needed for ``count`` different classes.
    """
    if not unique:
        chosen, tries = draw(key, count), None
    else:
        if count > classes:
            raise InvalidArgumentError(
                f"num_sampled = {count} is more than the {classes} different classes that unique=True needs"
            )
        chosen, tries = _different(key, draw, count)

    def expected(of: jax.Array) -> jax.Array:
        p = probability(of)
        times = count * p if tries is None else -jnp.expm1(tries * jnp.log1p(-p))
        return times.astype(np.float32)

    return chosen, expected(jnp.asarray(true_classes)), expected(chosen)


def _different(key: jax.Array, draw: Draw, count: int) -> tuple[jax.Array, jax.Array]:
    """Draws ``count`` different classes, in the order of first occurrence; also returns the number of draws."""

    def more(state: tuple[jax.Array, ...]) -> jax.Array:
        return state[1] < count

    def again(state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        kept, _, tries, turn = state
        drawn = draw(jax.random.fold_in(key, turn), count)
        both = jnp.concatenate([kept, drawn])
        order = jnp.argsort(both, stable=True)
        ordered = both[order]
        first = jnp.concatenate([jnp.ones(1, bool), ordered[1:] != ordered[:-1]])
        # Unfilled places of ``kept`` hold -1.
        new = jnp.zeros(2 * count, bool).at[order].set(first) & (both >= 0)
        rank = jnp.cumsum(new)
        target = jnp.where(new & (rank <= count), rank - 1, count)
        filled = jnp.full(count, -1, np.int64).at[target].set(both, mode="drop")
        needed = jnp.where(rank[-1] >= count, jnp.argmax(rank >= count) + 1 - count, count)
        return filled, jnp.minimum(rank[-1], count), tries + jnp.maximum(needed, 0), turn + 1

    start = (jnp.full(count, -1, np.int64), jnp.asarray(0, np.int64), jnp.asarray(0, np.int64), jnp.asarray(0))
    kept, _, tries, _ = lax.while_loop(more, again, start)
    return kept, tries


@random("UniformCandidateSampler", infer=_sampler_spec, static=(), inputs="true_classes:int64")
def uniform_candidates(
    key: jax.Array,
    true_classes: jax.Array,
    *,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int = 0,
    seed2: int = 0,
) -> Drawn:
    """Samples classes below ``range_max`` with equal probabilities."""
    del num_true, seed, seed2
    return _sample(
        key,
        true_classes,
        lambda key, count: jax.random.randint(key, (count,), 0, range_max, np.int64),
        lambda classes: jnp.full(classes.shape, 1.0 / range_max, np.float64),
        count=num_sampled,
        unique=unique,
        classes=range_max,
    )


@random("LogUniformCandidateSampler", infer=_sampler_spec, static=(), inputs="true_classes:int64")
def log_uniform_candidates(
    key: jax.Array,
    true_classes: jax.Array,
    *,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int = 0,
    seed2: int = 0,
) -> Drawn:
    """Samples class k with probability log((k + 2) / (k + 1)) / log(range_max + 1), which approximates Zipf's law."""
    del num_true, seed, seed2
    whole = np.log1p(range_max)

    def draw(key: jax.Array, count: int) -> jax.Array:
        found = jnp.exp(jax.random.uniform(key, (count,), np.float64) * whole).astype(np.int64) - 1
        return jnp.clip(found, 0, range_max - 1)

    def probability(classes: jax.Array) -> jax.Array:
        return jnp.log((classes + 2.0) / (classes + 1.0)) / whole

    return _sample(key, true_classes, draw, probability, count=num_sampled, unique=unique, classes=range_max)


@random("FixedUnigramCandidateSampler", infer=_sampler_spec, static=(), inputs="true_classes:int64")
def fixed_unigram_candidates(
    key: jax.Array,
    true_classes: jax.Array,
    *,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Sequence[float] = (),
    seed: int = 0,
    seed2: int = 0,
) -> Drawn:
    """Samples classes with probabilities proportional to weights: given directly, or in the last column of a file's
    lines."""
    del num_true, seed, seed2
    weights = [*([0.0] * num_reserved_ids), *(_weights_of_file(vocab_file) if vocab_file else unigrams)]
    if len(weights) != range_max:
        raise InvalidArgumentError(f"range_max is {range_max}, but there are weights of {len(weights)} classes")
    powers = np.asarray(weights, np.float64) ** distortion
    powers[:num_reserved_ids] = 0.0
    mine = np.where(np.arange(range_max) % num_shards == shard, powers, 0.0)
    bounds, shares = np.cumsum(mine) / mine.sum(), powers / mine.sum()

    def draw(key: jax.Array, count: int) -> jax.Array:
        return jnp.searchsorted(jnp.asarray(bounds), jax.random.uniform(key, (count,), np.float64), side="right")

    return _sample(
        key,
        true_classes,
        draw,
        lambda classes: jnp.asarray(shares)[classes],
        count=num_sampled,
        unique=unique,
        classes=int(np.count_nonzero(mine)),
    )


def _weights_of_file(path: str) -> list[float]:
    return [float(line.rpartition(",")[2]) for line in Path(path).read_text().splitlines() if line.strip()]


@random("AllCandidateSampler", infer=_sampler_spec, static=(), inputs="true_classes:int64")
def all_candidates(
    key: jax.Array,
    true_classes: jax.Array,
    *,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int = 0,
    seed2: int = 0,
) -> Drawn:
    """Returns all classes, each once."""
    del key, num_true, unique, seed, seed2
    ones = jnp.ones(true_classes.shape, np.float32)
    return jnp.arange(num_sampled, dtype=np.int64), ones, jnp.ones(num_sampled, np.float32)


def _hits_spec(inference: Inference) -> Sequence[Spec]:
    dims, true = inference.inputs[0].dims, inference.attrs["num_true"]
    if dims is not None and (len(dims) != 2 or dims[1] not in (None, true)):
        raise ValueError(f"true_classes must have the shape [batch, {true}], not {dims}")
    return [Spec(int32, (None,)), Spec(int64, (None,)), Spec(float32, (None,))]


@host("ComputeAccidentalHits", infer=_hits_spec, inputs="true_classes:int64, sampled_candidates:int64")
def compute_accidental_hits(
    true_classes: HostArray, sampled_candidates: HostArray, *, num_true: int, seed: int = 0, seed2: int = 0
) -> Sequence[HostArray]:
    """Returns the pairs of a row and a drawn class that is a true class of the row: the rows, the indices among the
    drawn classes, and the lowest float32 as the weight of each pair."""
    del seed, seed2
    if true_classes.ndim != 2 or true_classes.shape[1] != num_true:
        raise InvalidArgumentError(
            f"true_classes must be a batch_size * num_true matrix, not of shape {true_classes.shape}"
        )
    rows, _, places = np.nonzero(true_classes[:, :, None] == sampled_candidates)
    lowest = np.full(len(rows), np.finfo(np.float32).min, np.float32)
    return rows.astype(np.int32), places.astype(np.int64), lowest


class SeenClasses:
    """Counts how often each class has been a true class, and draws classes with proportional probabilities.

    Args:
      classes: number of classes; each counts as seen once at the beginning.
      seed: the seed of the draws; None for a different one every time.
    """

    def __init__(self, classes: int, seed: int | None) -> None:
        self._lock = threading.Lock()
        self._counts = np.ones(classes, np.float64)
        self._random = np.random.default_rng(seed)

    def draw(self, true_classes: HostArray, count: int, unique: bool) -> tuple[HostArray, HostArray, HostArray]:
        """Samples ``count`` classes by their numbers of occurrences so far and returns them with their expected counts;
        then records the true classes."""
        with self._lock:
            shares = self._counts / self._counts.sum()
            bounds = np.cumsum(shares)
            tries = 0
            chosen: dict[int, None] = {}
            drawn: list[int] = []
            while len(chosen if unique else drawn) < count:
                one = min(int(np.searchsorted(bounds, self._random.random(), side="right")), len(shares) - 1)
                tries += 1
                drawn.append(one)
                chosen[one] = None
            np.add.at(self._counts, true_classes.ravel(), 1.0)
        found = np.array(list(chosen) if unique else drawn, np.int64)

        def expected(of: HostArray) -> HostArray:
            times = -np.expm1(tries * np.log1p(-shares[of])) if unique else count * shares[of]
            return times.astype(np.float32)

        return found, expected(true_classes), expected(found)


@host("LearnedUnigramCandidateSampler", infer=_sampler_spec, inputs="true_classes:int64")
def learned_unigram_candidates(
    context: HostContext,
    true_classes: HostArray,
    *,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int = 0,
    seed2: int = 0,
) -> Sequence[HostArray]:
    """Samples classes with probabilities proportional to their numbers of occurrences as true classes so far."""
    if true_classes.ndim != 2 or true_classes.shape[1] != num_true:
        raise InvalidArgumentError(
            f"true_classes must be a batch_size * num_true matrix, not of shape {true_classes.shape}"
        )
    if unique and num_sampled > range_max:
        raise InvalidArgumentError(
            f"num_sampled = {num_sampled} is more than the {range_max} classes that unique=True needs"
        )
    if true_classes.size and not 0 <= int(true_classes.min()) <= int(true_classes.max()) < range_max:
        raise InvalidArgumentError(f"true_classes must be from 0 to {range_max - 1}")
    chosen = None if not seed and not seed2 else (seed & 0xFFFFFFFF) << 32 | seed2 & 0xFFFFFFFF
    seen = context.resource("", "", SeenClasses, lambda: SeenClasses(range_max, chosen))
    return seen.draw(true_classes, num_sampled, unique)
