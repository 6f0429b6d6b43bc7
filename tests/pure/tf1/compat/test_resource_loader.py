"""Files beside a program's own modules."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.tf1.compat import resource_loader

HERE = Path(__file__).resolve()


def test_files_beside_the_caller() -> None:
    assert resource_loader.get_data_files_path() == str(HERE.parent)
    assert resource_loader.get_path_to_datafile("a/b") == str(HERE.parent / "a/b")
    assert resource_loader.load_resource(HERE.name) == HERE.read_bytes()
    assert resource_loader.readahead_file_path("x") == "x"
    assert resource_loader.get_root_dir_with_all_resources() == str(HERE.parent)
    with pytest.raises(FileNotFoundError):
        resource_loader.load_resource("nothing here")
