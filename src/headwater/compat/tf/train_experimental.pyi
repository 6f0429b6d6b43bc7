# Written by tools/stubs.py from headwater.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.training.loss_scale import DynamicLossScale as DynamicLossScale
from headwater.training.loss_scale import FixedLossScale as FixedLossScale
from headwater.training.loss_scale import LossScale as LossScale
from headwater.training.loss_scale import MixedPrecisionLossScaleOptimizer as MixedPrecisionLossScaleOptimizer
from headwater.training.loss_scale import disable_mixed_precision_graph_rewrite as disable_mixed_precision_graph_rewrite
from headwater.training.loss_scale import enable_mixed_precision_graph_rewrite as enable_mixed_precision_graph_rewrite
from headwater.training.object_graph import PythonState as PythonState

__all__ = [
    "DynamicLossScale",
    "FixedLossScale",
    "LossScale",
    "MixedPrecisionLossScaleOptimizer",
    "PythonState",
    "disable_mixed_precision_graph_rewrite",
    "enable_mixed_precision_graph_rewrite",
]
