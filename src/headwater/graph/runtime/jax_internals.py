"""All uses of JAX's private modules, in one file, so that changes in a release of JAX are easy to find.

`docs/dependencies.md` lists the tested releases.
"""

from __future__ import annotations

from jax._src import core as core
from jax._src import xla_bridge as xla_bridge
from jax._src.array import ArrayImpl as ArrayImpl
