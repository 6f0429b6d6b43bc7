"""The state file of a folder of checkpoints, and looking into checkpoints."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from headwater import dtypes, errors
from headwater.io.bundle_writer import BundleWriter
from headwater.training.checkpoint_reader import CheckpointReader, list_variables, load_checkpoint, load_variable
from headwater.training.checkpoint_state import (
    checkpoint_exists,
    generate_checkpoint_state_proto,
    get_checkpoint_mtimes,
    get_checkpoint_state,
    latest_checkpoint,
    meta_graph_filename,
    remove_checkpoint,
    update_checkpoint_state,
)


def save(prefix: Path, **tensors: object) -> str:
    with BundleWriter(prefix) as writer:
        for name, value in tensors.items():
            writer.add(name, np.asarray(value))
    return str(prefix)


class TestStateFile:
    def test_absolute_paths(self, tmp_path: Path) -> None:
        update_checkpoint_state(tmp_path, tmp_path / "m-2", [tmp_path / "m-1"])
        text = f'model_checkpoint_path: "{tmp_path}/m-2"\n' + "".join(
            f'all_model_checkpoint_paths: "{tmp_path}/m-{n}"\n' for n in (1, 2)
        )
        assert (tmp_path / "checkpoint").read_text() == text
        state = get_checkpoint_state(tmp_path)
        assert state.model_checkpoint_path == f"{tmp_path}/m-2"
        assert list(state.all_model_checkpoint_paths) == [f"{tmp_path}/m-1", f"{tmp_path}/m-2"]

    def test_relative_paths_on_request(self, tmp_path: Path) -> None:
        update_checkpoint_state(tmp_path, tmp_path / "m-2", [tmp_path / "m-1", "m-0"], save_relative_paths=True)
        text = (tmp_path / "checkpoint").read_text()
        assert [line.split('"')[1] for line in text.splitlines()] == ["m-2", "m-1", "m-0", "m-2"]
        (tmp_path / "checkpoint").rename(tmp_path / "moved")
        assert get_checkpoint_state(tmp_path, "moved").model_checkpoint_path == f"{tmp_path}/m-2"

    def test_a_relative_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "sub").mkdir()
        update_checkpoint_state("sub", "sub/m-2")
        assert '"m-2"' in (tmp_path / "sub" / "checkpoint").read_text()
        assert get_checkpoint_state("sub").model_checkpoint_path == "sub/m-2"
        update_checkpoint_state("sub", "/elsewhere/m-2")
        assert get_checkpoint_state("sub").model_checkpoint_path == "/elsewhere/m-2"

    def test_timestamps(self, tmp_path: Path) -> None:
        update_checkpoint_state(tmp_path, "b", ["a", "b"], None, [1.5, 2.25], 1.0)
        state = get_checkpoint_state(tmp_path)
        assert list(state.all_model_checkpoint_timestamps) == [1.5, 2.25]
        assert state.last_preserved_timestamp == 1.0
        with pytest.raises(ValueError, match="all_model_checkpoint_timestamps"):
            generate_checkpoint_state_proto(tmp_path, "b", ["a", "b"], [1.0])

    def test_wrong_arguments(self, tmp_path: Path) -> None:
        with pytest.raises(RuntimeError, match="different save path"):
            update_checkpoint_state(tmp_path, tmp_path / "checkpoint")
        with pytest.raises(errors.NotFoundError):
            update_checkpoint_state(tmp_path / "no", "m")

    def test_no_state_and_damaged_state(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        assert get_checkpoint_state(tmp_path) is None
        assert get_checkpoint_state(tmp_path / "no") is None
        assert latest_checkpoint(tmp_path) is None
        assert not caplog.records
        for content in (b"garbage {", b'unknown: "x"', b"\xff\xfe"):
            (tmp_path / "checkpoint").write_bytes(content)
            with caplog.at_level(logging.WARNING):
                assert get_checkpoint_state(tmp_path) is None
            assert f"{tmp_path}/checkpoint: checkpoint state ignored" in caplog.text
            caplog.clear()
        (tmp_path / "checkpoint").write_text("")
        with pytest.raises(ValueError, match="model_checkpoint_path is missing"):
            get_checkpoint_state(tmp_path)


class TestCheckpointsOfAFolder:
    def test_the_newest(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        prefix = save(tmp_path / "m[1]", a=1)
        update_checkpoint_state(tmp_path, prefix)
        assert latest_checkpoint(tmp_path) == prefix
        update_checkpoint_state(tmp_path, tmp_path / "gone")
        assert latest_checkpoint(tmp_path) is None
        assert "gone" in caplog.text

    def test_existence(self, tmp_path: Path) -> None:
        save(tmp_path / "m-1", a=1)
        (tmp_path / "old").touch()
        assert checkpoint_exists(tmp_path / "m-1")
        assert checkpoint_exists(tmp_path / "m-*")
        assert checkpoint_exists(tmp_path / "old")
        assert not checkpoint_exists(tmp_path / "m-2")
        times = get_checkpoint_mtimes([tmp_path / "m-1", tmp_path / "no", tmp_path / "old"])
        assert times == [float(int((tmp_path / name).stat().st_mtime)) for name in ("m-1.index", "old")]

    def test_removing(self, tmp_path: Path) -> None:
        save(tmp_path / "m-1", a=1)
        save(tmp_path / "m-10", a=1)
        for name in ("m-1.meta", "old", "old.meta"):
            (tmp_path / name).touch()
        remove_checkpoint(tmp_path / "m-1")
        remove_checkpoint(tmp_path / "no")
        remove_checkpoint(tmp_path / "old", 1)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["m-10.data-00000-of-00001", "m-10.index"]

    def test_name_of_the_graph(self) -> None:
        assert meta_graph_filename("a/m-1") == "a/m-1.meta"
        assert meta_graph_filename("a/m-1-?????-of-00003", "graph") == "a/m-1.graph"


class TestReader:
    def test_what_is_in_a_checkpoint(self, tmp_path: Path) -> None:
        prefix = save(tmp_path / "m", w=np.ones((2, 3), np.float32), s=np.array(b"text", object), n=np.int64(3))
        reader = CheckpointReader(prefix)
        assert reader.get_variable_to_shape_map() == {"w": [2, 3], "s": [], "n": []}
        assert reader.get_variable_to_dtype_map() == {"w": dtypes.float32, "s": dtypes.string, "n": dtypes.int64}
        assert reader.has_tensor("w")
        assert not reader.has_tensor("v")
        assert isinstance(reader.get_tensor("n"), np.int64)
        assert reader.get_tensor("s") == b"text"
        assert reader.debug_string() == b"n (DT_INT64) []\ns (DT_STRING) []\nw (DT_FLOAT) [2,3]\n"
        with pytest.raises(errors.NotFoundError, match="Key v not found"):
            reader.get_tensor("v")

    def test_by_folder_or_name(self, tmp_path: Path) -> None:
        prefix = save(tmp_path / "m", b=[1, 2], a=3)
        with pytest.raises(ValueError, match="given directory"):
            load_checkpoint(tmp_path)
        update_checkpoint_state(tmp_path, prefix)
        for place in (tmp_path, prefix):
            assert list_variables(place) == [("a", []), ("b", [2])]
            assert load_variable(place, "b:0").tolist() == [1, 2]

    def test_what_is_none(self, tmp_path: Path) -> None:
        with pytest.raises(errors.NotFoundError, match=r"m\.index is missing"):
            CheckpointReader(tmp_path / "m")
        (tmp_path / "m").touch()
        with pytest.raises(errors.UnimplementedError, match="V1"):
            CheckpointReader(tmp_path / "m")
