"""Compiled programs are cached on disk: another process uses them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headwater import compilation_cache

_PROGRAM = """
import headwater, jax
hits = []
jax.monitoring.register_event_listener(lambda event, **_: hits.append(event))
jax.jit(lambda x: x @ x + 1)(jax.numpy.ones((3, 3)))
print(sum(event.endswith("/cache_hits") for event in hits), jax.config.jax_compilation_cache_dir)
"""


@pytest.mark.parametrize("chosen", ["", "off"])
def test_another_process_finds_them(chosen: str, tmp_path: Path) -> None:
    environment = os.environ | {
        compilation_cache.FOLDER: chosen or str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    told = [
        subprocess.run([sys.executable, "-c", _PROGRAM], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    first, second = (each.stdout.split() for each in told)
    assert first[0] == "0"
    assert (int(second[0]) > 0) == (chosen != "off")
    assert second[1].startswith(str(tmp_path)) == (chosen != "off")
