"""The state file of a folder of checkpoints, and looking into checkpoints."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from headwater import dtypes, errors
from headwater.data.io.bundle_writer import BundleWriter
from headwater.tf1.training.checkpoint_reader import CheckpointReader, list_variables, load_checkpoint, load_variable
from headwater.tf1.training.checkpoint_state import (
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
        assert re.fullmatch(re.escape(text) + r"# crc32c: [0-9a-f]{8}\n", (tmp_path / "checkpoint").read_text())
        state = get_checkpoint_state(tmp_path)
        assert state.model_checkpoint_path == f"{tmp_path}/m-2"
        assert list(state.all_model_checkpoint_paths) == [f"{tmp_path}/m-1", f"{tmp_path}/m-2"]

    def test_relative_paths_on_request(self, tmp_path: Path) -> None:
        update_checkpoint_state(tmp_path, tmp_path / "m-2", [tmp_path / "m-1", "m-0"], save_relative_paths=True)
        text = (tmp_path / "checkpoint").read_text()
        assert re.findall(r'"(.*)"', text) == ["m-2", "m-1", "m-0", "m-2"]
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

    def test_no_state(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        assert get_checkpoint_state(tmp_path) is None
        assert get_checkpoint_state(tmp_path / "no") is None
        assert latest_checkpoint(tmp_path) is None
        assert not caplog.records

    @pytest.mark.parametrize("content", [b"garbage {", b'unknown: "x"', b"\xff\xfe"])
    def test_a_damaged_state_and_no_checkpoint(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "checkpoint").write_bytes(content)
        with pytest.raises(errors.DataLossError, match=f"{tmp_path}/checkpoint cannot be used, it is damaged"):
            get_checkpoint_state(tmp_path)

    def test_an_empty_state_and_no_checkpoint(self, tmp_path: Path) -> None:
        (tmp_path / "checkpoint").write_text("")
        with pytest.raises(ValueError, match="model_checkpoint_path is missing"):
            get_checkpoint_state(tmp_path)


def trained(folder: Path) -> list[str]:
    """Three checkpoints and their state, the oldest being noted as the first."""
    paths = [save(folder / f"model.ckpt-{step}", global_step=step) for step in (8, 10, 12)]
    for number, path in enumerate(paths):
        os.utime(f"{path}.index", (1e9 + number, 1e9 + number))
    update_checkpoint_state(folder, paths[-1], paths, save_relative_paths=True)
    return paths


def flips(content: bytes) -> Iterator[bytes]:
    """``content`` with each bit of it flipped, one at a time."""
    for place in range(len(content)):
        for bit in range(8):
            yield content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :]


class TestDamage:
    """A state file that is damaged or missing beside checkpoints."""

    @pytest.mark.slow
    def test_every_flipped_bit_gives_the_newest_or_an_error(self, tmp_path: Path) -> None:
        newest = trained(tmp_path)[-1]
        path = tmp_path / "checkpoint"
        content = path.read_bytes()
        refused = 0
        for damaged in flips(content):
            path.write_bytes(damaged)
            try:
                found = latest_checkpoint(tmp_path)
            except errors.DataLossError as error:
                refused += str(path) in error.message
            else:
                assert found == newest
        # Those that name another checkpoint that is there: model.ckpt-10 in the place of model.ckpt-12.
        assert refused == 1

    def test_every_length_gives_the_newest(self, tmp_path: Path) -> None:
        newest = trained(tmp_path)[-1]
        content = (tmp_path / "checkpoint").read_bytes()
        for length in range(len(content)):
            (tmp_path / "checkpoint").write_bytes(content[:length])
            assert latest_checkpoint(tmp_path) == newest

    @pytest.mark.slow
    def test_a_flipped_bit_in_a_state_of_tensorflows(self, tmp_path: Path) -> None:
        newest = trained(tmp_path)[-1]
        path = tmp_path / "checkpoint"
        content = path.read_bytes().split(b"#")[0]
        for damaged in flips(content):
            path.write_bytes(damaged)
            # It has no checksum: that a user chose the checkpoint before is possible.
            assert latest_checkpoint(tmp_path) in (newest, f"{tmp_path}/model.ckpt-10")

    def test_a_missing_state(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        newest = trained(tmp_path)[-1]
        (tmp_path / "checkpoint").unlink()
        assert latest_checkpoint(tmp_path) == newest
        assert latest_checkpoint(tmp_path) == newest
        (record,) = caplog.records
        assert record.levelno == logging.WARNING
        assert f"{tmp_path}/checkpoint cannot be used, it is missing. {newest} is the newest" in record.getMessage()
        state = get_checkpoint_state(tmp_path)
        assert list(state.all_model_checkpoint_paths) == [newest]

    def test_a_missing_checkpoint(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        before, newest = trained(tmp_path)[1:]
        Path(f"{newest}.index").unlink()
        assert latest_checkpoint(tmp_path) == before
        assert f"it names {newest}, which is not there" in caplog.text

    def test_no_whole_checkpoint(self, tmp_path: Path) -> None:
        for path in trained(tmp_path):
            os.truncate(f"{path}.index", 20)
        (tmp_path / "checkpoint").unlink()
        with pytest.raises(errors.DataLossError, match=r"it is missing.*model\.ckpt-8\.index.*move them away"):
            latest_checkpoint(tmp_path)

    def test_data_that_are_cut_off(self, tmp_path: Path) -> None:
        *_, before, newest = trained(tmp_path)
        os.truncate(f"{newest}.data-00000-of-00001", 3)
        (tmp_path / "checkpoint").unlink()
        assert latest_checkpoint(tmp_path) == before

    def test_a_first_save_that_was_interrupted(self, tmp_path: Path) -> None:
        path = save(tmp_path / "model.ckpt-0", a=1)
        Path(f"{path}.index").unlink()
        assert latest_checkpoint(tmp_path) is None

    def test_names_without_checkpoints(self, tmp_path: Path) -> None:
        (tmp_path / "search.index").write_text("of another program")
        (tmp_path / "checkpoint-notes").write_text("model_checkpoint_path: what a name")
        assert latest_checkpoint(tmp_path) is None

    def test_checkpoints_of_another_state(self, tmp_path: Path) -> None:
        best = save(tmp_path / "best-3", a=1)
        update_checkpoint_state(tmp_path, best, latest_filename="best")
        assert latest_checkpoint(tmp_path) is None
        newest = trained(tmp_path)[-1]
        (tmp_path / "checkpoint").unlink()
        os.utime(f"{best}.index", (2e9, 2e9))
        assert latest_checkpoint(tmp_path) == newest

    def test_an_ambiguous_newest_checkpoint_is_an_error(self, tmp_path: Path) -> None:
        first, _, last = trained(tmp_path)
        (tmp_path / "checkpoint").unlink()
        os.utime(f"{first}.index", (2e9, 2e9))
        with pytest.raises(errors.DataLossError, match=r"model\.ckpt-8 was written last.*model\.ckpt-10 has a higher"):
            latest_checkpoint(tmp_path)
        (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-12"')
        assert latest_checkpoint(tmp_path) == last

    def test_a_choice_by_hand(self, tmp_path: Path) -> None:
        first = trained(tmp_path)[0]
        path = tmp_path / "checkpoint"
        lines = path.read_text().splitlines(keepends=True)
        lines[0] = f'model_checkpoint_path: "{first}"\n'
        path.write_text("".join(lines))
        with pytest.raises(errors.DataLossError, match=r"changed by hand.*delete its line that begins with # crc32c"):
            latest_checkpoint(tmp_path)
        path.write_text("".join(lines[:-1]))
        assert latest_checkpoint(tmp_path) == first


class TestCheckpointsOfAFolder:
    def test_the_newest(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        prefix = save(tmp_path / "m[1]", a=1)
        update_checkpoint_state(tmp_path, prefix)
        assert latest_checkpoint(tmp_path) == prefix
        Path(f"{prefix}.index").unlink()
        Path(f"{prefix}.data-00000-of-00001").unlink()
        assert latest_checkpoint(tmp_path) is None
        assert f"Couldn't match files for checkpoint {prefix}" in caplog.text

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
    def test_contents_of_a_checkpoint(self, tmp_path: Path) -> None:
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
        with pytest.raises(ValueError, match="given directory"):
            load_checkpoint(tmp_path)
        prefix = save(tmp_path / "m", b=[1, 2], a=3)
        update_checkpoint_state(tmp_path, prefix)
        for place in (tmp_path, prefix):
            assert list_variables(place) == [("a", []), ("b", [2])]
            assert load_variable(place, "b:0").tolist() == [1, 2]

    def test_unreadable_checkpoints(self, tmp_path: Path) -> None:
        with pytest.raises(errors.NotFoundError, match=r"m\.index is missing"):
            CheckpointReader(tmp_path / "m")
        (tmp_path / "m").touch()
        with pytest.raises(errors.DataLossError, match="cut off"):
            CheckpointReader(tmp_path / "m")
