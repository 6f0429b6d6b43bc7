# Written by tools/stubs.py from headwater.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.training.estimator.tpu import InputPipelineConfig as InputPipelineConfig
from headwater.training.estimator.tpu import TPUConfig as TPUConfig
from headwater.training.estimator.tpu import TPUEstimator as TPUEstimator
from headwater.training.estimator.tpu import TPUEstimatorSpec as TPUEstimatorSpec
from headwater.training.estimator.tpu import TPURunConfig as RunConfig

__all__ = [
    "InputPipelineConfig",
    "RunConfig",
    "TPUConfig",
    "TPUEstimator",
    "TPUEstimatorSpec",
]
