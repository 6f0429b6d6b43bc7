"""Compiled programs on disk: entries, their bound, and whose folders are used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headwater import compilation_cache
from headwater.compilation_cache import Entries


def _key(number: int) -> str:
    return f"jit_step-{number:064x}"


class TestEntries:
    def test_get_returns_the_stored_entry(self, tmp_path: Path) -> None:
        Entries(tmp_path).put("a" * 1000 + _key(1), b"one")
        assert Entries(tmp_path).get("a" * 1000 + _key(1)) == b"one"
        assert Entries(tmp_path).get(_key(2)) is None

    def test_the_least_recently_used_are_deleted(self, tmp_path: Path) -> None:
        entries = Entries(tmp_path, most=1600)
        for number in range(15):
            entries.put(_key(number), bytes(100))
            os.utime(tmp_path / _key(number)[-64:], (number, number))
        assert entries.get(_key(0)) is not None  # used last from now on
        entries.put(_key(15), bytes(100))
        entries.put(_key(16), bytes(100))
        kept = [number for number in range(17) if entries.get(_key(number)) is not None]
        assert kept == [0, *range(6, 17)]

    def test_an_entry_larger_than_the_limit_is_not_stored(self, tmp_path: Path) -> None:
        Entries(tmp_path, most=100).put(_key(1), bytes(26))
        assert not list(tmp_path.iterdir())

    def test_a_deleted_folder_has_no_entries(self, tmp_path: Path) -> None:
        entries = Entries(tmp_path / "gone")
        entries.put(_key(1), b"one")
        assert entries.get(_key(1)) is None


class TestFolder:
    def test_is_of_this_kind_of_machine(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        monkeypatch.delenv(compilation_cache.FOLDER, raising=False)
        folder = compilation_cache.folder()
        assert folder is not None
        assert folder.parent == tmp_path / "headwater" / "compiled"
        assert folder.stat().st_mode & 0o777 == 0o700

    def test_none_that_others_may_write(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(compilation_cache.FOLDER, str(tmp_path))
        folder = compilation_cache.folder()
        assert folder is not None
        folder.chmod(0o777)
        assert compilation_cache.folder() is None

    def test_none_where_a_file_is(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "file").touch()
        monkeypatch.setenv(compilation_cache.FOLDER, str(tmp_path / "file"))
        assert compilation_cache.folder() is None
