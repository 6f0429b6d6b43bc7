"""Files of killed savers are deleted, and files of running savers are kept."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from headwater.tf1.training.leftovers import Leftovers, on_own_disk

HEX = "0123456789abcdef" * 2


def make(folder: Path, *names: str) -> None:
    for name in names:
        if "_temp_" in name:
            (folder / name).mkdir()
            (folder / name / "part-00000-of-00002.index").write_text("x")
        else:
            (folder / name).write_text("x")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


LEFT = (f"model_temp_{HEX}", f"model-7_temp_{HEX}", ".model-7.index.0123456789ab.tmp", ".model.meta.0123456789ab.tmp")
OTHERS = (
    f"model.ckpt-7_temp_{HEX}",
    f"other-7_temp_{HEX}",
    ".model.ckpt-7.index.0123456789ab.tmp",
    "checkpoint",
    "model-7.index",
    "model-7.data-00000-of-00001",
    "model_temp_mine",
    ".model-7.notes.tmp",
)


def test_deleted_and_kept_leftovers(tmp_path: Path) -> None:
    make(tmp_path, *LEFT, *OTHERS)
    with Leftovers().saving(str(tmp_path / "model")):
        assert names(tmp_path) == sorted([*OTHERS, ".model.saving"])
    assert names(tmp_path) == sorted(OTHERS)


def test_another_saver_at_work(tmp_path: Path) -> None:
    first, second, third = Leftovers(), Leftovers(), Leftovers()
    with first.saving(str(tmp_path / "model")):
        make(tmp_path, LEFT[0])
        with second.saving(str(tmp_path / "model")):
            assert LEFT[0] in names(tmp_path)
            make(tmp_path, LEFT[1])
        with third.saving(str(tmp_path / "model")):
            assert {*LEFT[:2]} <= {*names(tmp_path)}
    with second.saving(str(tmp_path / "model")):
        assert names(tmp_path) == [".model.saving"]
    assert names(tmp_path) == []


def test_the_later_of_two_savers_is_not_disturbed_by_a_third(tmp_path: Path) -> None:
    first, second = Leftovers().saving(str(tmp_path / "model")), Leftovers().saving(str(tmp_path / "model"))
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    make(tmp_path, LEFT[0])
    with Leftovers().saving(str(tmp_path / "model")):
        assert LEFT[0] in names(tmp_path)
    second.__exit__(None, None, None)


def test_a_disk_that_machines_share(tmp_path: Path) -> None:
    now = SimpleNamespace(s=0.0)
    leftovers = Leftovers(clock=lambda: now.s, is_own=lambda _: False)
    make(tmp_path, *LEFT)

    def there() -> list[str]:
        with leftovers.saving(str(tmp_path / "model")):
            return [name for name in names(tmp_path) if name in LEFT]

    assert there() == sorted(LEFT)
    now.s = 599.0
    assert there() == sorted(LEFT)
    (tmp_path / LEFT[1] / "part-00001-of-00002.index").write_text("of a saver at work")
    now.s = 601.0
    assert there() == [LEFT[1]]
    now.s = 1200.0
    assert there() == [LEFT[1]]
    now.s = 1202.0
    assert there() == []


def test_ownership_of_the_disk(tmp_path: Path) -> None:
    assert on_own_disk(str(tmp_path))
    assert not on_own_disk("/proc")


@pytest.mark.parametrize("path", ["memory://run/model", "/no/such/folder/model"])
def test_where_there_is_nothing_to_lock(path: str) -> None:
    folder = Path(path).parent
    with Leftovers().saving(path):
        assert not folder.exists()
    assert not folder.exists()
