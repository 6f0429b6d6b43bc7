"""``tf.examples.tutorials``: data and networks of the tutorials."""

from __future__ import annotations

from headwater.compat.names import namespace

__getattr__, __dir__ = namespace(__name__, {}, {"mnist": "headwater.compat.tf.examples.tutorials.mnist"})
