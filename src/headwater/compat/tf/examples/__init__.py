"""``tf.examples``: what the tutorials share."""

from __future__ import annotations

from headwater.compat.names import namespace

__getattr__, __dir__ = namespace(__name__, {}, {"tutorials": "headwater.compat.tf.examples.tutorials"})
