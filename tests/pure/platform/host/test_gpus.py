from __future__ import annotations

from pathlib import Path

from headwater.platform.host.gpus import find_gpus


def test_finds_the_gpus_that_may_be_used(tmp_path: Path) -> None:
    (tmp_path / "0000:01:00.0").mkdir()
    (tmp_path / "0000:02:00.0").mkdir()
    assert find_gpus({}, tmp_path) == ("0", "1")
    assert find_gpus({}, tmp_path / "absent") == ()
    assert find_gpus({"CUDA_VISIBLE_DEVICES": "3, GPU-ab"}, tmp_path) == ("3", "GPU-ab")
    assert find_gpus({"CUDA_VISIBLE_DEVICES": ""}, tmp_path) == ()
    assert find_gpus({"CUDA_VISIBLE_DEVICES": "-1"}, tmp_path) == ()
