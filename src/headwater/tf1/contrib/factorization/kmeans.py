"""`KMeansClustering`: k-means as an estimator."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from headwater.tf1.contrib.factorization import clustering
from headwater.tf1.feature_columns.dense import input_layer
from headwater.tf1.functional import arrays, reductions, summary
from headwater.tf1.functional.control_flow import with_dependencies
from headwater.tf1.metrics import means
from headwater.tf1.training import saved_model
from headwater.tf1.training.estimator.estimator import Estimator
from headwater.tf1.training.estimator.export import PredictOutput
from headwater.tf1.training.estimator.specs import EstimatorSpec
from headwater.tf1.training.session_run_hook import SessionRunArgs, SessionRunHook
from headwater.tf1.training.training_util import get_global_step
from headwater.tf1.variables.state import assign_add

if TYPE_CHECKING:
    from headwater.graph.operation import Operation, Tensor
    from headwater.tf1.variables.variables import Variable


class _StopAtSmallChange(SessionRunHook):
    """Stops when the loss changes by less than ``tolerance``, relative to 1 + its size."""

    def __init__(self, loss: Tensor, tolerance: float) -> None:
        self._loss = loss
        self._tolerance = tolerance
        self._last: float | None = None

    def before_run(self, run_context: object) -> SessionRunArgs:
        return SessionRunArgs(self._loss)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        loss, last = run_values.results, self._last
        if last and abs(loss - last) / (1 + abs(last)) < self._tolerance:
            run_context.request_stop()
        self._last = loss


class _ChooseCenters(SessionRunHook):
    """Lets the chief choose centers from as many batches as needed; other workers wait for them."""

    def __init__(self, init_op: Operation, initialized: Variable, is_chief: bool) -> None:
        self._init_op = init_op
        self._initialized = initialized
        self._is_chief = is_chief

    def after_create_session(self, session: Any, coord: Any) -> None:
        while not session.run(self._initialized):
            if self._is_chief:
                session.run(self._init_op)
            elif coord.wait_for_stop(1):
                return


class KMeansClustering(Estimator):
    """Finds clusters by k-means; see `clustering.KMeans` for the arguments that are not listed here.

    The model function takes a tensor of points [count, size] or a dictionary of features [count, 1], which are joined
    in the order of their names.

    Args:
      relative_tolerance: stop when the loss changes by less, relative to 1 + its size.
      feature_columns: columns that make points of the features.

    Raises:
      ValueError: ``initial_clusters`` or ``distance_metric`` is unknown.
    """

    SQUARED_EUCLIDEAN_DISTANCE = clustering.SQUARED_EUCLIDEAN_DISTANCE
    COSINE_DISTANCE = clustering.COSINE_DISTANCE
    RANDOM_INIT = clustering.RANDOM_INIT
    KMEANS_PLUS_PLUS_INIT = clustering.KMEANS_PLUS_PLUS_INIT
    SCORE = "score"
    CLUSTER_INDEX = "cluster_index"
    ALL_DISTANCES = "all_distances"
    CLUSTER_CENTERS_VAR_NAME = clustering.CLUSTERS_VAR_NAME

    def __init__(
        self,
        num_clusters: int,
        model_dir: str | None = None,
        initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE,
        random_seed: int = 0,
        use_mini_batch: bool = True,
        mini_batch_steps_per_iteration: int = 1,
        kmeans_plus_plus_num_retries: int = 2,
        relative_tolerance: float | None = None,
        config: Any = None,
        feature_columns: Iterable[Any] | None = None,
    ) -> None:
        clustering.check_arguments(initial_clusters, distance_metric)

        def model_fn(features: Any, mode: str, config: Any) -> EstimatorSpec:
            graph = clustering.KMeans(
                _points(features, feature_columns),
                num_clusters,
                initial_clusters,
                distance_metric,
                use_mini_batch,
                mini_batch_steps_per_iteration,
                random_seed,
                kmeans_plus_plus_num_retries,
            ).training_graph()
            loss = reductions.reduce_sum(graph.scores[0])
            summary.scalar("loss/raw", loss)
            hooks: list[SessionRunHook] = [
                _ChooseCenters(graph.init_op, graph.cluster_centers_initialized, config.is_chief)
            ]
            if relative_tolerance is not None:
                hooks.append(_StopAtSmallChange(loss, relative_tolerance))
            predictions = {self.ALL_DISTANCES: graph.all_scores[0], self.CLUSTER_INDEX: graph.cluster_idx[0]}
            outputs = {name: PredictOutput(value) for name, value in predictions.items()}
            outputs[saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY] = PredictOutput(graph.cluster_idx[0])
            counted = assign_add(get_global_step(), 1)
            return EstimatorSpec(
                mode=mode,
                predictions=predictions,
                loss=loss,
                train_op=with_dependencies([graph.training_op, counted], loss),
                eval_metric_ops={self.SCORE: means.mean(loss)},
                training_hooks=hooks,
                export_outputs=outputs,
            )

        super().__init__(model_fn=model_fn, model_dir=model_dir, config=config)

    def _predicted(self, input_fn: Callable[[], object], key: str) -> Generator[Any]:
        return (found[key] for found in self.predict(input_fn, predict_keys=[key]))

    def predict_cluster_index(self, input_fn: Callable[[], object]) -> Generator[Any]:
        """Yields the index of the nearest center for each point."""
        return self._predicted(input_fn, self.CLUSTER_INDEX)

    def transform(self, input_fn: Callable[[], object]) -> Generator[Any]:
        """Yields, for each point, the distances to all centers: squared Euclidean, or cosine distances."""
        return self._predicted(input_fn, self.ALL_DISTANCES)

    def score(self, input_fn: Callable[[], object]) -> Any:
        """Returns the sum of the first batch's distances to the nearest centers."""
        return self.evaluate(input_fn, steps=1)[self.SCORE]

    def cluster_centers(self) -> Any:
        """Returns the centers [num_clusters, size] of the newest checkpoint."""
        return self.get_variable_value(self.CLUSTER_CENTERS_VAR_NAME)


def _points(features: object, feature_columns: Iterable[Any] | None) -> Any:
    if not isinstance(features, Mapping):
        return features
    by_name = cast("Mapping[str, Any]", features)
    if feature_columns:
        return input_layer(by_name, feature_columns)
    return arrays.concat([by_name[key] for key in sorted(by_name)], axis=1)
