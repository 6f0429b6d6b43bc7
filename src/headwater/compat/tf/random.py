"""``tf.random``: random numbers."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.functional.random": """
        categorical gamma=random_gamma get_seed multinomial normal=random_normal poisson=random_poisson
        set_random_seed shuffle=random_shuffle stateless_normal=stateless_random_normal stateless_truncated_normal
        stateless_uniform=stateless_random_uniform truncated_normal uniform=random_uniform""",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
