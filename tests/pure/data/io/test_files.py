"""Files and folders behave as TensorFlow 1.15's ``tf.gfile``; atomic files appear whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from headwater import errors
from headwater.data.io import files
from headwater.data.io.file_object import GFile


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "f").write_text("l1\nl2\nl3")
    (tmp_path / ".hidden").write_text("")
    return tmp_path


class TestFolders:
    def test_existence(self, tree: Path) -> None:
        assert files.exists(tree)
        assert files.exists(os.fsencode(tree / "f"))
        assert not files.exists(tree / "no")
        assert not files.exists("")
        assert files.isdir(tree)
        assert not files.isdir(tree / "f")
        with pytest.raises(TypeError):
            files.exists(123)  # type: ignore[arg-type]

    def test_making(self, tree: Path) -> None:
        files.mkdir(tree)
        with pytest.raises(errors.NotFoundError, match="x/y"):
            files.mkdir(tree / "x" / "y")
        files.makedirs(f"{tree}/x/y/")
        files.makedirs(tree / "x" / "y")
        with pytest.raises(errors.FailedPreconditionError, match="f/x"):
            files.makedirs(tree / "f" / "x")
        with pytest.raises(errors.FailedPreconditionError, match="in the way"):
            files.makedirs(tree / "f")

    def test_listing(self, tree: Path) -> None:
        assert sorted(files.listdir(tree)) == [".hidden", "a", "f"]
        for path in (tree / "no", tree / "f"):
            with pytest.raises(errors.NotFoundError):
                files.listdir(path)

    def test_stat(self, tree: Path) -> None:
        found = files.stat(tree / "f")
        assert (found.length, found.is_directory) == (8, False)
        assert found.mtime_nsec == (tree / "f").stat().st_mtime_ns
        assert files.stat(tree).is_directory
        with pytest.raises(errors.NotFoundError, match="no"):
            files.stat(tree / "no")

    def test_walk(self, tree: Path) -> None:
        def seen(topdown: bool) -> list[tuple[str, list[str], list[str]]]:
            return [(path, sorted(dirs), sorted(names)) for path, dirs, names in files.walk(tree, topdown)]

        expected = [
            (str(tree), ["a"], [".hidden", "f"]),
            (str(tree / "a"), ["b"], []),
            (str(tree / "a" / "b"), [], []),
        ]
        assert seen(True) == expected
        assert seen(False) == expected[::-1]
        assert list(files.walk(tree / "no")) == []
        assert list(files.walk(tree / "f")) == []

    def test_glob(self, tree: Path) -> None:
        def found(*patterns: str) -> list[str]:
            paths = files.glob([f"{tree}/{pattern}" for pattern in patterns])
            return [os.path.relpath(path, tree) for path in paths]

        assert found("*") == [".hidden", "a", "f"]
        assert found("*", "f") == [".hidden", "a", "f", "f"]
        assert found("f") == ["f"]
        assert found("no") == found("no*") == found("no*/x") == found("f/*") == []
        assert found("*/*") == found("a/*") == ["a/b"]
        assert found("[af]") == ["a", "f"]
        assert found("?/b") == ["a/b"]
        assert found("**") == [".hidden", "a", "f"]
        assert found("{a,f}") == []


class TestOneFile:
    def test_copy(self, tree: Path) -> None:
        files.copy(tree / "f", tree / "g")
        assert (tree / "g").read_text() == "l1\nl2\nl3"
        with pytest.raises(errors.AlreadyExistsError):
            files.copy(tree / "f", tree / "g")
        files.copy(tree / "f", tree / "g", overwrite=True)
        with pytest.raises(errors.NotFoundError, match="no"):
            files.copy(tree / "no", tree / "h")
        assert not files.exists(tree / "h")
        with pytest.raises(errors.NotFoundError, match="no/h"):
            files.copy(tree / "f", tree / "no" / "h")

    def test_rename(self, tree: Path) -> None:
        files.rename(tree / "f", tree / "g")
        (tree / "f").write_text("new")
        with pytest.raises(errors.AlreadyExistsError):
            files.rename(tree / "f", tree / "g")
        files.rename(tree / "f", tree / "g", overwrite=True)
        assert (tree / "g").read_text() == "new"
        with pytest.raises(errors.NotFoundError):
            files.rename(tree / "no", tree / "h")
        files.rename(tree / "a", tree / "c")
        assert files.isdir(tree / "c" / "b")

    def test_deleting(self, tree: Path) -> None:
        with pytest.raises(errors.NotFoundError):
            files.remove(tree / "no")
        with pytest.raises(errors.FailedPreconditionError):
            files.remove(tree / "a")
        with pytest.raises(errors.NotFoundError):
            files.rmtree(tree / "no")
        with pytest.raises(errors.FailedPreconditionError):
            files.rmtree(tree / "f")
        files.rmtree(tree / "a")
        files.remove(tree / "f")
        assert files.listdir(tree) == [".hidden"]


class TestGFile:
    def test_reading(self, tree: Path) -> None:
        path = str(tree / "f")
        assert GFile(path).read() == "l1\nl2\nl3"
        assert GFile(path, "rb").read() == b"l1\nl2\nl3"
        assert GFile(path, "rb").readlines() == [b"l1\n", b"l2\n", b"l3"]
        with GFile(path) as file:
            assert (file.name, file.mode, file.size()) == (path, "r", 8)
            assert file.read(2) == "l1"
            assert list(file) == ["\n", "l2\n", "l3"]
            assert file.readline() == ""
            with pytest.raises(errors.PermissionDeniedError):
                file.write("x")

    def test_seeking(self, tree: Path) -> None:
        file = GFile(tree / "f")
        file.seek(3)
        assert file.read(2) == "l2"
        assert file.tell() == 5
        file.seek(-2, 2)
        assert file.read() == "l3"
        file.seek(position=1)
        file.seek(1, 1)
        assert file.next() == "\n"
        with pytest.raises(errors.OutOfRangeError):
            file.seek(100)
        with pytest.raises(errors.InvalidArgumentError, match="-92"):
            file.seek(-100, 2)
        with pytest.raises(errors.InvalidArgumentError, match="whence"):
            file.seek(0, 5)
        with pytest.raises(TypeError):
            file.seek()
        file.close()
        assert file.read() == "l1\nl2\nl3"

    def test_writing(self, tree: Path) -> None:
        path = tree / "w"
        file = GFile(path, "w")
        file.write("abc")
        assert (file.tell(), file.size()) == (3, 0)
        file.flush()
        assert file.size() == 3
        file.write(b"d\xc3")
        with pytest.raises(TypeError):
            file.write(3)  # type: ignore[arg-type]
        with pytest.raises(errors.PermissionDeniedError):
            file.read()
        file.close()
        GFile(path, "a").write("é")
        assert path.read_bytes() == b"abcd\xc3\xc3\xa9"
        GFile(path, "w+").write("")
        assert path.read_bytes() == b""

    def test_errors(self, tree: Path) -> None:
        with pytest.raises(errors.NotFoundError, match="no"):
            GFile(tree / "no").read()
        with pytest.raises(errors.NotFoundError, match="no"):
            GFile(tree / "no").size()
        with pytest.raises(errors.NotFoundError, match="no/f"):
            GFile(tree / "no" / "f", "w").write("x")
        with pytest.raises(errors.FailedPreconditionError):
            GFile(tree, "w").write("x")
        with pytest.raises(errors.InvalidArgumentError, match="'q'"):
            GFile(tree / "f", "q")


@pytest.fixture(params=["nameless", "named"])
def kind_of_temporary(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both kinds of temporary file, the second as on file systems without nameless files."""
    if request.param == "named":
        real_open = os.open

        def refuse(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
            if flags & os.O_TMPFILE == os.O_TMPFILE:
                raise OSError(errno.EOPNOTSUPP, "not supported")
            return real_open(path, flags, mode, dir_fd=dir_fd)

        monkeypatch.setattr(os, "open", refuse)
    return str(request.param)


class TestAtomicFile:
    def test_appears_at_the_end_only(self, tmp_path: Path, kind_of_temporary: str) -> None:
        path = tmp_path / "f"
        path.write_bytes(b"old")
        with files.atomic_write(path) as file:
            file.write(b"new" * 1_000_000)
            assert path.read_bytes() == b"old"
            if kind_of_temporary == "nameless":
                assert files.listdir(tmp_path) == ["f"]
            else:
                assert len(files.glob(f"{tmp_path}/.f.*.tmp")) == 1
        assert path.read_bytes() == b"new" * 1_000_000
        assert files.listdir(tmp_path) == ["f"]
        assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()

    def test_an_exception_leaves_the_old_file(self, tmp_path: Path, kind_of_temporary: str) -> None:
        path = tmp_path / "f"
        path.write_bytes(b"old")
        with pytest.raises(TypeError), files.atomic_write(path) as file:
            file.write("text is refused")
        assert path.read_bytes() == b"old"
        assert files.listdir(tmp_path) == ["f"]

    @pytest.mark.parametrize("size", [200, 5_000_000])
    def test_a_full_disk_leaves_the_old_file(
        self,
        tmp_path: Path,
        kind_of_temporary: str,
        size: int,
        file_size_limit: Callable[[int], AbstractContextManager[None]],
    ) -> None:
        path = tmp_path / "f"
        path.write_bytes(b"old")
        with (
            file_size_limit(100),
            pytest.raises(errors.ResourceExhaustedError, match=f"^{path}: "),
            files.atomic_write(path) as file,
        ):
            file.write(b"x" * size)
        assert path.read_bytes() == b"old"
        assert files.listdir(tmp_path) == ["f"]

    def test_a_relative_path_stays_where_it_was_meant(
        self, tmp_path: Path, kind_of_temporary: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path)
        with files.atomic_write("f") as file:
            file.write(b"new")
            monkeypatch.chdir("elsewhere")
        assert sorted(files.listdir(tmp_path)) == ["elsewhere", "f"]

    def test_no_folder(self, tmp_path: Path, kind_of_temporary: str) -> None:
        with pytest.raises(errors.NotFoundError, match="no/f"):
            files.atomic_write(tmp_path / "no" / "f")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
