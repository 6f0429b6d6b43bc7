"""``tf.initializers``: first values of variables."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.variables.initializers": """
        constant=Constant glorot_normal=GlorotNormal glorot_uniform=GlorotUniform he_normal he_uniform
        identity=Identity lecun_normal lecun_uniform ones=Ones orthogonal=Orthogonal random_normal=RandomNormal
        random_uniform=RandomUniform truncated_normal=TruncatedNormal uniform_unit_scaling=UniformUnitScaling
        variance_scaling=VarianceScaling zeros=Zeros""",
    "headwater.variables.variable_lists": """
        global_variables=global_variables_initializer local_variables=local_variables_initializer
        variables=variables_initializer""",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
