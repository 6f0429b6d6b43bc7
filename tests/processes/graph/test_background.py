"""A process ends during a compilation in the background."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

PROGRAM = """
import logging
import sys
import threading
import jax
import jax.numpy as jnp
from headwater.graph.background import Compilation

lowered = threading.Event()

def listen(event, duration_secs, **details):
    if event == "/jax/core/compile/jaxpr_to_mlir_module_duration":
        lowered.set()

def chain(x):
    for i in range(40):
        x = jnp.tanh(x @ x + i) * jnp.sin(x)
    return x.sum()

logging.basicConfig(level=logging.INFO)
values = jnp.ones((64, 64))
jax.monitoring.register_event_duration_secs_listener(listen)
Compilation(lambda: jax.jit(jax.grad(chain)).lower(values).compile(), "the compilation of chain")
Compilation(lambda: print("a compilation that nobody needs"), "another")
lowered.wait()
sys.exit(3)
"""


def test_a_process_ends_after_the_compilation_in_progress() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert "the process ends after the compilation of chain" in done.stderr
    assert not done.stdout
