"""The choice of processes that receive SIGTERM when a task is asked to end."""

from __future__ import annotations

import pytest

from headwater.platform.host.end_request import READERS_END_S, EndRequest, TaskProcess
from headwater.platform.host.processes import ProcessIdentity

#: A process, as a test writes it: its parent, and `handles`, `ignores`, `shell`, `background`.
Tree = dict[str, tuple[str, set[str]]]


def processes(tree: Tree, living: str) -> dict[int, TaskProcess]:
    """Returns the ``living`` processes of ``tree``; the children of others belong to the keeper."""
    found: dict[int, TaskProcess] = {}
    for name, (parent, what) in tree.items():
        if name in living:
            found[ord(name)] = TaskProcess(
                identity=ProcessIdentity(pid=ord(name), start=1, boot="b"),
                parent=ord(parent) if parent and parent in living else 1,
                handles="handles" in what,
                ignores="ignores" in what,
                shell="shell" in what,
                background="background" in what,
            )
    return found


# s: a shell, p: a program that handles SIGTERM, t: one that does not, such as tee, c: a child, n: a later command. Each
# look at the living processes has those that are signalled; "+" stands for the time that readers have to end.
HANDLES = {"handles"}
CASES: dict[str, tuple[Tree, list[tuple[str, str]]]] = {
    "a program": ({"p": ("", HANDLES)}, [("p", "p"), ("p", "")]),
    "a program without a handler": ({"t": ("", set())}, [("t", "t"), ("t", "")]),
    "a shell around it": (
        {"s": ("", {"shell"}), "p": ("s", HANDLES)},
        [("sp", "sp"), ("p", ""), ("p", "")],
    ),
    "a pipeline": (
        {"s": ("", {"shell"}), "p": ("s", HANDLES), "t": ("s", set())},
        [("spt", "sp"), ("pt", ""), ("t", ""), ("+t", "t")],
    ),
    "a pipeline whose reader ends with its input": (
        {"s": ("", {"shell"}), "p": ("s", HANDLES), "t": ("s", set())},
        [("spt", "sp"), ("pt", ""), ("t", ""), ("+", "")],
    ),
    "a pipeline whose program has finished and ignores the request": (
        {"s": ("", {"shell"}), "p": ("s", {"ignores"}), "t": ("s", set())},
        [("spt", "sp"), ("+pt", ""), ("t", ""), ("+t", "t")],
    ),
    "a launcher that ignores the request": (
        {"c": ("", {"ignores"}), "p": ("c", HANDLES)},
        [("cp", "cp"), ("c", "")],
    ),
    "a pipeline without a handler": (
        {"s": ("", {"shell"}), "c": ("s", set()), "t": ("s", set())},
        [("sct", "s"), ("ct", "ct")],
    ),
    "a supervisor with processes of its own": (
        {"p": ("", HANDLES), "c": ("p", HANDLES), "t": ("p", set())},
        [("pct", "p"), ("pct", ""), ("ct", "")],
    ),
    "a launcher without a handler": (
        {"t": ("", set()), "p": ("t", HANDLES), "c": ("p", HANDLES)},
        [("tpc", "tp"), ("pc", ""), ("c", "")],
    ),
    "a trap and a command in the foreground": (
        {"s": ("", {"shell", "handles"}), "p": ("s", HANDLES)},
        [("sp", "sp"), ("s", "")],
    ),
    "a trap and a foreground command without a handler": (
        {"s": ("", {"shell", "handles"}), "t": ("s", set())},
        [("st", "s"), ("st", "t")],
    ),
    "a trap and a command in the background": (
        {"s": ("", {"shell", "handles"}), "p": ("s", {"handles", "background"})},
        [("sp", "s"), ("sp", ""), ("p", "")],
    ),
    "a command that a script starts meanwhile": (
        {"s": ("", {"shell"}), "c": ("s", {"shell"}), "p": ("c", HANDLES), "n": ("c", HANDLES)},
        [("scp", "scp"), ("cn", "n")],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_process_receives_the_request_in_its_turn_and_once(case: str) -> None:
    tree, looks = CASES[case]
    request = EndRequest()
    now = 0.0
    for living, expected in looks:
        now += READERS_END_S if "+" in living else READERS_END_S / 10
        chosen = request.processes_to_signal(processes(tree, living), now)
        assert "".join(sorted(chr(process.pid) for process in chosen)) == "".join(sorted(expected)), living
        # Processes below a program that handled the request are its own business, also when it has ended.
        abandoned = {"a supervisor": "ct", "a launcher": "c"}.get(case.partition(" w")[0])
        assert request.answered == (living in ("+", abandoned)), living
    request.processes_to_signal({}, now)
    assert request.answered
