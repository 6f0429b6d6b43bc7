# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.data.spec import TensorSpec as TensorSpec
from headwater.tf1.compat.contrib_framework import init_from_checkpoint as init_from_checkpoint
from headwater.tf1.compat.contrib_framework import list_variables as list_variables
from headwater.tf1.compat.contrib_framework import load_checkpoint as load_checkpoint
from headwater.tf1.compat.contrib_framework import load_variable as load_variable
from headwater.tf1.compat.contrib_framework import py_func as py_func
from headwater.tf1.compat.contrib_framework import smart_cond as smart_cond
from headwater.tf1.contrib.framework.functions import VariableDeviceChooser as VariableDeviceChooser
from headwater.tf1.contrib.framework.functions import assert_or_get_global_step as assert_or_get_global_step
from headwater.tf1.contrib.framework.functions import get_name_scope as get_name_scope
from headwater.tf1.contrib.framework.functions import get_placeholders as get_placeholders
from headwater.tf1.contrib.framework.functions import prepend_name_scope as prepend_name_scope
from headwater.tf1.contrib.framework.functions import reduce_sum_n as reduce_sum_n
from headwater.tf1.contrib.framework.functions import strip_name_scope as strip_name_scope
from headwater.tf1.contrib.slim.arg_scope import add_arg_scope as add_arg_scope
from headwater.tf1.contrib.slim.arg_scope import arg_scope as arg_scope
from headwater.tf1.contrib.slim.arg_scope import arg_scoped_arguments as arg_scoped_arguments
from headwater.tf1.contrib.slim.arg_scope import current_arg_scope as current_arg_scope
from headwater.tf1.contrib.slim.arg_scope import has_arg_scope as has_arg_scope
from headwater.tf1.contrib.slim.variables import add_model_variable as add_model_variable
from headwater.tf1.contrib.slim.variables import assign_from_values as assign_from_values
from headwater.tf1.contrib.slim.variables import assign_from_values_fn as assign_from_values_fn
from headwater.tf1.contrib.slim.variables import filter_variables as filter_variables
from headwater.tf1.contrib.slim.variables import get_local_variables as get_local_variables
from headwater.tf1.contrib.slim.variables import get_model_variables as get_model_variables
from headwater.tf1.contrib.slim.variables import get_trainable_variables as get_trainable_variables
from headwater.tf1.contrib.slim.variables import get_unique_variable as get_unique_variable
from headwater.tf1.contrib.slim.variables import get_variable_full_name as get_variable_full_name
from headwater.tf1.contrib.slim.variables import get_variables as get_variables
from headwater.tf1.contrib.slim.variables import get_variables_by_name as get_variables_by_name
from headwater.tf1.contrib.slim.variables import get_variables_by_suffix as get_variables_by_suffix
from headwater.tf1.contrib.slim.variables import get_variables_to_restore as get_variables_to_restore
from headwater.tf1.contrib.slim.variables import global_variable as global_variable
from headwater.tf1.contrib.slim.variables import local_variable as local_variable
from headwater.tf1.contrib.slim.variables import model_variable as model_variable
from headwater.tf1.contrib.slim.variables import variable as variable
from headwater.tf1.functional.checks import assert_same_float_dtype as assert_same_float_dtype
from headwater.tf1.functional.checks import assert_scalar as assert_scalar
from headwater.tf1.functional.conditions import smart_constant_value as smart_constant_value
from headwater.tf1.functional.default_graph import is_tensor as is_tensor
from headwater.tf1.functional.searching import argsort as argsort
from headwater.tf1.functional.searching import sort as sort
from headwater.tf1.functional.sparse import convert_to_tensor_or_sparse_tensor as convert_to_tensor_or_sparse_tensor
from headwater.tf1.training.training_util import assert_global_step as assert_global_step
from headwater.tf1.training.training_util import create_global_step as create_global_step
from headwater.tf1.training.training_util import get_global_step as get_global_step
from headwater.tf1.training.training_util import get_or_create_global_step as get_or_create_global_step
from headwater.tf1.training.warm_start import assign_from_checkpoint as assign_from_checkpoint
from headwater.tf1.training.warm_start import assign_from_checkpoint_fn as assign_from_checkpoint_fn
from headwater.tf1.variables.orthogonal_convolutions import ConvolutionDeltaOrthogonal as convolutional_delta_orthogonal
from headwater.tf1.variables.orthogonal_convolutions import ConvolutionOrthogonal1D as convolutional_orthogonal_1d
from headwater.tf1.variables.orthogonal_convolutions import ConvolutionOrthogonal2D as convolutional_orthogonal_2d
from headwater.tf1.variables.orthogonal_convolutions import ConvolutionOrthogonal3D as convolutional_orthogonal_3d

__all__ = [
    "TensorSpec",
    "VariableDeviceChooser",
    "add_arg_scope",
    "add_model_variable",
    "arg_scope",
    "arg_scoped_arguments",
    "argsort",
    "assert_global_step",
    "assert_or_get_global_step",
    "assert_same_float_dtype",
    "assert_scalar",
    "assign_from_checkpoint",
    "assign_from_checkpoint_fn",
    "assign_from_values",
    "assign_from_values_fn",
    "convert_to_tensor_or_sparse_tensor",
    "convolutional_delta_orthogonal",
    "convolutional_orthogonal_1d",
    "convolutional_orthogonal_2d",
    "convolutional_orthogonal_3d",
    "create_global_step",
    "current_arg_scope",
    "filter_variables",
    "get_global_step",
    "get_local_variables",
    "get_model_variables",
    "get_name_scope",
    "get_or_create_global_step",
    "get_placeholders",
    "get_trainable_variables",
    "get_unique_variable",
    "get_variable_full_name",
    "get_variables",
    "get_variables_by_name",
    "get_variables_by_suffix",
    "get_variables_to_restore",
    "global_variable",
    "has_arg_scope",
    "init_from_checkpoint",
    "is_tensor",
    "list_variables",
    "load_checkpoint",
    "load_variable",
    "local_variable",
    "model_variable",
    "prepend_name_scope",
    "py_func",
    "reduce_sum_n",
    "smart_cond",
    "smart_constant_value",
    "sort",
    "strip_name_scope",
    "variable",
]
