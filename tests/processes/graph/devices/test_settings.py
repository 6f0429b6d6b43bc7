"""Settings of a `ConfigProto` that concern the whole process."""

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
# A thread gets its name when it first runs. The steps after that show that no more come.
more = 20
while more:
    session.run(tf.matmul(x, x), {x: np.ones([200, 200])})
    names = [(path / "comm").read_text().strip() for path in pathlib.Path("/proc/self/task").iterdir()]
    more -= names.count("tf_XLAEigen") >= 3
tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=5))
print(json.dumps([names.count("tf_XLAEigen"), "NPROC" in os.environ]))
"""

SHARE = """
import json, os, pathlib
import numpy as np
from headwater import tf

def threads():
    names = [(path / "comm").read_text().strip() for path in pathlib.Path("/proc/self/task").iterdir()]
    return names.count("tf_XLAEigen")

server = tf.train.Server({"ps": ["localhost:0"], "worker": ["localhost:0"]}, "ps", 0)
set_meanwhile = "NPROC" in os.environ
x = tf.placeholder(tf.float32, [200, 200])
with tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=int(os.environ["WANTED"]))) as session:
    session.run(tf.matmul(x, x), {x: np.ones([200, 200])})
print(json.dumps([threads(), set_meanwhile, os.environ.get("NPROC")]))
server.stop()
"""


def run(program: str, **environ: str) -> tuple[Any, str]:
    inherited = {name: value for name, value in os.environ.items() if name not in ("NPROC", "HEADWATER_VIRTUAL_GPUS")}
    # Executables have threads; kernels have none.
    env = inherited | {"JAX_PLATFORMS": "cpu", "HEADWATER_JIT": "on"} | environ
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads can be counted on Linux only")
def test_threads_of_the_cpu() -> None:
    (threads, leaked), said = run(THREADS)
    assert threads == 3
    assert not leaked
    assert "cpu_threads=5" in said
    assert "has no effect" in said


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads can be counted on Linux only")
def test_a_server_leaves_others_their_cores_and_children_their_environment() -> None:
    share = max(1, len(os.sched_getaffinity(0)) // 2)
    assert run(SHARE, WANTED="0")[0] == [share, False, None]
    # The session's and the user's settings take precedence.
    assert run(SHARE, WANTED="5")[0] == [5, False, None]
    assert run(SHARE, WANTED="0", NPROC="4")[0] == [4, True, "4"]


CONFIG = """
import json, os
from headwater import tf

config = tf.config
cpu, *gpus = config.list_physical_devices()
said = [[*map(str, (cpu.name, cpu.device_type))], [gpu.name for gpu in gpus]]

def refusal(function, *args):
    try:
        function(*args)
    except (KeyError, RuntimeError, ValueError) as error:
        return type(error).__name__ + ": " + str(error)

said.append(refusal(config.experimental.set_memory_growth, cpu, True))
said.append(refusal(config.set_visible_devices, "x"))
for gpu in gpus:
    config.experimental.set_memory_growth(gpu, True)
said.append([config.experimental.get_memory_growth(gpu) for gpu in gpus])
said.append(os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE"))
config.threading.set_intra_op_parallelism_threads(3)
said.append([device.name for device in config.list_logical_devices()])
said.append(refusal(config.threading.set_intra_op_parallelism_threads, 4))
said.append(config.threading.get_intra_op_parallelism_threads())
said.append([device.device_type for device in config.get_visible_devices()])
print(json.dumps(said))
"""


def test_devices_that_the_program_asks_for() -> None:
    (cpu, gpus, growth, unknown, grows, variable, logical, late, threads, visible), _ = run(
        CONFIG, HEADWATER_VIRTUAL_GPUS="2"
    )
    assert cpu == ["/physical_device:CPU:0", "CPU"]
    assert gpus == ["/physical_device:GPU:0", "/physical_device:GPU:1"]
    assert growth == "ValueError: Cannot set memory growth on non-GPU and non-Pluggable devices"
    assert unknown == "ValueError: Unrecognized device: 'x'"
    assert grows == [True, True]
    assert variable == "false"
    assert logical == ["/device:CPU:0", "/device:GPU:0", "/device:GPU:1"]
    assert late == "RuntimeError: Intra op parallelism cannot be modified after being initialized"
    assert (threads, visible) == (3, ["CPU", "GPU", "GPU"])
