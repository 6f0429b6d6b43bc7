"""Clocks that are set an hour on or back while they are used."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from headwater.cluster.telemetry.clocks import SteadyClock
from headwater.cluster.transport.call_proof import ProofChecker, make_proof, time_of_server
from headwater.cluster.transport.security import Tokens
from headwater.platform.archive_store import ArchiveStore
from headwater.platform.server_clock import server_clock
from headwater.tf1.training.kept_checkpoints import KeptCheckpoints

HOUR_S = 3600.0
JUMPS = pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S])


class Machine:
    """The clocks of a machine: the time of day can be set, the time since its start only grows."""

    def __init__(self, wall_s: float = 1.7e9, up_s: float = 500.0) -> None:
        self._wall_s = wall_s
        self._up_s = up_s

    def wall(self) -> float:
        return self._wall_s

    def up(self) -> float:
        return self._up_s

    def passes(self, seconds: float, *, jump_s: float = 0.0) -> None:
        self._up_s += seconds
        self._wall_s += seconds + jump_s

    def clock(self) -> SteadyClock:
        return SteadyClock(self.wall, self.up)


@JUMPS
def test_a_clock_continues_after_a_restart(jump_s: float) -> None:
    machine = Machine()
    clock = machine.clock()
    begin = clock()
    assert begin == machine.wall()
    machine.passes(10, jump_s=jump_s)
    assert clock() == begin + 10


@JUMPS
def test_the_clock_of_the_server_continues_after_its_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, jump_s: float
) -> None:
    machine = Machine()
    first = server_clock(tmp_path, wall=machine.wall, since_boot=machine.up)
    begin = first()
    machine.passes(10, jump_s=jump_s)
    second = server_clock(tmp_path, wall=machine.wall, since_boot=machine.up)
    machine.passes(5)
    assert first() == second() == pytest.approx(begin + 15)
    assert f"the system clock was set by {jump_s:+.0f} s" in caplog.text


def test_the_servers_clock_after_a_restart_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    server_clock(tmp_path, wall=machine.wall, since_boot=machine.up)
    monkeypatch.setattr("headwater.platform.server_clock.boot_id", lambda: "another")
    later = Machine(1.8e9, 20.0)
    assert server_clock(tmp_path, wall=later.wall, since_boot=later.up)() == pytest.approx(1.8e9)


def test_a_damaged_file_of_the_servers_clock(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    server_clock(tmp_path, wall=machine.wall, since_boot=machine.up)
    path = tmp_path / "clock"
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :])
        with caplog.at_level(logging.WARNING):
            caplog.clear()
            assert server_clock(tmp_path, wall=machine.wall, since_boot=machine.up)() == pytest.approx(machine.wall())
        assert str(path) in caplog.text


@JUMPS
def test_a_server_with_a_different_clock_accepts_proofs(jump_s: float) -> None:
    """The caller learns the server's time from its refusal; a stranger learns nothing, and tells it nothing."""
    tokens = Tokens(values=("secret",))
    server, caller = Machine(), Machine(1.7e9 + jump_s)
    checker = ProofChecker(lambda: tokens, clock=server.clock())
    proof = make_proof(tokens, "/call", now=caller.wall())
    assert "clocks of the two machines differ by 3600 s" in (checker.problem_with("/call", proof) or "")
    told = checker.signed_time("/call", proof)
    assert told is not None
    theirs = time_of_server(tokens, "/call", proof, told)
    assert theirs == server.wall()
    assert checker.problem_with("/call", make_proof(tokens, "/call", now=theirs)) is None
    stranger = Tokens(values=("another",))
    assert checker.signed_time("/call", make_proof(stranger, "/call", now=caller.wall())) is None
    assert time_of_server(stranger, "/call", proof, told) is None
    assert time_of_server(tokens, "/call", make_proof(tokens, "/call"), told) is None


@JUMPS
def test_a_proof_is_accepted_once_for_any_clock(jump_s: float) -> None:
    tokens, machine = Tokens(values=("secret",)), Machine()
    checker = ProofChecker(lambda: tokens, clock=machine.clock())
    proof = make_proof(tokens, "/call", now=machine.wall())
    assert checker.problem_with("/call", proof) is None
    for jump in (jump_s, -jump_s):
        machine.passes(1, jump_s=jump)
        other = make_proof(tokens, "/call", now=1.7e9)
        assert checker.problem_with("/call", other) is None
        assert checker.problem_with("/call", proof) == "the proof was used before"


@JUMPS
def test_checkpoints_that_are_kept_for_good(jump_s: float) -> None:
    def deleted(jump_s: float) -> list[str | None]:
        machine = Machine()
        kept = KeptCheckpoints(1, 2.0, clock=machine.clock())
        found: list[str | None] = []
        for number in range(12):
            machine.passes(0.5 * HOUR_S, jump_s=jump_s if number == 2 else 0.0)
            found.append(kept.add(f"m-{number}"))
        return found

    assert deleted(jump_s) == deleted(0.0)
    assert None in deleted(0.0)[1:]


@JUMPS
def test_archives_are_kept_for_later_jobs(tmp_path: Path, jump_s: float) -> None:
    machine = Machine()
    clock = machine.clock()
    store = ArchiveStore(tmp_path)
    used, new = "a" * 64, "b" * 64
    for name in (used, new):
        (tmp_path / name).write_bytes(b"x")
    store.remove_unused({used}, now=clock(), after_s=HOUR_S)
    machine.passes(60, jump_s=jump_s)
    store.remove_unused({used}, now=clock(), after_s=HOUR_S)
    assert store.has(new)
    machine.passes(HOUR_S)
    store.remove_unused({used}, now=clock(), after_s=HOUR_S)
    assert {path.name for path in tmp_path.iterdir()} == {used, new}  # it was asked for
    machine.passes(HOUR_S)
    store.remove_unused({used}, now=clock(), after_s=HOUR_S)
    assert {path.name for path in tmp_path.iterdir()} == {used}
