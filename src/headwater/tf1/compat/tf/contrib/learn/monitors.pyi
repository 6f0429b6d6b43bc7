# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.training.basic_session_run_hooks import NanLossDuringTrainingError as NanLossDuringTrainingError
from headwater.tf1.training.estimator.monitors import BaseMonitor as BaseMonitor
from headwater.tf1.training.estimator.monitors import CaptureVariable as CaptureVariable
from headwater.tf1.training.estimator.monitors import CheckpointSaver as CheckpointSaver
from headwater.tf1.training.estimator.monitors import EveryN as EveryN
from headwater.tf1.training.estimator.monitors import LoggingTrainable as LoggingTrainable
from headwater.tf1.training.estimator.monitors import NanLoss as NanLoss
from headwater.tf1.training.estimator.monitors import PrintTensor as PrintTensor
from headwater.tf1.training.estimator.monitors import RunHookAdapterForMonitors as RunHookAdapterForMonitors
from headwater.tf1.training.estimator.monitors import StepCounter as StepCounter
from headwater.tf1.training.estimator.monitors import StopAtStep as StopAtStep
from headwater.tf1.training.estimator.monitors import SummarySaver as SummarySaver
from headwater.tf1.training.estimator.monitors import ValidationMonitor as ValidationMonitor
from headwater.tf1.training.estimator.monitors import get_default_monitors as get_default_monitors
from headwater.tf1.training.estimator.monitors import replace_monitors_with_hooks as replace_monitors_with_hooks

__all__ = [
    "BaseMonitor",
    "CaptureVariable",
    "CheckpointSaver",
    "EveryN",
    "LoggingTrainable",
    "NanLoss",
    "NanLossDuringTrainingError",
    "PrintTensor",
    "RunHookAdapterForMonitors",
    "StepCounter",
    "StopAtStep",
    "SummarySaver",
    "ValidationMonitor",
    "get_default_monitors",
    "replace_monitors_with_hooks",
]
