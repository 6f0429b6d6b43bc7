# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.training.loss_scale import DynamicLossScale as DynamicLossScale
from headwater.tf1.training.loss_scale import FixedLossScale as FixedLossScale
from headwater.tf1.training.loss_scale import LossScale as LossScale
from headwater.tf1.training.loss_scale import MixedPrecisionLossScaleOptimizer as MixedPrecisionLossScaleOptimizer
from headwater.tf1.training.loss_scale import disable_mixed_precision_graph_rewrite as disable_mixed_precision_graph_rewrite
from headwater.tf1.training.loss_scale import enable_mixed_precision_graph_rewrite as enable_mixed_precision_graph_rewrite
from headwater.tf1.training.object_graph import PythonState as PythonState

__all__ = [
    "DynamicLossScale",
    "FixedLossScale",
    "LossScale",
    "MixedPrecisionLossScaleOptimizer",
    "PythonState",
    "disable_mixed_precision_graph_rewrite",
    "enable_mixed_precision_graph_rewrite",
]
