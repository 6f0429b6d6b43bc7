"""``tf.contrib.tfprof``: how large a model is."""

from __future__ import annotations

from headwater.compat.names import namespace

_MODULES = {"model_analyzer": "headwater.training.model_analysis"}

__getattr__, __dir__ = namespace(__name__, {}, _MODULES)
