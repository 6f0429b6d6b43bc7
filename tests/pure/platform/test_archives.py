from __future__ import annotations

import hashlib
import io
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from headwater.platform.archives import ArchiveError, main, unpack


def tar_of(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for info, data in members:
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def zip_of(path: Path, *members: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, data in members:
            zipped.writestr(name, data)
    return path


@pytest.fixture(params=[True, False], ids=["this Python", "an old Python"], autouse=True)
def filters(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether Python itself knows how to keep members within a folder, as it does from 3.11.4 on."""
    if not request.param:
        monkeypatch.delattr(tarfile, "data_filter", raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in" / "here"
    made.mkdir(parents=True)
    return made


def test_a_tar_file_is_unpacked(tmp_path: Path, folder: Path) -> None:
    link = (member("link", tarfile.SYMTYPE, "a/b.py"), b"")
    unpack(tar_of(tmp_path / "x.tar.gz", (member("a/b.py"), b"code"), link), folder)
    assert (folder / "link").read_text() == "code"


def test_archive_with_a_wrong_suffix(tmp_path: Path, folder: Path) -> None:
    made = tmp_path / "made"
    with tarfile.open(made, "w") as tar:  # has no checksum of what is in it
        info = member("a.py")
        info.size = 4
        tar.addfile(info, io.BytesIO(b"code"))
    content = made.read_bytes()
    path = tmp_path / hashlib.sha256(content).hexdigest()
    path.write_bytes(content)
    unpack(path, folder)
    path.write_bytes(content.replace(b"code", b"cod3"))
    with pytest.raises(ArchiveError, match=f"{path} is damaged"):
        unpack(path, folder)
    assert (folder / "a.py").read_text() == "code"


def test_a_zip_file_is_unpacked_with_executable_bits(tmp_path: Path, folder: Path) -> None:
    script = zipfile.ZipInfo("bin/run")
    script.external_attr = (stat.S_IFREG | 0o4755) << 16
    unpack(zip_of(tmp_path / "x.zip", ("a/", b""), ("a/b.py", b"code"), (script, b"#!")), folder)
    assert (folder / "a/b.py").read_text() == "code"
    assert stat.S_IMODE((folder / "bin/run").stat().st_mode) == 0o755


@pytest.mark.parametrize(
    "bad",
    [
        member("../out"),
        member("/../out"),
        member("a/../../out"),
        member("out", tarfile.SYMTYPE, "../out"),
        member("out", tarfile.SYMTYPE, "/etc/passwd"),
        member("out", tarfile.LNKTYPE, "../../out"),
        member("out", tarfile.CHRTYPE),
        member("out", tarfile.FIFOTYPE),
    ],
    ids=lambda info: f"{info.name} {info.type} {info.linkname}",
)
def test_members_of_a_tar_file_stay_inside_the_folder(tmp_path: Path, folder: Path, bad: tarfile.TarInfo) -> None:
    with pytest.raises(ArchiveError):
        unpack(tar_of(tmp_path / "x.tar.gz", (bad, b"")), folder)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "in" / "out").exists()


def test_a_link_cannot_lead_later_members_out(tmp_path: Path, folder: Path) -> None:
    archive = tar_of(tmp_path / "x.tar.gz", (member("up", tarfile.SYMTYPE, ".."), b""), (member("up/out"), b"1"))
    with pytest.raises(ArchiveError):
        unpack(archive, folder)
    assert not (tmp_path / "in" / "out").exists()


@pytest.mark.parametrize("name", ["../out", "/out", "a/../../out", "..\\out"])
def test_members_of_a_zip_file_stay_inside_the_folder(tmp_path: Path, folder: Path, name: str) -> None:
    with pytest.raises(ArchiveError, match="outside"):
        unpack(zip_of(tmp_path / "x.zip", (name, b"1")), folder)
    assert list(folder.iterdir()) == []


def test_a_link_in_a_zip_file_is_refused(tmp_path: Path, folder: Path) -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with pytest.raises(ArchiveError, match="neither a file nor a folder"):
        unpack(zip_of(tmp_path / "x.zip", (link, b"/etc")), folder)


def test_sizes_are_bounded(tmp_path: Path, folder: Path) -> None:
    tar = tar_of(tmp_path / "x.tar.gz", (member("a"), bytes(1000)), (member("b"), bytes(1000)))
    zipped = zip_of(tmp_path / "x.zip", ("a", bytes(1000)), ("b", bytes(1000)))
    for archive in (tar, zipped):
        unpack(archive, folder, max_bytes=2000, max_members=2)
        with pytest.raises(ArchiveError, match="more than 1999 bytes"):
            unpack(archive, folder, max_bytes=1999)
        with pytest.raises(ArchiveError, match="more than 1 members"):
            unpack(archive, folder, max_members=1)


@pytest.mark.parametrize("data", [b"", b"no archive", b"PK\x03\x04 broken"])
def test_file_that_is_no_archive_is_named(tmp_path: Path, folder: Path, data: bytes) -> None:
    path = tmp_path / "x.tar.gz"
    path.write_bytes(data)
    with pytest.raises(ArchiveError, match=r"x\.tar\.gz"):
        unpack(path, folder)


def test_a_damaged_archive_is_named(tmp_path: Path, folder: Path) -> None:
    whole = tar_of(tmp_path / "x.tar.gz", (member("a"), bytes(range(256)) * 400)).read_bytes()
    (tmp_path / "cut.tar.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ArchiveError, match=r"cut\.tar\.gz"):
        unpack(tmp_path / "cut.tar.gz", folder)


def test_a_changed_bit_is_noticed(tmp_path: Path, folder: Path) -> None:
    path = tar_of(tmp_path / "x.tar.gz", (member("a"), bytes(range(256)) * 400))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 16
    path.write_bytes(data)
    with pytest.raises(ArchiveError, match=r"x\.tar\.gz"):
        unpack(path, folder)


def test_program_unpacks_and_reports_errors(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tar_of(tmp_path / "x.tar.gz", (member("a"), b"1"))
    monkeypatch.setattr("sys.argv", ["archives", str(path), str(folder)])
    assert main() == 0
    assert (folder / "a").read_bytes() == b"1"
    path.write_bytes(b"")
    assert main() == 1
    assert "x.tar.gz" in capsys.readouterr().err
