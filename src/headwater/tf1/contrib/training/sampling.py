"""Batches of examples that are selected at random, by class or by weight (``tf.contrib.training``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from headwater.dtypes import float32, int32, int64
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.tf1.functional import arrays, indexing, math, reductions
from headwater.tf1.functional.checks import (
    Assert,
    assert_equal,
    assert_integer,
    assert_less,
    assert_less_equal,
    assert_non_negative,
    assert_positive,
)
from headwater.tf1.functional.conditions import cond
from headwater.tf1.functional.control_flow import with_dependencies
from headwater.tf1.functional.random import random_poisson, random_uniform
from headwater.tf1.functional.script import Print
from headwater.tf1.training.batching import batch, maybe_batch
from headwater.tf1.training.moving_averages import assign_moving_average
from headwater.tf1.variables.variable_scope import get_local_variable, variable_scope
from headwater.tf1.variables.variables import Variable

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike

_TOLERANCE = 1e-6  # of the sum of probabilities
_FIRST_COUNT = 10  # examples of each class that an estimated distribution begins with


def rejection_sample(
    tensors: Sequence[TensorLike],
    accept_prob_fn: Callable[[list[Tensor]], TensorLike],
    batch_size: int,
    queue_threads: int = 1,
    enqueue_many: bool = False,
    prebatch_capacity: int = 16,
    prebatch_threads: int = 1,
    runtime_checks: bool = False,
    name: str | None = None,
) -> list[Tensor]:
    """Returns batches of the examples that are accepted, each with a probability of its own.

    Args:
      tensors: components of an example; with ``enqueue_many`` of several examples.
      accept_prob_fn: takes the components of an example; returns the probability, a scalar.
      batch_size: examples of a batch.
      queue_threads: threads that fill the queue of batches.
      prebatch_capacity, prebatch_threads: capacity and threads of the queue of single examples, with ``enqueue_many``.
      runtime_checks: check that probabilities are between 0 and 1.

    Raises:
      ValueError: the components have different numbers of examples.
    """
    with variable_scope(name, "rejection_sample", list(tensors)):
        example = [convert_to_tensor(each) for each in tensors]
        if enqueue_many:
            _check_rows(example, example[0])
            example = _one_by_one(example, prebatch_threads, prebatch_capacity)
        probability = convert_to_tensor(accept_prob_fn(example))
        if runtime_checks:
            checks = [assert_less_equal(0.0, probability), assert_less_equal(probability, 1.0)]
            probability = with_dependencies(checks, probability)
        batches = maybe_batch(example, random_uniform([]) < probability, batch_size, queue_threads)
        return [batches] if isinstance(batches, Tensor) else batches


def stratified_sample(
    tensors: Sequence[TensorLike],
    labels: TensorLike,
    target_probs: TensorLike,
    batch_size: int,
    init_probs: TensorLike | None = None,
    enqueue_many: bool = False,
    queue_capacity: int = 16,
    threads_per_queue: int = 1,
    name: str | None = None,
) -> tuple[list[Tensor], Tensor]:
    """Returns batches with given proportions of classes, and their labels; drops examples of frequent classes.

    An example of class i is accepted with the probability (tᵢ / pᵢ) / maxⱼ (tⱼ / pⱼ).

    Args:
      tensors: components of an example; with ``enqueue_many`` of several examples.
      labels: the class, an integer; with ``enqueue_many`` a vector.
      target_probs: t, the proportions of classes in batches.
      batch_size: examples of a batch.
      init_probs: p, the proportions of classes in the data; estimated from all labels so far if None.
      queue_capacity: capacity of the queue of single examples.
      threads_per_queue: threads that fill each of the two queues.

    Raises:
      ValueError: shapes do not fit together.
      TypeError: labels are not integers.
    """
    with name_scope(name, "stratified_sample", [*tensors, labels]):
        examples = [convert_to_tensor(each) for each in tensors]
        classes = convert_to_tensor(labels)
        target = convert_to_tensor(target_probs, float32)
        if not enqueue_many:
            examples = [arrays.expand_dims(each, 0) for each in examples]
            classes = arrays.expand_dims(classes, 0)
        if init_probs is None:
            target.shape.assert_is_fully_defined()
            given = _estimated(classes, target.shape.num_elements())
        else:
            given = convert_to_tensor(init_probs, float32)
        given, target = _probabilities(given), _probabilities(target)
        if given.shape.num_elements() != target.shape.num_elements():
            raise ValueError("Probability parameters must have the same length.")
        examples, classes = _checked(examples, classes, target.shape.num_elements())
        *example, label = _one_by_one([*examples, classes], threads_per_queue, queue_capacity)
        keep = random_uniform([]) < indexing.gather(_acceptance(given, target), label)
        *found, found_labels = maybe_batch([*example, label], keep, batch_size, threads_per_queue)
        return found, found_labels


def _check_rows(tensors: Sequence[Tensor], other: Tensor) -> None:
    for tensor in tensors:
        tensor.shape.with_rank_at_least(1)[:1].assert_is_compatible_with(other.shape[:1])


def _one_by_one(tensors: list[Tensor], threads: int, capacity: int) -> list[Tensor]:
    """Returns the components of one example at a time."""
    rows = batch(tensors, 1, threads, capacity, enqueue_many=True)
    return [arrays.squeeze(row, [0]) for row in ([rows] if isinstance(rows, Tensor) else rows)]


def _estimated(labels: Tensor, classes: int | None) -> Tensor:
    """Returns the proportions of classes in all labels so far."""
    seen = Variable([_FIRST_COUNT] * (classes or 0), trainable=False, name="class_count", dtype=int64)
    counts = seen.assign_add(reductions.reduce_sum(indexing.one_hot(labels, classes or 0, dtype=int64), 0)) + 0
    return math.cast(counts / reductions.reduce_sum(counts), float32)


def _probabilities(values: Tensor) -> Tensor:
    """Returns probabilities of classes, with checks that they are not negative and have the sum 1."""
    values.shape.assert_is_fully_defined()
    values.shape.assert_has_rank(1)
    total = reductions.reduce_sum(values)
    checks = [
        assert_non_negative(values),
        assert_less(total, 1.0 + _TOLERANCE),
        assert_less(1.0 - _TOLERANCE, total),
    ]
    return with_dependencies(checks, values)


def _checked(examples: list[Tensor], labels: Tensor, classes: int | None) -> tuple[list[Tensor], Tensor]:
    """Returns rows of examples and labels, with checks of their numbers and of the labels."""
    labels.shape.assert_has_rank(1)
    _check_rows(examples, labels)
    count = arrays.shape(labels)[0]
    some = assert_positive(count)
    examples = [with_dependencies([some, assert_equal(arrays.shape(each)[0], count)], each) for each in examples]
    checks = [
        some,
        assert_integer(labels),
        assert_non_negative(labels),
        assert_less(labels, math.cast(classes or 0, labels.dtype)),
    ]
    return examples, with_dependencies(checks, labels)


def _acceptance(given: Tensor, target: Tensor) -> Tensor:
    """Returns the probability to accept an example of each class; prints it in steps if most examples are dropped."""
    message = "All classes with zero initial probability must also have zero target probability: "
    possible = reductions.reduce_all(math.logical_or(math.not_equal(given, 0.0), math.equal(target, 0.0)))
    given = with_dependencies([Assert(possible, [message, given, target])], given)
    ratios = math.div_no_nan(target, given)
    accepted = ratios / reductions.reduce_max(ratios)
    dropped = reductions.reduce_sum((1.0 - accepted) * given)
    shown = "Proportion of examples rejected by sampler is high."
    return cond(dropped < 0.5, lambda: accepted, lambda: Print(accepted, [accepted], shown, first_n=10))


def resample_at_rate(
    inputs: Sequence[TensorLike],
    rates: TensorLike,
    scope: str | None = None,
    seed: int | None = None,
    back_prop: bool = False,
) -> list[Tensor]:
    """Returns the rows of ``inputs``, each repeated a random number of times, on average as often as its rate.

    Args:
      inputs: tensors with equal numbers of rows.
      rates: the rate of each row, which has a Poisson distribution.
      back_prop: whether the numbers of the selected rows have gradients.
    """
    with name_scope(scope, "resample_at_rate", [*inputs, rates]):
        rates = convert_to_tensor(rates, name="rates")
        counts = math.cast(random_poisson(rates, (), rates.dtype, seed=seed), int32)
        chosen = indexing.where(indexing.sequence_mask(counts))[:, 0]  # each row's number, as often as it counts
        chosen = chosen if back_prop else arrays.stop_gradient(chosen)
        return [indexing.gather(each, chosen) for each in inputs]


def weighted_resample(
    inputs: Sequence[TensorLike],
    weights: TensorLike,
    overall_rate: TensorLike,
    scope: str | None = None,
    mean_decay: float = 0.999,
    seed: int | None = None,
) -> tuple[list[Tensor], Tensor]:
    """Returns the rows of ``inputs``, each repeated at a rate proportional to its weight, and these rates.

    Args:
      overall_rate: the mean rate of all rows.
      mean_decay: decay of the moving average of the weights.
    """
    with name_scope(scope, "weighted_resample", list(inputs)) as inner:
        weights = convert_to_tensor(weights)
        with variable_scope(scope, "estimate_mean", list(inputs)):
            zero = math.cast(0, weights.dtype)
            mean = get_local_variable("estimated_mean", initializer=zero, dtype=weights.dtype)
            average = assign_moving_average(cast("Variable", mean), reductions.reduce_mean(weights), mean_decay)
        rates = weights * overall_rate / average
        rate, *found = resample_at_rate([rates, *inputs], rates, inner, seed)
        return found, rate
