"""What a `ConfigProto` says of the whole process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

THREADS = """
import json, os, pathlib, warnings
import numpy as np
from headwater import tf

x = tf.placeholder(tf.float32, [200, 200])
session = tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=3))
session.run(tf.matmul(x, x), {x: np.ones([200, 200])})
names = [(path / "comm").read_text().strip() for path in pathlib.Path("/proc/self/task").iterdir()]
tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=5))
print(json.dumps([names.count("tf_XLAEigen"), "NPROC" in os.environ]))
"""


def run(program: str, **environ: str) -> tuple[Any, str]:
    inherited = {name: value for name, value in os.environ.items() if name not in ("NPROC", "HEADWATER_VIRTUAL_GPUS")}
    env = inherited | {"JAX_PLATFORMS": "cpu"} | environ
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads can be counted on Linux only")
def test_threads_of_the_cpu() -> None:
    (threads, leaked), said = run(THREADS)
    assert threads == 3
    assert not leaked
    assert "cpu_threads=5" in said
    assert "changes nothing" in said
