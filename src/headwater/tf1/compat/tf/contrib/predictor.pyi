# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.contrib.predictor.predictors import from_estimator as from_estimator
from headwater.tf1.contrib.predictor.predictors import from_saved_model as from_saved_model

__all__ = [
    "from_estimator",
    "from_saved_model",
]
