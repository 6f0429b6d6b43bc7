"""Effects of a session's `ConfigProto` on its devices, and messages about it."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from headwater import tf
from headwater.graph.master.session_config import device_counts, process_settings
from headwater.graph.runtime.process import ProcessSettings, configure

TASK = "/job:localhost/replica:0/task:0"


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def _names(session: Any) -> list[str]:
    return [device.name.removeprefix(f"{TASK}/device:") for device in session.list_devices()]


def test_several_cpus_map_to_the_only_cpu() -> None:
    with tf.device("/cpu:1"):
        x = tf.Variable(1.0)
    y = x + 1.0
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        assert _names(session) == ["CPU:0", "CPU:1"]
        session.run(x.initializer)
        assert session.run(y) == 2.0
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="CPU:1"):
        session.run(x.initializer)


def test_counts() -> None:
    with tf.Session(config=tf.ConfigProto(device_count={"GPU": 0})) as session:
        assert _names(session) == ["CPU:0"]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"device_count\['GPU'\]"):
        device_counts(tf.ConfigProto(device_count={"gpu": -1}))


def test_a_server_shows_as_many_devices() -> None:
    server = tf.train.Server.create_local_server(config=tf.ConfigProto(device_count={"CPU": 3}))
    try:
        with tf.Session(server.target) as session:
            assert [device.name[-5:] for device in session.list_devices()] == ["CPU:0", "CPU:1", "CPU:2"]
    finally:
        server.stop()


def test_placement_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    a, b = tf.constant(1.0, name="a"), tf.constant(2.0, name="b")
    c = tf.add(a, b, name="c")
    with tf.Session(config=tf.ConfigProto(log_device_placement=True)) as session:
        session.run(c)
        session.run(c + 1.0)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["Device mapping:", "no known devices."]
    assert set(lines[2:5]) == {
        f"{name}: ({kind}): {TASK}/device:CPU:0" for name, kind in (("a", "Const"), ("b", "Const"), ("c", "Add"))
    }
    assert len(lines) == len(set(lines)) == 7


def test_settings_of_the_process() -> None:
    config = tf.ConfigProto(
        intra_op_parallelism_threads=2,
        gpu_options=tf.GPUOptions(per_process_gpu_memory_fraction=0.25, allow_growth=True, visible_device_list="1"),
    )
    settings = process_settings(config)
    assert settings.visible_gpus == "1"
    assert settings.environment() == {
        "NPROC": "2",
        "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.25",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }
    assert process_settings(None).environment() == {}
    wrong = tf.ConfigProto(gpu_options=tf.GPUOptions(per_process_gpu_memory_fraction=2))
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be from 0 to 1"):
        tf.Session(config=wrong)


def test_late_settings_are_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    importlib.import_module("jax").devices()
    late = ProcessSettings(cpu_threads=77)
    assert not configure(late)
    assert configure(late)
    assert [record.message for record in caplog.records] == [
        f"{late} has no effect: this process's devices are already in use"
    ]
