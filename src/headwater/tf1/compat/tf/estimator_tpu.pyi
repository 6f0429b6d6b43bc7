# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.training.estimator.tpu import InputPipelineConfig as InputPipelineConfig
from headwater.tf1.training.estimator.tpu import TPUConfig as TPUConfig
from headwater.tf1.training.estimator.tpu import TPUEstimator as TPUEstimator
from headwater.tf1.training.estimator.tpu import TPUEstimatorSpec as TPUEstimatorSpec
from headwater.tf1.training.estimator.tpu import TPURunConfig as RunConfig

__all__ = [
    "InputPipelineConfig",
    "RunConfig",
    "TPUConfig",
    "TPUEstimator",
    "TPUEstimatorSpec",
]
