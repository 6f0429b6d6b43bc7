"""Output of ``headwater export`` for tables."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from headwater.errors import InvalidArgumentError, NotFoundError
from headwater.platform.cli.app import app
from headwater.platform.cli.export import export
from headwater.tables import Adagrad, Table, TableConfig
from headwater.tables.hashing import string_keys
from headwater.tables.snapshots import save

KEYS = [7, -5, 2**62]


def saved(folder: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Saves two tables; gives the rows of the one with `KEYS` before and after its last update."""
    table = Table("users", TableConfig(dim=3, optimizer=Adagrad(0.1)))
    before = table.look_up(np.array(KEYS))
    save(table, folder)
    table.update(np.array(KEYS[:1]), np.ones((1, 3), np.float32))
    save(table, folder, delta=True)
    after = table.look_up(np.array(KEYS))
    table.close()
    with_strings = Table("items", TableConfig(dim=2, strings=True))
    with_strings.look_up(["hat", "shoe"])
    save(with_strings, folder)
    with_strings.close()
    return np.stack([before, after])


@pytest.mark.parametrize("kind", ["arrow", "feather"])
def test_arrow_reads_the_written_file(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    ipc = pytest.importorskip("pyarrow.ipc")
    rows = saved(tmp_path)
    target = tmp_path / f"users.{kind}"
    export(str(tmp_path), str(target), table="users", save=None)
    assert capsys.readouterr().out == f"3 rows of 'users', 3 numbers each, are in {target}\n"
    with ipc.open_file(str(target)) as reader:
        found = reader.read_all()
    assert str(found.schema.field("key").type) == "int64"
    assert str(found.schema.field("row").type) == "fixed_size_list<item: float>[3]"
    order = np.argsort(KEYS)
    assert found["key"].to_pylist() == sorted(KEYS)
    np.testing.assert_array_equal(np.array(found["row"].to_pylist(), np.float32), rows[1][order])
    export(str(tmp_path), str(target), table="items", save=None)
    with ipc.open_file(str(target)) as reader:
        found = reader.read_all()
    words = sorted(string_keys(["hat", "shoe"]).tolist())
    assert [found["key"].to_pylist(), found["check"].to_pylist()] == [list(each) for each in zip(*words, strict=True)]


def test_numpy_reads_an_earlier_save(tmp_path: Path) -> None:
    rows = saved(tmp_path)
    target = tmp_path / "users.npz"
    done = CliRunner().invoke(app, ["export", str(tmp_path), str(target), "--table=users", "--save=1"])
    assert done.exit_code == 0, done.output
    with np.load(target) as found:
        assert found["key"].tolist() == sorted(KEYS)
        np.testing.assert_array_equal(found["row"], rows[0][np.argsort(KEYS)])


def test_unwritable_output_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotFoundError, match="holds no save of an embedding table"):
        export(str(tmp_path), "a.npz", table=None, save=None)
    saved(tmp_path)
    with pytest.raises(InvalidArgumentError, match="several tables, name one: items, users"):
        export(str(tmp_path), "a.npz", table=None, save=None)
    with pytest.raises(InvalidArgumentError, match=r"ends in '\.csv', not one of \.arrow, \.feather, \.npz"):
        export(str(tmp_path), "a.csv", table="users", save=None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = CliRunner().invoke(app, ["export", str(tmp_path), str(tmp_path / "a.arrow"), "--table=users"])
    assert done.exit_code != 0
    assert "pip install 'headwater[arrow]'" in done.output
    assert not (tmp_path / "a.arrow").exists()
