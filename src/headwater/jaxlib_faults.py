"""Versions of jaxlib that crash and miscalculate on CPUs, disarmed before they compile anything.

jaxlib 0.10.2 and 0.11.0 hand fusions to YNNPACK that end the process with SIGSEGV (jax issues 39257 and 40412) or give
wrong numbers (39103). A flag of XLA keeps them from it. XLA reads its flags once, when JAX starts its first backend; so
the flag is put there at that moment, behind those that the user gave, and taken away afterwards: a process that this
one starts may have another XLA, which ends where it does not know a flag.
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
_CLIENTS: Final = "jaxlib.xla_client"


def disarm() -> None:
    """Sees to it that this process's CPU backend makes no fusions of YNNPACK where these are broken.

    It does not import JAX: it waits for that. A user who has set the flag in ``XLA_FLAGS`` keeps what it says.

    Raises:
      ImportError: JAX has started its CPU backend, and compiles such fusions already.
    """
    on_import(_CLIENTS, _guard)


def _guard(clients: Any) -> None:
    """Has the CPU backend started with the flag."""
    version = sys.modules["jaxlib.version"].__version__
    if version not in AFFECTED or hasattr(clients.make_cpu_client, "__wrapped__"):
        return
    if _is_armed():
        raise ImportError(
            f"jaxlib {version} crashes and miscalculates on CPUs, and JAX has started its CPU backend before headwater "
            f"was imported, which could have prevented it. Import headwater before the first computation of JAX, or "
            f"start the process with XLA_FLAGS={FLAG}= or install another jaxlib than {' and '.join(AFFECTED)}."
        )
    start = clients.make_cpu_client

    @functools.wraps(start)
    def make_cpu_client(*args: Any, **kwargs: Any) -> Any:
        with _flagged():
            clients.CompileOptions()  # reads the flags
            return start(*args, **kwargs)

    clients.make_cpu_client = make_cpu_client


def _is_armed() -> bool:
    """Whether the CPU backend runs and makes such fusions: what it makes of a product's sum says it."""
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
def _flagged() -> Generator[None]:
    """The environment with the flag in it, where the user has not set it."""
    given = os.environ.get("XLA_FLAGS")
    flags = given or ""
    if flags and not flags.lstrip().startswith("-"):
        with open(flags) as file:  # XLA takes the name of a file, too
            flags = file.read()
    if FLAG in flags:
        yield
        return
    os.environ["XLA_FLAGS"] = f"{flags} {FLAG}=".strip()
    try:
        yield
    finally:
        if given is None:
            del os.environ["XLA_FLAGS"]
        else:
            os.environ["XLA_FLAGS"] = given
