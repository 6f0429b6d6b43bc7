"""All that Headwater uses of JAX that is not public: one file shows what a release may move.

`docs/dependencies.md` says with which releases that was tried.
"""

from __future__ import annotations

from jax._src import core as core
from jax._src import xla_bridge as xla_bridge
from jax._src.array import ArrayImpl as ArrayImpl
