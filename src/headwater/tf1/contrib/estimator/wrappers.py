"""Wrappers of estimators and optimizers of ``tf.contrib.estimator``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from headwater.graph.convert import convert_to_tensor
from headwater.graph.sparse_tensor import SparseTensor
from headwater.tf1.contrib.opt.wrappers import WrappingOptimizer
from headwater.tf1.functional.clip import clip_by_global_norm
from headwater.tf1.functional.sparse import sparse_tensor_to_dense
from headwater.tf1.training.estimator.estimator import Estimator
from headwater.tf1.training.estimator.export import PredictOutput

if TYPE_CHECKING:
    from headwater.graph.types import Structure, TensorLike
    from headwater.tf1.training.estimator.run_config import RunConfig
    from headwater.tf1.training.estimator.specs import EstimatorSpec
    from headwater.tf1.training.optimizer import Optimizer


class _ClippingOptimizer(WrappingOptimizer):
    def __init__(self, opt: Optimizer, clip_norm: TensorLike) -> None:
        super().__init__(opt, False, f"ClipByNorm{opt.get_name()}")
        self._clip_norm = clip_norm

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        gradients, variables = zip(*grads_and_vars, strict=True)
        clipped, _ = clip_by_global_norm(gradients, self._clip_norm)
        return self._opt.apply_gradients(list(zip(clipped, variables, strict=True)), global_step, name)


def clip_gradients_by_norm(optimizer: Optimizer, clip_norm: TensorLike) -> Optimizer:
    """Returns an optimizer that applies gradients clipped by their global norm."""
    return _ClippingOptimizer(optimizer, clip_norm)


def forward_features(
    estimator: Estimator,
    keys: str | Sequence[str] | None = None,
    sparse_default_values: Mapping[str, TensorLike] | None = None,
) -> Estimator:
    """Returns an estimator like ``estimator`` whose predictions also contain features, such as ids of examples.

    Args:
      keys: names of the features; all features if None.
      sparse_default_values: for each sparse feature, the value of its missing elements in the predictions.

    Raises:
      TypeError: ``keys`` are not names.
      ValueError: in the model function: a feature does not exist, is sparse, or has the name of a prediction.
    """
    wanted = [keys] if isinstance(keys, str) else keys
    names = cast("Any", wanted)
    if wanted is not None and not (isinstance(wanted, list | tuple) and all(isinstance(key, str) for key in names)):
        raise TypeError(f"keys should be either a string or a list of strings. Given: {type(keys)}")

    def forwarded(key: str, features: Mapping[str, Any], predictions: Mapping[str, object]) -> Any:
        if key not in features:
            raise ValueError(
                f'keys should be exist in features. Key "{key}" is not in features dict. features dict has following '
                f"keys: {list(features)}. Please check arguments of forward_features."
            )
        if key in predictions:
            raise ValueError(
                f"Cannot forward feature key ({key}). Since it does exist in predictions. Existing prediction keys: "
                f"{list(predictions)}. Please check arguments of forward_features."
            )
        value = features[key]
        if key in (sparse_default_values or {}):
            if not isinstance(value, SparseTensor):
                raise ValueError(f"Feature ({key}) is expected to be a `SparseTensor`.")
            assert sparse_default_values is not None
            return sparse_tensor_to_dense(value, default_value=sparse_default_values[key])
        if isinstance(value, SparseTensor):
            raise ValueError(
                f"Feature ({key}) should be a Tensor. Please use `keys` argument of forward_features to filter "
                "unwanted features, or add key to argument `sparse_default_values`."
            )
        return convert_to_tensor(value)

    def model_fn(features: Structure, labels: TensorLike, mode: str, config: RunConfig) -> EstimatorSpec:
        spec = estimator.model_fn(features, labels, mode, config)
        found: object = spec.predictions
        if found is None:
            return spec
        if not isinstance(found, dict):
            raise ValueError(f"Predictions should be a dict to be able to forward features. Given: {type(found)}")
        named, predictions = cast("Mapping[str, Any]", features), cast("dict[str, Any]", spec.predictions)
        more = {key: forwarded(key, named, predictions) for key in wanted or named}
        outputs = dict(spec.export_outputs or {})
        for key in ("predict", "serving_default"):
            if isinstance(output := outputs.get(key), PredictOutput):
                outputs[key] = PredictOutput({**output.outputs, **more})
        return spec._replace(predictions={**predictions, **more}, export_outputs=outputs or None)

    return Estimator(model_fn, estimator.model_dir, estimator.config)
