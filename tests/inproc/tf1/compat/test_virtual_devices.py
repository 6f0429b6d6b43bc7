"""Several virtual devices of the CPU, in separate processes, because the setting is for the whole process."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
from headwater import tf

config = tf.config.experimental
(cpu,) = config.list_physical_devices("CPU")


def tried(call):
    try:
        return call()
    except Exception as error:
        return type(error).__name__, str(error)


virtual = config.VirtualDeviceConfiguration
print(tuple(virtual()), tuple(virtual(memory_limit=5)), config.get_virtual_device_configuration(cpu))
print(tried(lambda: config.set_virtual_device_configuration(cpu, [virtual(memory_limit=5)])))
print(tried(lambda: config.set_virtual_device_configuration("CPU:0", [virtual(), virtual()])))
config.set_virtual_device_configuration(cpu, [virtual(), virtual()])
print(len(config.get_virtual_device_configuration(cpu)))
print([device.name.rpartition("device:")[2] for device in config.list_logical_devices("CPU")])
print(tried(lambda: config.set_virtual_device_configuration(cpu, [virtual()] * 3)))
config.set_virtual_device_configuration(cpu, [virtual(), virtual()])
with tf.device("/cpu:1"):
    x = tf.constant(1.0) * 2
with tf.Session() as session:
    print([device.name for device in session.list_devices()], session.run(x))
with tf.Session(config=tf.ConfigProto(device_count={"CPU": 1})) as session:
    print([device.name for device in session.list_devices()])
"""


def test_the_cpu_is_as_many_devices_as_were_asked_for() -> None:
    found = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    # TensorFlow 1.15's answer, except for its device XLA_CPU:0.
    assert found.stdout.splitlines() == [
        "(None,) (5,) None",
        "('ValueError', 'Setting memory limit on CPU virtual devices is currently not supported')",
        "('ValueError', \"Unrecognized device: 'CPU:0'\")",
        "2",
        "['CPU:0', 'CPU:1']",
        "('RuntimeError', 'Virtual devices cannot be modified after being initialized')",
        "['/job:localhost/replica:0/task:0/device:CPU:0', '/job:localhost/replica:0/task:0/device:CPU:1'] 2.0",
        "['/job:localhost/replica:0/task:0/device:CPU:0']",
    ]
