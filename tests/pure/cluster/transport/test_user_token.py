"""The secret of one user's programs: its file, its creation, and files that are not trusted."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from headwater.cluster.transport import user_token as module
from headwater.cluster.transport.handshake import DIALLING, prove, proven
from headwater.cluster.transport.security import Security, Tokens
from headwater.cluster.transport.user_token import token_folder, user_token
from headwater.errors import PermissionDeniedError


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A runtime folder of this test's own."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return {"XDG_RUNTIME_DIR": str(tmp_path)}


def test_the_first_program_makes_it_for_its_user_only(environ: dict[str, str], tmp_path: Path) -> None:
    token = user_token(environ)
    file = tmp_path / "headwater" / "token"
    assert file.read_text() == token + "\n"
    assert len(token) == 64
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert user_token(environ) == token
    assert os.listdir(file.parent) == ["token"]


def test_programs_that_start_at_once_agree(environ: dict[str, str]) -> None:
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(user_token(environ))) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20
    assert len(set(found)) == 1


def test_without_a_runtime_folder_it_is_in_the_shared_one(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SHARED", tmp_path)
    shared = tmp_path / f"headwater-{os.geteuid()}"
    tmp_path.chmod(0o777)  # others could enter: no runtime folder
    assert token_folder(environ) in (shared, Path(f"/run/user/{os.geteuid()}/headwater"))
    assert token_folder({"XDG_RUNTIME_DIR": "not/absolute"}) == token_folder({})


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_token_in_a_folder_of_others_is_not_trusted(environ: dict[str, str], tmp_path: Path, what: str) -> None:
    user_token(environ)
    path = tmp_path / "headwater" / ("token" if what == "file" else "")
    path.chmod(path.stat().st_mode | stat.S_IROTH)
    with pytest.raises(PermissionDeniedError, match=r"other users may.*HEADWATER_TOKEN"):
        user_token(environ)


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give files away")
@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_token_of_another_user_is_not_trusted(environ: dict[str, str], tmp_path: Path, what: str) -> None:
    user_token(environ)
    path = tmp_path / "headwater" / ("token" if what == "file" else "")
    os.chown(path, 65534, 65534)
    with pytest.raises(PermissionDeniedError, match="belongs to user 65534"):
        user_token(environ)


@pytest.mark.parametrize("content", ["", "0123", "x" * 64])
def test_a_damaged_file_is_named(environ: dict[str, str], tmp_path: Path, content: str) -> None:
    user_token(environ)
    file = tmp_path / "headwater" / "token"
    file.write_text(content)
    with pytest.raises(PermissionDeniedError, match=str(file)):
        user_token(environ)


def test_a_link_is_not_followed(environ: dict[str, str], tmp_path: Path) -> None:
    user_token(environ)
    file = tmp_path / "headwater" / "token"
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionDeniedError):
        user_token(environ)


class TestWhereItCounts:
    def test_on_loopback_where_nothing_else_is_set(self, environ: dict[str, str]) -> None:
        tokens = Security.from_environment({}).for_host("127.0.0.1").tokens()
        assert tokens == Tokens(values=(user_token(environ),), of_user=True)
        assert Security.from_environment({}).for_host("localhost").tokens() == tokens

    def test_not_elsewhere(self) -> None:
        for host in ("192.0.2.1", "0.0.0.0", "no-such-host.invalid"):
            assert Security.from_environment({}).for_host(host).tokens() == Tokens()

    @pytest.mark.parametrize(
        ("variables", "expected"),
        [({"HEADWATER_TOKEN": "s3cret"}, Tokens(values=("s3cret",))), ({"HEADWATER_INSECURE": "1"}, Tokens())],
    )
    def test_not_where_something_else_is_asked_for(self, variables: dict[str, str], expected: Tokens) -> None:
        assert Security.from_environment(variables).for_host("127.0.0.1").tokens() == expected

    def test_the_token_of_a_launch_precedes_the_token_file(self, environ: dict[str, str], tmp_path: Path) -> None:
        security = Security.from_environment({"HEADWATER_LAUNCH_TOKEN": "launched"}).for_host("127.0.0.1")
        assert security.tokens() == Tokens(values=("launched", user_token(environ)), of_user=True)
        assert "launched" not in repr(security) + repr(security.tokens())
        (tmp_path / "headwater" / "token").write_text("damaged")
        assert security.tokens() == Tokens(values=("launched",), of_user=True)
        assert (
            Security.from_environment({"HEADWATER_LAUNCH_TOKEN": "launched"}).for_host("192.0.2.1").tokens() == Tokens()
        )

    def test_a_server_takes_the_file_that_is_there_now(self, environ: dict[str, str], tmp_path: Path) -> None:
        """The system empties the folder when a user logs out, and tasks may run on."""
        security = Security.from_environment({}).for_host("127.0.0.1")
        before = security.tokens()
        (tmp_path / "headwater" / "token").unlink()
        after = Tokens(values=(user_token(environ),), of_user=True)
        assert security.tokens() == after != before


class TestProofs:
    USER, LAUNCH = "user", "launch"

    def test_one_token_in_common_is_enough(self) -> None:
        launched = Tokens(values=(self.LAUNCH, self.USER), of_user=True)
        by_hand = Tokens(values=(self.USER,), of_user=True)
        for ours, theirs in ((launched, by_hand), (by_hand, launched)):
            known = proven(ours, prove(theirs, DIALLING, 1), DIALLING, 1)
            assert known is not None
            assert known.values == (self.USER,)
            assert proven(theirs, prove(known, DIALLING, 2), DIALLING, 2) == known

    @pytest.mark.parametrize(
        ("ours", "theirs"),
        [
            (Tokens(values=("a",)), Tokens(values=("b",))),
            (Tokens(values=("a",)), Tokens()),
            (Tokens(), Tokens(values=("a",))),
            (Tokens(values=("a", "b"), of_user=True), Tokens(values=("c", "d"), of_user=True)),
        ],
    )
    def test_no_token_in_common(self, ours: Tokens, theirs: Tokens) -> None:
        assert proven(ours, prove(theirs, DIALLING, 1), DIALLING, 1) is None

    def test_a_proof_is_valid_only_for_its_message(self) -> None:
        tokens = Tokens(values=("a", "b"), of_user=True)
        proof = prove(tokens, DIALLING, 1)
        assert proven(tokens, proof, DIALLING, 1) is not None
        assert proven(tokens, proof, DIALLING, 2) is None
        assert proven(tokens, proof[:-32], DIALLING, 1) is not None
        assert proven(tokens, proof[:20], DIALLING, 1) is None
