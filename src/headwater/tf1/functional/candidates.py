"""Candidate samplers: draw classes at random, for losses over a few of very many classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional.apply import apply
from headwater.tf1.functional.random import seed_attrs


class Candidates(NamedTuple):
    """Drawn classes, and the expected counts of the true classes [batch, num_true] and of the drawn ones."""

    sampled_candidates: Tensor
    true_expected_count: Tensor
    sampled_expected_count: Tensor


class AccidentalHits(NamedTuple):
    """Drawn classes that are true ones: their rows, their indices among the drawn, and weights (lowest float32)."""

    indices: Tensor
    ids: Tensor
    weights: Tensor


def _drawn(
    kind: str, true_classes: TensorLike, seed: int | None, name: str | None, attrs: Mapping[str, object]
) -> Candidates:
    op = apply(f"{kind}CandidateSampler", true_classes, name=name, **attrs, **seed_attrs(seed))
    return Candidates(*op.outputs)


def uniform_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Draws classes below ``range_max`` with equal probability.

    Args:
      true_classes: int64 [batch, num_true].
      unique: draw no class twice; at most ``range_max`` can be drawn then.
    """
    attrs = {"num_true": num_true, "num_sampled": num_sampled, "unique": unique, "range_max": range_max}
    return _drawn("Uniform", true_classes, seed, name, attrs)


def log_uniform_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Like `uniform_candidate_sampler`, for classes in descending order of frequency, approximately by Zipf's law."""
    attrs = {"num_true": num_true, "num_sampled": num_sampled, "unique": unique, "range_max": range_max}
    return _drawn("LogUniform", true_classes, seed, name, attrs)


def fixed_unigram_candidate_sampler(
    true_classes: TensorLike,
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
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Draws classes as `uniform_candidate_sampler`, but with a weight for each class.

    Args:
      vocab_file: a file with the weight of a class at the end of each line, after a comma.
      distortion: the power to which weights are raised.
      num_reserved_ids: number of classes, before the classes with weights, that are never drawn.
      num_shards, shard: draw only classes with the remainder ``shard`` modulo ``num_shards``.
      unigrams: the weights, in place of a file.
    """
    attrs = {
        "num_true": num_true,
        "num_sampled": num_sampled,
        "unique": unique,
        "range_max": range_max,
        "vocab_file": vocab_file,
        "distortion": float(distortion),
        "num_reserved_ids": num_reserved_ids,
        "num_shards": num_shards,
        "shard": shard,
        "unigrams": tuple(float(weight) for weight in unigrams),
    }
    return _drawn("FixedUnigram", true_classes, seed, name, attrs)


def learned_unigram_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Like `uniform_candidate_sampler`, but in proportion to how often each class was a true class in this session so
    far.

    Each class counts as seen once at the beginning; a step sees its true classes after it has drawn.
    """
    attrs = {"num_true": num_true, "num_sampled": num_sampled, "unique": unique, "range_max": range_max}
    return _drawn("LearnedUnigram", true_classes, seed, name, attrs)


def all_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Returns all ``num_sampled`` classes once, to test losses that use samplers."""
    return _drawn("All", true_classes, seed, name, {"num_true": num_true, "num_sampled": num_sampled, "unique": unique})


def compute_accidental_hits(
    true_classes: TensorLike,
    sampled_candidates: TensorLike,
    num_true: int,
    seed: int | None = None,
    name: str | None = None,
) -> AccidentalHits:
    """Finds drawn classes that are true classes of a row."""
    op = apply(
        "ComputeAccidentalHits", true_classes, sampled_candidates, num_true=num_true, name=name, **seed_attrs(seed)
    )
    return AccidentalHits(*op.outputs)
