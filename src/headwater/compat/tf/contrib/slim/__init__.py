"""``tf.contrib.slim``: layers as functions, with settings by scope."""

from __future__ import annotations

from headwater.compat.names import namespace
from headwater.compat.tf.contrib.framework import ARG_SCOPE, FROM_CHECKPOINTS, VARIABLES
from headwater.compat.tf.contrib.layers import NAMES

_MODULES = {
    "layers": "headwater.compat.tf.contrib.layers",
    "learning": "headwater.compat.tf.contrib.slim.learning",
    "losses": "headwater.compat.tf.contrib.slim.losses",
    "metrics": "headwater.compat.tf.contrib.metrics",
}

__getattr__, __dir__ = namespace(
    __name__, {**NAMES, **ARG_SCOPE, **VARIABLES, "headwater.training.warm_start": FROM_CHECKPOINTS}, _MODULES
)
