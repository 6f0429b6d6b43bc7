"""Traces of executables that another process has compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import jax
from headwater import tf
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
with tf.Graph().as_default(), tf.Session() as session:
    x = tf.ones([30, 30])
    session.run(tf.reduce_sum(tf.matmul(x, x), name="earlier"))
    with tf.name_scope("scope"):
        again = tf.matmul(tf.matmul(x, x), x, name="again")
    metadata = tf.RunMetadata()
    session.run(again, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
    for device in metadata.step_stats.dev_stats:
        print(device.device, sorted({node.node_name for node in device.node_stats}))
"""


@pytest.mark.slow
def test_an_executable_from_the_cache_is_traced_like_a_new_one(tmp_path: Path) -> None:
    environment = os.environ | {"HEADWATER_JIT": "on", "HEADWATER_COMPILATION_CACHE": str(tmp_path)}
    outputs = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, text=True, capture_output=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert any(tmp_path.rglob("*")), "the cache is empty"
    assert "device:CPU:0/executables ['scope/again']" in outputs[0]
    assert outputs[1] == outputs[0]
