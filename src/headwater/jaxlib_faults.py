"""Workaround for versions of jaxlib that crash, miscalculate or are slow on CPUs.

jaxlib 0.10.2 and 0.11.0 hand fusions to YNNPACK that end the process with SIGSEGV (jax issues 39257 and 40412) or give
wrong numbers (39103). A flag of XLA disables these fusions. jaxlib 0.12 also hands convolutions to YNNPACK, whose
gradients of filters take two to three times as long as XLA's own; the flag leaves it sums and single
products of matrices, because it miscalculates products that are fused with a constant of equal elements.

XLA reads its flags once, when JAX starts its first backend; so the flag is added to the user's flags at that moment,
and removed afterwards: a child process may have another version of XLA, which exits on an unknown flag.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Generator
from typing import Any, Final

from headwater.import_hooks import on_import

AFFECTED: Final = ("0.10.2", "0.11.0")
FLAG: Final = "--xla_cpu_experimental_ynn_fusion_type"
#: Beginning of versions whose YNNPACK is sound, and slow at convolutions, with the fusions that are left to it there.
_SLOW: Final = "0.12."
_FAST_FUSIONS: Final = "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT,LIBRARY_FUSION_TYPE_REDUCE"
_CLIENTS: Final = "jaxlib.xla_client"


def disarm() -> None:
    """Disables unsound or slow YNNPACK fusions of this process's CPU backend in the affected versions of jaxlib.

    It does not import JAX, but waits for its import. A flag that the user has set in ``XLA_FLAGS`` is kept.

    Raises:
      ImportError: JAX has started its CPU backend with such fusions already.
    """
    on_import(_CLIENTS, _guard)


def _guard(clients: Any) -> None:
    """Wraps the start of the CPU backend, to add the flag."""
    version = sys.modules["jaxlib.version"].__version__
    unsound = version in AFFECTED
    if not (unsound or version.startswith(_SLOW)) or hasattr(clients.make_cpu_client, "__wrapped__"):
        return
    if unsound and _is_armed():
        raise ImportError(
            f"jaxlib {version} crashes and miscalculates on CPUs, and JAX has started its CPU backend before headwater "
            f"was imported, which could have prevented it. Import headwater before the first computation of JAX, or "
            f"start the process with XLA_FLAGS={FLAG}= or install another jaxlib than {' and '.join(AFFECTED)}."
        )
    start = clients.make_cpu_client

    @functools.wraps(start)
    def make_cpu_client(*args: Any, **kwargs: Any) -> Any:
        with _flagged("" if unsound else _FAST_FUSIONS):
            clients.CompileOptions()  # reads the flags
            return start(*args, **kwargs)

    clients.make_cpu_client = make_cpu_client


def _is_armed() -> bool:
    """Returns whether the CPU backend runs and makes such fusions, from the compiled sum of a product."""
    bridge: Any = sys.modules.get("jax._src.xla_bridge")
    if bridge is None or "cpu" not in bridge._backends:  # jax.devices would start it
        return False
    jax: Any = sys.modules["jax"]
    number = jax.ShapeDtypeStruct((64, 64), "float32")

    def sums(a: Any, b: Any) -> Any:
        return (a * b).sum(1)

    with jax.default_device(jax.devices("cpu")[0]):
        compiled = jax.jit(sums).lower(number, number).compile()
    return "__ynn_fusion" in compiled.as_text()


@contextlib.contextmanager
def _flagged(fusions: str) -> Generator[None]:
    """Context manager that adds the flag with these fusions to the environment, unless the user has set it."""
    given = os.environ.get("XLA_FLAGS")
    flags = given or ""
    if flags and not flags.lstrip().startswith("-"):
        with open(flags) as file:  # XLA also accepts the name of a file with flags
            flags = file.read()
    if FLAG in flags:
        yield
        return
    os.environ["XLA_FLAGS"] = f"{flags} {FLAG}={fusions}".strip()
    try:
        yield
    finally:
        if given is None:
            del os.environ["XLA_FLAGS"]
        else:
            os.environ["XLA_FLAGS"] = given
