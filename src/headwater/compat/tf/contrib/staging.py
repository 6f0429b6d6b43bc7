"""``tf.contrib.staging``: elements on their way between two parts of a pipeline."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {"headwater.input.staging": "StagingArea"}

__getattr__, __dir__ = namespace(__name__, _NAMES)
