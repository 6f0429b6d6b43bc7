"""Operations of k-means (Lloyd, 1982), of its mini-batches (Sculley, 2010), and of k-means++ (Arthur, 2007)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from headwater import dtypes
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Operation, Tensor
from headwater.graph.registry import HostArray
from headwater.graph.types import TensorLike
from headwater.shapes import dimension_value
from headwater.tf1.functional import arrays, checks, conditions, indexing, linalg, math, nn, random, reductions, script
from headwater.tf1.functional.control_flow import group, no_op
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.functional.searching import unique
from headwater.tf1.variables import state
from headwater.tf1.variables.variables import Variable

SQUARED_EUCLIDEAN_DISTANCE = "squared_euclidean"
COSINE_DISTANCE = "cosine"
RANDOM_INIT = "random"
KMEANS_PLUS_PLUS_INIT = "kmeans_plus_plus"
KMC2_INIT = "kmc2"
CLUSTERS_VAR_NAME = "clusters"

_EMPTY_CLUSTER = 1e-6
"""Added to the number of points of a cluster, which may be 0."""


class TrainingGraph(NamedTuple):
    """Tensors and operations of k-means; the first three are lists with one element for each tensor of inputs."""

    all_scores: list[Any]
    cluster_idx: list[Any]
    scores: list[Any]
    cluster_centers_initialized: Variable
    init_op: Operation
    training_op: Operation


class KMeans:
    """Clusters of points around centers that all workers share.

    Args:
      inputs: points [count, size], or a list of such tensors.
      num_clusters: number of centers, unless ``initial_clusters`` holds them.
      initial_clusters: centers [num_clusters, size]; a function of the list of inputs and of the number of missing
        centers, which returns at most this many; ``random``, ``kmeans_plus_plus`` or ``kmc2``.
      distance_metric: ``squared_euclidean``, or ``cosine``: 1 - the cosine of the angle.
      use_mini_batch: move centers by the points of each step; otherwise a step assigns all points once.
      mini_batch_steps_per_iteration: number of steps with the same centers before they move.
      random_seed: seed for choosing the initial centers.
      kmeans_plus_plus_num_retries: number of further candidates for each center; below 0, 2 + log ``num_clusters``.
      kmc2_chain_length: number of points that ``kmc2`` draws for each center (Bachem, 2016).

    Raises:
      ValueError: ``initial_clusters`` or ``distance_metric`` is unknown.
    """

    def __init__(
        self,
        inputs: TensorLike | list[TensorLike],
        num_clusters: TensorLike,
        initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE,
        use_mini_batch: bool = False,
        mini_batch_steps_per_iteration: int = 1,
        random_seed: int = 0,
        kmeans_plus_plus_num_retries: int = 2,
        kmc2_chain_length: int = 200,
    ) -> None:
        check_arguments(initial_clusters, distance_metric, (RANDOM_INIT, KMEANS_PLUS_PLUS_INIT, KMC2_INIT))
        self._inputs = [convert_to_tensor(each) for each in (inputs if isinstance(inputs, list) else [inputs])]
        if isinstance(initial_clusters, str) or callable(initial_clusters):
            self._first, self._count = initial_clusters, convert_to_tensor(num_clusters)
        else:
            self._first = convert_to_tensor(initial_clusters)
            self._count = arrays.shape(self._first)[0]
        self._is_cosine = distance_metric == COSINE_DISTANCE
        self._steps = int(mini_batch_steps_per_iteration) if use_mini_batch else 0
        self._keeps_unit_length = self._is_cosine and self._steps != 1
        self._seed = random_seed
        self._retries = kmeans_plus_plus_num_retries
        self._chain_length = kmc2_chain_length

    def training_graph(self) -> TrainingGraph:
        """Adds variables and operations to the graph.

        One worker runs ``init_op`` until ``cluster_centers_initialized``; then any number of workers may train.
        """
        empty = arrays.zeros([0], dtypes.float32)
        centers = Variable(empty, name=CLUSTERS_VAR_NAME, validate_shape=False)
        initialized = Variable(False, name="initialized")
        moved, left, counts = centers, None, None
        if self._steps > 1:
            moved = Variable(empty, name="clusters_updated", validate_shape=False)
            left = Variable(self._steps, dtype=dtypes.int64, name="update_in_steps")
            counts = Variable(arrays.zeros([self._count], dtypes.int64), name="Variable")
        elif self._steps == 1:
            counts = Variable(arrays.ones([self._count], dtypes.int64), name="Variable")
        first = self._initialization(centers, moved, initialized)
        inputs, fixed = self._inputs, convert_to_tensor(centers)
        if self._is_cosine:
            inputs = [nn.l2_normalize(each, 1) for each in inputs]
            fixed = fixed if self._keeps_unit_length else nn.l2_normalize(fixed, 1)
        scores = [self._distances(each, fixed) for each in inputs]
        nearest = [reductions.argmin(each, 1) for each in scores]
        if counts is None:
            training = self._whole(inputs, nearest, centers)
        else:
            with control_dependencies([self._synchronized(left, centers, moved, counts)]):
                training = group(
                    *(_mini_batch(points, own, moved, counts) for points, own in zip(inputs, nearest, strict=True))
                )
        smallest = [reductions.reduce_min(each, 1) for each in scores]
        return TrainingGraph(scores, nearest, smallest, initialized, first, training)

    def _distances(self, points: Tensor, centers: Tensor) -> Tensor:
        products = linalg.matmul(points, centers, transpose_b=True)
        if self._is_cosine:
            return 1 - products
        squares = reductions.reduce_sum(math.square(centers), 1)
        return reductions.reduce_sum(math.square(points), 1, keepdims=True) - 2 * products + squares

    def _whole(self, inputs: Sequence[Tensor], nearest: Sequence[Tensor], centers: Variable) -> Any:
        sums = [reductions.unsorted_segment_sum(*each, self._count) for each in zip(inputs, nearest, strict=True)]
        ones = [arrays.ones([arrays.shape(each)[0], 1]) for each in inputs]
        counts = [reductions.unsorted_segment_sum(*each, self._count) for each in zip(ones, nearest, strict=True)]
        found = math.add_n(sums) / (math.add_n(counts) + _EMPTY_CLUSTER)
        return state.assign(centers, nn.l2_normalize(found, 1) if self._is_cosine else found)

    def _synchronized(self, left: Variable | None, centers: Variable, moved: Variable, counts: Variable) -> Any:
        """Moves the centers after each number of steps; a count of 0 points then gives the next ones full weight."""
        if left is None:
            return no_op()
        countdown = left

        def synchronize() -> Tensor:
            with control_dependencies([state.assign(countdown, self._steps - 1)]):
                found = nn.l2_normalize(moved, 1) if self._is_cosine else arrays.identity(moved)
                change = state.assign(centers, found, validate_shape=False)
            with (
                control_dependencies([change]),
                control_dependencies([state.assign(counts, arrays.zeros_like(counts))]),
            ):
                return arrays.identity(countdown)

        return conditions.cond(countdown <= 0, synchronize, lambda: state.assign_sub(countdown, 1))

    # Initial centers -------------------------------------------------------------------------------------------------

    def _initialization(self, centers: Variable, moved: Variable, initialized: Variable) -> Operation:
        present = convert_to_tensor(centers)
        selected = arrays.shape(present)[0]
        missing = self._count - selected
        with control_dependencies([checks.assert_positive(missing)]):
            chosen = self._choice(arrays.identity(missing))
        if self._is_cosine:
            chosen = nn.l2_normalize(chosen, 1)
        chosen = conditions.cond(math.equal(selected, 0), lambda: chosen, lambda: arrays.concat([present, chosen], 0))
        change = state.assign(centers, chosen, validate_shape=False)
        if moved is not centers:
            change = state.assign(moved, change, validate_shape=False)
        return group(state.assign(initialized, math.equal(arrays.shape(change)[0], self._count)))

    def _choice(self, missing: Tensor) -> Any:
        if callable(self._first):
            return self._first(self._inputs, missing)
        if isinstance(self._first, Tensor):
            with control_dependencies([checks.assert_equal(missing, self._count)]):
                return arrays.identity(self._first)
        points = arrays.concat(self._inputs, 0)
        count = arrays.shape(points)[0]
        if self._first == RANDOM_INIT:
            rows = conditions.cond(
                count <= missing,
                lambda: arrays.range(count),
                lambda: random.random_uniform([missing], 0, count, dtypes.int32, seed=self._seed),
            )
            return indexing.gather(points, rows)
        points = nn.l2_normalize(points, 1) if self._is_cosine else points
        with control_dependencies([checks.assert_greater_equal(count, missing)]):
            choose = self._spread if self._first == KMEANS_PLUS_PLUS_INIT else self._chained
            found = script.py_func(choose, [points, missing], dtypes.float32)
        found.set_shape([None, dimension_value(points.shape[1])])
        return found

    def _spread(self, points: HostArray, count: HostArray) -> HostArray:
        """Chooses points with probabilities in proportion to the squared distance to the chosen ones."""
        numbers = np.random.RandomState(self._seed)
        candidates = 1 + (self._retries if self._retries >= 0 else int(2 + np.log(max(int(count), 1))))
        found = [points[numbers.randint(len(points))]]
        distances = np.square(points - found[0]).sum(1)
        while len(found) < count:
            total = distances.sum()
            shares = distances / total if total > 0 else None
            rows = numbers.choice(len(points), candidates, p=None if shares is None else shares / shares.sum())
            each = [np.minimum(distances, np.square(points - points[row]).sum(1)) for row in rows]
            best = int(np.argmin([own.sum() for own in each]))
            found.append(points[rows[best]])
            distances = each[best]
        return np.asarray(found, np.float32)

    def _chained(self, points: HostArray, count: HostArray) -> HostArray:
        """Chooses points by Markov chains whose limit is the distribution of k-means++."""
        numbers = np.random.RandomState(self._seed)
        found = [points[numbers.randint(len(points))]]
        while len(found) < count:
            drawn = points[numbers.randint(len(points), size=self._chain_length)]
            distances = np.min([np.square(drawn - center).sum(1) for center in found], 0)
            last = 0
            for row in range(1, len(drawn)):
                if distances[row] > distances[last] * numbers.uniform():
                    last = row
            found.append(drawn[last])
        return np.asarray(found, np.float32)


def check_arguments(
    initial_clusters: object, distance_metric: str, ways: Sequence[str] = (RANDOM_INIT, KMEANS_PLUS_PLUS_INIT)
) -> None:
    """Raises ValueError if ``initial_clusters`` is a name that is not in ``ways``, or the distance is unknown."""
    if isinstance(initial_clusters, str) and initial_clusters not in ways:
        raise ValueError(f"Unsupported initialization algorithm '{initial_clusters}'")
    if distance_metric not in (SQUARED_EUCLIDEAN_DISTANCE, COSINE_DISTANCE):
        raise ValueError(f"Unsupported distance metric '{distance_metric}'")


def _mini_batch(points: Tensor, nearest: Tensor, centers: Variable, counts: Variable) -> Operation:
    """Moves the points' centers to the means of all their points so far."""
    rows, positions = unique(nearest)
    old_counts, old_centers = indexing.gather(counts, rows), indexing.gather(centers, rows)
    number = arrays.size(rows)
    added = reductions.unsorted_segment_sum(arrays.ones_like(positions, dtypes.int64), positions, number)
    sums = reductions.unsorted_segment_sum(points, positions, number)
    added_column, total = (arrays.expand_dims(math.cast(each, points.dtype), 1) for each in (added, old_counts + added))
    changes = (sums - added_column * old_centers) / total
    with control_dependencies([old_counts, old_centers]):
        return group(state.scatter_add(counts, rows, added), state.scatter_add(centers, rows, changes))
