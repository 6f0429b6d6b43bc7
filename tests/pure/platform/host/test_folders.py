from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from headwater.platform.host.folders import private_file, private_folder


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    assert mode(private_folder(tmp_path / "deep" / "new")) == 0o700
    open_to_all = tmp_path / "old"
    open_to_all.mkdir()
    open_to_all.chmod(0o755)
    assert mode(private_folder(open_to_all)) == 0o700


def test_a_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "db"
    private_file(path)
    path.write_text("")
    path.chmod(0o644)
    private_file(path)
    assert mode(path) == 0o600


def test_foreign_folders_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(PermissionError, match="link must be a folder, but is a link"):
        private_folder(tmp_path / "link")


@pytest.mark.skipif(os.getuid() != 0, reason="gives a folder to another user")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, 12345, 12345)
    with pytest.raises(PermissionError, match="belongs to user 12345"):
        private_folder(theirs)
