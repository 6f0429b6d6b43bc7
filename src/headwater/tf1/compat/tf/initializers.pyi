# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.functional.control_flow import tables_initializer as tables_initializer
from headwater.tf1.variables.initializers import Constant as constant
from headwater.tf1.variables.initializers import GlorotNormal as glorot_normal
from headwater.tf1.variables.initializers import GlorotUniform as glorot_uniform
from headwater.tf1.variables.initializers import Identity as identity
from headwater.tf1.variables.initializers import Ones as ones
from headwater.tf1.variables.initializers import Orthogonal as orthogonal
from headwater.tf1.variables.initializers import RandomNormal as random_normal
from headwater.tf1.variables.initializers import RandomUniform as random_uniform
from headwater.tf1.variables.initializers import TruncatedNormal as truncated_normal
from headwater.tf1.variables.initializers import UniformUnitScaling as uniform_unit_scaling
from headwater.tf1.variables.initializers import VarianceScaling as variance_scaling
from headwater.tf1.variables.initializers import Zeros as zeros
from headwater.tf1.variables.initializers import he_normal as he_normal
from headwater.tf1.variables.initializers import he_uniform as he_uniform
from headwater.tf1.variables.initializers import lecun_normal as lecun_normal
from headwater.tf1.variables.initializers import lecun_uniform as lecun_uniform
from headwater.tf1.variables.variable_lists import global_variables_initializer as global_variables
from headwater.tf1.variables.variable_lists import local_variables_initializer as local_variables
from headwater.tf1.variables.variable_lists import variables_initializer as variables

__all__ = [
    "constant",
    "global_variables",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "identity",
    "lecun_normal",
    "lecun_uniform",
    "local_variables",
    "ones",
    "orthogonal",
    "random_normal",
    "random_uniform",
    "tables_initializer",
    "truncated_normal",
    "uniform_unit_scaling",
    "variables",
    "variance_scaling",
    "zeros",
]
