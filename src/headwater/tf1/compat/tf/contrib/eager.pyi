# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.data.spec import TensorSpec as TensorSpec
from headwater.tf1.compat.switches import enable_eager_execution as enable_eager_execution
from headwater.tf1.compat.switches import executing_eagerly as executing_eagerly
from headwater.tf1.compat.switches import executing_eagerly as in_eager_mode
from headwater.tf1.functional.gradient_tape import GradientTape as GradientTape
from headwater.tf1.functional.gradients import custom_gradient as custom_gradient
from headwater.tf1.functional.graph_functions import function as defun
from headwater.tf1.functional.graph_functions import function as function
from headwater.tf1.functional.py_functions import py_function as py_func
from headwater.tf1.training.object_checkpoints import Checkpoint as Checkpoint
from headwater.tf1.variables.template import make_template as make_template
from headwater.tf1.variables.variables import Variable as Variable

__all__ = [
    "Checkpoint",
    "GradientTape",
    "TensorSpec",
    "Variable",
    "custom_gradient",
    "defun",
    "enable_eager_execution",
    "executing_eagerly",
    "function",
    "in_eager_mode",
    "make_template",
    "py_func",
]
