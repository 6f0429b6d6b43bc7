"""Checks the project's Markdown: links inside the repository lead somewhere, and commands in it exist.

- Every relative link names a file or folder, and a heading in it, or a function of a Python file, where it has a
  ``#fragment``.
- Every ``make TARGET`` is a target of the Makefile.
- Every ``headwater COMMAND --option`` is a command with that option.

Prints one line per mistake, and exits with 1 if there is any.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
import typer.main

from headwater.platform.cli.app import app

REPOSITORY = Path(__file__).resolve().parent.parent

_FENCE = re.compile(r"^\s*```\s*(\w*)")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
_INLINE_CODE = re.compile(r"`([^`]+)`")
_HEADING = re.compile(r"^#{1,6}\s+(.*)$")
_FUNCTION = re.compile(r"^\s*def (\w+)", re.MULTILINE)
_TARGET = re.compile(r"^([a-z][\w.-]*)\s*:(?!=)", re.MULTILINE)
_ASSIGNMENT = re.compile(r"^\w+=\S*$")
_SHELL_LANGUAGES = frozenset({"", "sh", "bash", "console", "shell"})


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of code in a document, with its line number."""

    line: int
    text: str


def main() -> int:
    """Checks every Markdown file that git knows of or would take."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    targets = set(_TARGET.findall((REPOSITORY / "Makefile").read_text()))
    commands = commands_of(app)
    mistakes = [
        f"{name}:{mistake}"
        for name in listed.stdout.split()
        if (REPOSITORY / name).exists()
        for mistake in check(REPOSITORY / name, targets, commands)
    ]
    for mistake in mistakes:
        print(mistake)
    return 1 if mistakes else 0


def check(path: Path, targets: set[str], commands: Mapping[str, Any]) -> Iterator[str]:
    """The mistakes in one document, each as ``line: what is wrong``."""
    prose, snippets = _read(path)
    for snippet in prose:
        for link in _LINK.findall(_INLINE_CODE.sub("", snippet.text)):
            mistake = _check_link(path, link)
            if mistake:
                yield f"{snippet.line}: {mistake}"
    for snippet in snippets:
        mistake = _check_command(snippet.text, targets, commands)
        if mistake:
            yield f"{snippet.line}: {mistake}"


def _read(path: Path) -> tuple[list[Snippet], list[Snippet]]:
    """The lines of prose, and the commands: lines of shell blocks and inline code."""
    prose: list[Snippet] = []
    code: list[Snippet] = []
    language: str | None = None
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        fence = _FENCE.match(line)
        if fence:
            language = fence[1].lower() if language is None else None
        elif language is None:
            code += [Snippet(number, text) for text in _INLINE_CODE.findall(line)]
            prose.append(Snippet(number, line))
        elif language in _SHELL_LANGUAGES:
            if code and code[-1].text.endswith("\\"):
                code[-1] = Snippet(code[-1].line, code[-1].text[:-1] + line.strip())
            else:
                code.append(Snippet(number, line.strip().removeprefix("$ ")))
    return prose, code


def _check_link(path: Path, link: str) -> str:
    if re.match(r"[a-z]+:", link):
        return ""
    name, _, fragment = link.partition("#")
    target = (path.parent / name).resolve() if name else path
    if not target.is_relative_to(REPOSITORY) or not target.exists():
        return f"link to {link}, which is not there"
    if fragment and fragment not in _anchors(target):
        return f"link to {link}: no such {'function' if target.suffix == '.py' else 'heading'}"
    return ""


def _anchors(path: Path) -> set[str]:
    if path.suffix == ".py":
        return set(_FUNCTION.findall(path.read_text()))
    headings = (_HEADING.match(snippet.text) for snippet in _read(path)[0])
    return {re.sub(r"[^\w\- ]", "", heading[1].strip().lower()).replace(" ", "-") for heading in headings if heading}


def _check_command(text: str, targets: set[str], commands: Mapping[str, Any]) -> str:
    try:
        words = shlex.split(text, comments=True)
    except ValueError:  # prose between quotes, or code of another language
        return ""
    while words and (_ASSIGNMENT.match(words[0]) or words[0] == "..."):
        del words[0]
    match words:
        case ["make", *rest]:
            unknown = [word for word in rest if re.fullmatch(r"[a-z][\w.-]*", word) and word not in targets]
            return f"`{text}`: the Makefile has no target {unknown[0]}" if unknown else ""
        case ["headwater", name, *rest] if not name.startswith("-"):
            return _check_headwater(text, name, rest, commands)
        case _:
            return ""


def _check_headwater(text: str, name: str, rest: Sequence[str], commands: Mapping[str, Any]) -> str:
    command = commands.get(name)
    if command is None:
        return f"`{text}`: there is no command {name}" if re.fullmatch(r"[a-z]+", name) else ""
    if name == "exec":
        return ""
    if hasattr(command, "commands"):
        return _check_headwater(text, rest[0], rest[1:], command.commands) if rest else ""
    options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    takes_program = not command.context_settings.get("allow_interspersed_args", True)
    expects_value = False
    for word in rest:
        if expects_value:
            expects_value = False
        elif word.startswith("-"):
            option = word.partition("=")[0]
            if takes_program and option in ("-m", "-c"):
                return ""
            if option not in {*options, "-h", "--help"}:
                return f"`{text}`: headwater {name} has no option {option}"
            parameter: Any = next((p for p in command.params if option in p.opts), None)
            # Help is an option that typer adds, and has no value.
            expects_value = parameter is not None and not parameter.is_flag and "=" not in word
        elif takes_program:
            return ""
    return ""


def commands_of(app: typer.Typer) -> Mapping[str, Any]:
    """The commands of ``app`` by name."""
    group: Any = typer.main.get_command(app)
    return dict(group.commands)


if __name__ == "__main__":
    sys.exit(main())
