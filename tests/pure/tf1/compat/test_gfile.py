"""``tf.gfile``: TensorFlow 1.x's names for the functions of `headwater.data.io`."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater import errors
from headwater.tf1.compat import gfile


def test_a_day_in_a_folder(tmp_path: Path) -> None:
    folder = str(tmp_path / "a")
    gfile.MkDir(folder)
    gfile.MakeDirs(f"{folder}/b/c")
    with gfile.GFile(f"{folder}/f", "w") as file:
        file.write("text")
    gfile.Copy(f"{folder}/f", f"{folder}/g")
    gfile.Copy(f"{folder}/f", f"{folder}/g", overwrite=True)
    gfile.Rename(f"{folder}/g", f"{folder}/h")
    assert gfile.Open(f"{folder}/h").read() == gfile.FastGFile(f"{folder}/h").read() == "text"
    assert gfile.Glob(f"{folder}/[fh]") == [f"{folder}/f", f"{folder}/h"]
    assert sorted(gfile.ListDirectory(folder)) == ["b", "f", "h"]
    assert [path for path, _, _ in gfile.Walk(folder)] == [folder, f"{folder}/b", f"{folder}/b/c"]
    assert [path for path, _, _ in gfile.Walk(folder, in_order=False)][-1] == folder
    assert gfile.Stat(f"{folder}/f").length == 4
    gfile.Remove(f"{folder}/h")
    assert gfile.IsDirectory(folder)
    assert not gfile.Exists(f"{folder}/h")
    gfile.DeleteRecursively(folder)
    with pytest.raises(errors.NotFoundError):
        gfile.DeleteRecursively(folder)
