"""Checks the wording of docstrings, comments, messages and documents by counting patterns that readers stumble over.

The patterns are counted per 10,000 words and compared with ceilings. They are a tripwire: a text below the ceilings can
still be hard to read. ``python tools/check_prose.py`` fails where a count is above its ceiling, or a docstring begins
with a question word; ``--table`` prints all counts, by package too; ``--list NAME [PATH]`` prints a pattern's places.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

REPOSITORY = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, kw_only=True, slots=True)
class Pattern:
    """A pattern of wording.

    Attributes:
      expression: finds it, in text without code.
      ceiling: how often it may occur in 10,000 words.
    """

    expression: re.Pattern[str]
    ceiling: float


def _words(*expressions: str) -> re.Pattern[str]:
    return re.compile(r"\b(?:" + "|".join(expressions) + r")\b", re.IGNORECASE)


#: Ceilings only sink: lower them with each package whose wording is revised. docs/glossary.md has the terms to use.
PATTERNS: Final = {
    "what": Pattern(expression=_words("what"), ceiling=1.0),
    "what without noun": Pattern(
        expression=_words(
            r"what (?:is|are|has|have|had|was|were|it|they|that|this|one|he|she|we|you|stands|comes|there)"
        ),
        ceiling=0.2,
    ),
    # "whose" always has a noun and is the ordinary possessive of things ("a worker whose task is lost"): not counted.
    "who": Pattern(expression=_words("who", "whom"), ceiling=0.35),
    "that of": Pattern(expression=_words("that of", "those of", "those that"), ceiling=0.8),
    "one that": Pattern(expression=_words("one that", "the other one"), ceiling=0.45),
    "comes": Pattern(expression=_words("comes", "goes", "gone", "came"), ceiling=0.55),
    "life": Pattern(expression=_words("life", "lives", "former"), ceiling=0),
    # Conditions begin with "if"; "where" is for places.
    "where it": Pattern(
        expression=_words(r"where (?:it|that|this|they|there|none|nothing|any|neither|both|one|not|wanted|given|no)"),
        ceiling=0.8,
    ),
    "is told": Pattern(expression=_words(r"(?:is|are|be|was|were|been) told", "could not be told"), ceiling=0.05),
    "leave out": Pattern(expression=_words(r"(?:leaves?|left|leaving) (?:\w+ )?out"), ceiling=0.05),
    "when None": Pattern(expression=re.compile(r"\b(?:when|where) None\b"), ceiling=0),
    "stands for": Pattern(
        expression=_words("stands? (?:for|in)", "anew", "as ever", "as there is", "but for"), ceiling=0.4
    ),
}

_CODE = re.compile(r"```.*?```|``[^`]*``|`[^`]*`|https?://\S+|<svg.*?</svg>", re.DOTALL)
_QUESTION = re.compile(r"(?:What|Who|Whom|Whose|Which)\b")
#: Maximum number of docstrings that begin with a question word.
_MAX_QUESTIONS: Final = 0


@dataclass(frozen=True, slots=True)
class Text:
    """A docstring, a comment, a message or a line of a document."""

    path: str
    line: int
    text: str
    is_docstring: bool = False


def texts_of_source(path: Path, name: str) -> Iterator[Text]:
    """Yields docstrings, comments and texts of several words of a Python file."""
    source = path.read_text(encoding="utf-8")
    docstrings: set[int] = set()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for number, part in enumerate(node.body):
            value = part.value if isinstance(part, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                docstrings.add(id(value))
                yield Text(name, value.lineno, value.value, is_docstring=number == 0)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in docstrings:
            continue
        if len(node.value.split()) >= 4:
            yield Text(name, node.lineno, node.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text(name, token.start[0], token.string.lstrip("#:! "))


def texts() -> Iterator[Text]:
    """Yields all texts of the source and the documents that git knows of."""
    listed = subprocess.run(
        ["git", "ls-files", "src/*.py", "docs/*.md", "README.md"],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in listed.stdout.split():
        path = REPOSITORY / name
        if not path.exists() or name.endswith("_pb2.py") or name == "docs/walks.md":
            continue
        if name.endswith(".py"):
            yield from texts_of_source(path, name)
        else:
            plain = _CODE.sub(lambda found: "\n" * found[0].count("\n"), path.read_text(encoding="utf-8"))
            for number, line in enumerate(plain.splitlines(), 1):
                yield Text(name, number, line)


def _area(name: str) -> str:
    parts = name.split("/")
    return parts[2] if parts[0] == "src" and len(parts) > 3 else parts[0]


def _table(found: list[Text]) -> None:
    areas: dict[str, dict[str, int]] = {}
    for text in found:
        for area in ("all", _area(text.path)):
            counts = areas.setdefault(area, dict.fromkeys(["words", *PATTERNS], 0))
            plain = _CODE.sub(" ", text.text)
            counts["words"] += len(plain.split())
            for name, pattern in PATTERNS.items():
                counts[name] += len(pattern.expression.findall(plain))
    print(f"{'':14}{'words':>9}" + "".join(f"{name:>20}" for name in PATTERNS))
    for area, counts in areas.items():
        rates = "".join(f"{1e4 * counts[name] / max(1, counts['words']):>14.1f}{counts[name]:>6}" for name in PATTERNS)
        print(f"{area:14}{counts['words']:>9}{rates}")


def problems(found: list[Text]) -> list[str]:
    """Returns one line for each pattern above its ceiling and for each docstring that begins with a question word."""
    words = sum(len(_CODE.sub(" ", text.text).split()) for text in found)
    lines: list[str] = []
    for name, pattern in PATTERNS.items():
        count = sum(len(pattern.expression.findall(_CODE.sub(" ", text.text))) for text in found)
        rate = 1e4 * count / max(1, words)
        if rate > pattern.ceiling:
            lines.append(
                f"{name!r} occurs {rate:.1f} times in 10,000 words, more than {pattern.ceiling:g} times: --list"
            )
    questions = [
        f"{text.path}:{text.line}: a docstring begins with {text.text.split()[0]!r}"
        for text in found
        if text.is_docstring and _QUESTION.match(text.text.lstrip())
    ]
    if len(questions) > _MAX_QUESTIONS:
        lines += [*questions, f"{len(questions)} docstrings begin with a question word, more than {_MAX_QUESTIONS}"]
    return lines


def main(arguments: list[str]) -> int:
    found = list(texts())
    if "--table" in arguments:
        _table(found)
        return 0
    if "--list" in arguments:
        at = arguments.index("--list")
        name, below = arguments[at + 1], "".join(arguments[at + 2 : at + 3])
        for text in found:
            plain = _CODE.sub(" ", text.text)
            if text.path.startswith(below) and PATTERNS[name].expression.search(plain):
                print(f"{text.path}:{text.line}: {' '.join(plain.split())}")
        return 0
    lines = problems(found)
    print("\n".join(lines), end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
