from __future__ import annotations

from typing import Literal

import pytest

from headwater.platform.cli.arguments import Invocation, UsageError, parse_arguments


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["prog.py", "-u", "--x"], Invocation(kind="file", program="prog.py", arguments=("-u", "--x"))),
        (["-m", "pkg.mod", "-c"], Invocation(kind="module", program="pkg.mod", arguments=("-c",))),
        (["-mpkg", "a"], Invocation(kind="module", program="pkg", arguments=("a",))),
        (["-c", "print(1)", "-m", "x"], Invocation(kind="code", program="print(1)", arguments=("-m", "x"))),
        (["-", "a"], Invocation(kind="stdin", arguments=("a",))),
        (["-u", "-W", "error", "p"], Invocation(options=("-u", "-W", "error"), kind="file", program="p")),
        (["-uOWerror", "p"], Invocation(options=("-u", "-O", "-W", "error"), kind="file", program="p")),
        (["-Xdev", "-OO", "p"], Invocation(options=("-X", "dev", "-O", "-O"), kind="file", program="p")),
        (["--dialect", "2", "p"], Invocation(dialect="2", kind="file", program="p")),
        (["--dialect=1", "-c", "x"], Invocation(dialect="1", kind="code", program="x")),
        (["-u", "--insecure", "p"], Invocation(options=("-u",), insecure=True, kind="file", program="p")),
        (["-uc", "code"], Invocation(options=("-u",), kind="code", program="code")),
        (
            ["--check-hash-based-pycs", "always", "p"],
            Invocation(options=("--check-hash-based-pycs", "always"), kind="file", program="p"),
        ),
    ],
)
def test_parses_the_options_of_python(arguments: list[str], expected: Invocation) -> None:
    assert parse_arguments(arguments) == expected


@pytest.mark.parametrize("kind", ["file", "module", "code"])
def test_command_line_reads_back(kind: Literal["file", "module", "code"]) -> None:
    invocation = Invocation(kind=kind, program="x", arguments=("-a", "b c"), insecure=True)
    assert parse_arguments(invocation.command_line()) == invocation


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "the program is missing"),
        (["-u"], "the program is missing"),
        (["-m"], "-m needs a value"),
        (["-W"], "-W needs a value"),
        (["-uk", "p"], "-k in '-uk'"),
        (["--ps", "1"], "--ps"),
    ],
)
def test_a_mistake_is_named(arguments: list[str], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        parse_arguments(arguments)
