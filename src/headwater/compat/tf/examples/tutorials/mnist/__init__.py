"""``tf.examples.tutorials.mnist``: handwritten digits, and a network for them."""

from __future__ import annotations

from headwater.compat.names import namespace

_MODULES = {
    "input_data": "headwater.training.mnist_data",
    "mnist": "headwater.training.mnist_model",
}

__getattr__, __dir__ = namespace(__name__, {}, _MODULES)
