"""``tf.version``: which TensorFlow this stands for."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.compat.tf": """
        COMPILER_VERSION GIT_VERSION GRAPH_DEF_VERSION GRAPH_DEF_VERSION_MIN_CONSUMER GRAPH_DEF_VERSION_MIN_PRODUCER
        VERSION""",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
