"""Headwater: training on a cluster of parameter servers and workers, with TensorFlow's API on JAX.

``from headwater import tf`` is the namespace that programs written for TensorFlow expect. `ParameterServer` keeps the
parameters of a JAX program on the ``ps`` tasks of a cluster. `report` reports a program's progress to the platform. All
are loaded at first use, so that importing the package is fast.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
from typing import TYPE_CHECKING, Any

from headwater.import_hooks import load_at_first_use, on_import
from headwater.jaxlib_faults import disarm

if TYPE_CHECKING:
    from headwater.ps.pytrees import ParameterServer as ParameterServer
    from headwater.tf1.compat import tf as tf
    from headwater.tf1.training.accounted import accounted as accounted
    from headwater.tf1.training.progress import report as report

__version__ = "0.2.0"

disarm()


def _keep_compiled(jax: object) -> None:
    from headwater.compilation_cache import keep_compiled  # noqa: PLC0415  with the rest of JAX

    keep_compiled(jax)


on_import("jax", _keep_compiled)

# The final garbage collections of a process with JAX take 0.35 s, for memory that its exit frees anyway.
atexit.register(gc.freeze)


#: Modules of Keras that import Matplotlib and scikit-learn if these are installed: almost half of the import's time.
_SELDOM_USED = {
    "keras.src.visualization",
    *(f"{keras}.{name}" for keras in ("keras", "keras._tf_keras.keras") for name in ("visualization", "wrappers")),
}


def _prepare_keras() -> None:
    """Selects Keras's backend, which is read at its first import, unless the program has chosen one. Defers the import
    of modules that few programs use."""
    os.environ.setdefault("KERAS_BACKEND", "jax")
    load_at_first_use(_SELDOM_USED)


def _adapt(keras: Any) -> None:
    if keras.config.backend() == "jax":
        from headwater.keras.adapting import adapt_keras  # noqa: PLC0415  with the rest of Keras

        adapt_keras()


on_import("keras", _adapt, before=_prepare_keras)


#: The public names that are loaded at first use, and the modules that hold them.
_LAZY = {
    "ParameterServer": "headwater.ps.pytrees",
    "accounted": "headwater.tf1.training.accounted",
    "report": "headwater.tf1.training.progress",
}


def __getattr__(name: str) -> Any:
    if name == "tf":
        from headwater.tf1.compat import tf  # noqa: PLC0415

        return tf
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, "tf"})
