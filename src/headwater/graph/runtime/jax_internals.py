"""All uses of JAX's private modules, in one file, so that changes in a release of JAX are easy to find.

`docs/dependencies.md` lists the tested releases. The modules are imported when one of the names is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jax._src import core as core
    from jax._src import xla_bridge as xla_bridge
    from jax._src.array import ArrayImpl as ArrayImpl


def __getattr__(name: str) -> Any:
    if name == "ArrayImpl":
        return importlib.import_module("jax._src.array").ArrayImpl
    if name in ("core", "xla_bridge"):
        return importlib.import_module(f"jax._src.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
