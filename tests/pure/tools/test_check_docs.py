"""The check of the project's documents, on documents with and without mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest
import typer

from tools import check_docs

app = typer.Typer()


@app.command(context_settings={"allow_interspersed_args": False})
def run(program: list[str], ps: int = 0, *, flags: Annotated[bool, typer.Option("--flags")] = False) -> None: ...


@app.command("exec")
def exec_() -> None: ...


@app.command()
def version() -> None: ...


group = typer.Typer()
app.add_typer(group, name="token")


@group.command()
def create(name: str, role: str = "") -> None: ...


@group.command("list")
def list_() -> None: ...


COMMANDS = check_docs.commands_of(app)


@pytest.fixture
def document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(check_docs, "REPOSITORY", tmp_path)
    (tmp_path / "other.md").write_text("# A title, with `code`\n\n## Second\n")
    (tmp_path / "test_it.py").write_text("def test_one() -> None:\n    assert True\n")
    return tmp_path / "document.md"


def mistakes(document: Path, text: str) -> list[str]:
    document.write_text(text)
    return list(check_docs.check(document, {"test", "check"}, COMMANDS))


@pytest.mark.parametrize(
    "text",
    [
        "[a](other.md) and [b](other.md#second), [c](https://example.org/x)",
        "[d](#here)\n# Here\n[e](other.md#a-title-with-code), [f](test_it.py), [g](test_it.py#test_one)",
        "`make test` and `make check`, `headwater version`; `a [link](nowhere.md) in code`",
        "```sh\n$ A=1 headwater run --ps 1 --flags train.py --rate=1  # so\nmake test\n```\n",
        "```sh\nheadwater run --ps 1 -m module --rate\nheadwater exec -u --x\n```\n",
        "```sh\nheadwater run \\\n  --ps 1 a\n```\n```python\nmake = 1\n```\n",
        "it's `don't` and `headwater`",
        "`headwater token`, `headwater token create me --role=run`",
    ],
)
def test_correct_documents(document: Path, text: str) -> None:
    assert mistakes(document, text) == []


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("\n[a](absent.md)", "2: link to absent.md, which is not there"),
        ("[a](../document.md)", "1: link to ../document.md, which is not there"),
        ("[a](other.md#third)", "1: link to other.md#third: no such heading"),
        ("[a](test_it.py#test_two)", "1: link to test_it.py#test_two: no such function"),
        ("`make rest`", "1: `make rest`: the Makefile has no target rest"),
        ("`headwater fly`", "1: `headwater fly`: there is no command fly"),
        ("```sh\n\nheadwater run --pss 1 a\n```", "3: `headwater run --pss 1 a`: headwater run has no option --pss"),
        ("`headwater token fly`", "1: `headwater token fly`: there is no command fly"),
        ("`headwater token list -x`", "1: `headwater token list -x`: headwater list has no option -x"),
        ("```sh\nheadwater version --ps\n```", "2: `headwater version --ps`: headwater version has no option --ps"),
    ],
)
def test_mistakes_in_documents(document: Path, text: str, mistake: str) -> None:
    assert mistakes(document, text) == [mistake]
