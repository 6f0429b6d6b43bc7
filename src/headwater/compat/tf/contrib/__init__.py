"""``tf.contrib``: what programs take from it most."""

from __future__ import annotations

from headwater.compat.names import namespace

_MODULES = {
    area: f"headwater.compat.tf.contrib.{area}"
    for area in (
        "data", "deprecated", "distribute", "framework", "image", "layers", "learn", "lookup", "metrics", "rnn",
        "slim", "staging", "tfprof", "training",
    )
}  # fmt: skip

__getattr__, __dir__ = namespace(__name__, {}, _MODULES)
