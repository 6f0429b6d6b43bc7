"""Output of ``headwater inspect`` for checkpoints."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from headwater.data.io.bundle_writer import BundleWriter
from headwater.errors import DataLossError, NotFoundError
from headwater.platform.cli.inspect import inspect
from headwater.tables import Adagrad, Table, TableConfig
from headwater.tables.snapshots import save


def shown(path: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    inspect(str(path), keys=2, as_json=True)
    found = json.loads(capsys.readouterr().out)
    inspect(str(path), keys=2, as_json=False)
    text = capsys.readouterr().out
    assert all(str(one["name"])[:8] in text for one in found)
    return found


def test_saves_of_a_table_with_its_rows_sizes_and_most_used_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = Table("users", TableConfig(dim=4, optimizer=Adagrad(0.1)))
    for ids in ([5, 7, 9], [7, 9], [7]):
        table.look_up(np.array(ids))
    save(table, tmp_path)
    table.update(np.array([9]), np.ones((1, 4), np.float32))
    save(table, tmp_path, delta=True)
    table.close()
    whole, delta = shown(tmp_path, capsys)
    assert whole["kind"] == "table"
    assert (whole["rows"], whole["shape"], whole["state"], whole["keys"]) == (3, [4], 1, "integers")
    assert whole["hot"] == [[7, 3], [9, 2]]
    assert (delta["kind"], delta["rows"], delta["save"], delta["step"]) == ("delta", 1, 2, 1)
    assert isinstance(whole["nbytes"], int)
    assert whole["nbytes"] > 3 * 4 * 8

    (part,) = tmp_path.glob("users.000002.*.rows")
    part.write_bytes(part.read_bytes()[:-9])
    with pytest.raises(DataLossError, match="truncated"):
        inspect(str(tmp_path), keys=2, as_json=True)


def test_a_checkpoint_of_tensorflow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with BundleWriter(str(tmp_path / "model")) as writer:
        writer.add("weights", np.zeros((3, 5), np.float32))
    (found,) = shown(tmp_path / "model", capsys)
    assert (found["name"], found["kind"], found["shape"], found["nbytes"]) == ("weights", "variable", [3, 5], 60)


def test_missing_files_are_reported(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="holds no save of an embedding table"):
        inspect(str(tmp_path), keys=2, as_json=True)
    with pytest.raises(NotFoundError, match="there is no checkpoint"):
        inspect(str(tmp_path / "model"), keys=2, as_json=True)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ValueError, match="neither a model of Keras nor its weights"):
        inspect(str(tmp_path / "text"), keys=2, as_json=True)
