"""Writes the ``.pyi`` files of the namespace ``tf``, from the same tables that make the namespace.

Editors and type checkers read them: ``tf.train.Supervisor(`` shows arguments and documentation.

``python tools/stubs.py`` writes the files; with ``--check`` it fails where one is out of date.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import importlib
import inspect
import re
import sys
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import FunctionType

from headwater.tf1.compat import tf
from headwater.tf1.compat.names import Area
from headwater.tf1.compat.tables.areas import AREAS
from headwater.tf1.compat.tables.contrib import CONTRIB
from headwater.tf1.compat.tables.core import CORE

FOLDER = Path(__file__).resolve().parent.parent / "src" / "headwater" / "tf1" / "compat" / "tf"
HEADER = """\
# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
"""


@cache
def imported(module: str) -> Mapping[str, str]:
    """The statements that import names into a module, by the name."""
    found: dict[str, str] = {}
    source = Path(importlib.import_module(module).__file__ or "").read_text()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name: f"from {node.module} import {alias.name}" for alias in node.names}
        elif isinstance(node, ast.ClassDef):
            found.setdefault(node.name, f"from {module} import {node.name}")
    return found


def made_function(source: str, there: str) -> FunctionType | None:
    """The function ``there`` of a module if another function returned it, so that its source hides its arguments."""
    value = getattr(importlib.import_module(source), there)
    return value if isinstance(value, FunctionType) and "<locals>" in value.__qualname__ else None


def declaration(name: str, function: FunctionType, area_names: Container[str]) -> str:
    """The declaration of a function, with its documentation.

    Args:
      area_names: names that the stub defines; in annotations, such a name of Python is qualified (``builtins.bool``).
    """
    signature = inspect.signature(function)

    def annotation_of(annotation: object) -> object:
        return re.sub(
            r"\w+",
            lambda word: f"builtins.{word[0]}" if word[0] in area_names and word[0] in vars(builtins) else word[0],
            annotation if isinstance(annotation, str) else inspect.formatannotation(annotation),
        )

    shown = [
        parameter.replace(
            default=parameter.default if parameter.default is parameter.empty else ...,
            annotation=annotation_of(parameter.annotation),
        )
        for parameter in signature.parameters.values()
    ]
    result = annotation_of(signature.return_annotation)
    text = (
        str(signature.replace(parameters=shown, return_annotation=result)).replace("'", "").replace("Ellipsis", "...")
    )
    return f'def {name}{text}:\n    """{inspect.getdoc(function)}"""\n'


def types_in(declarations: str, modules: Iterable[str]) -> Iterator[str]:
    """The imports of the types that declarations name, each private to the stub."""
    words = set(re.findall(r"\w+", re.sub(r'""".*?"""', "", declarations, flags=re.DOTALL)))
    known = {word: line for module in modules for word, line in imported(module).items()}
    for word in sorted(words & known.keys()):
        yield f"{known[word]}\n"


def stub_of(area: Area) -> str:
    """The text of the stub of an area: an import for each name, under the name that programs use.

    A function that another function returned is declared, with the arguments that it has when it runs.
    """
    places = {name: module.rpartition(".")[::2] for name, module in area.module_table().items()} | area.table()
    made = {name: function for name, place in area.table().items() if (function := made_function(*place))}
    imports = sorted(
        f"from {source} import {there} as {name}\n" for name, (source, there) in places.items() if name not in made
    )
    declared = "".join(declaration(name, function, places) for name, function in sorted(made.items()))
    # Types first: the names that the area exports replace types of the same name.
    origins = {area.table()[name][0] for name in made} | {function.__module__ for function in made.values()}
    types = "".join(types_in(declared, sorted(origins)))
    if "builtins." in declared:
        types = f"import builtins\n{types}"
    # A stub exports a name under another one only where it says so.
    exported = "".join(f'    "{name}",\n' for name in sorted(places))
    return f"{types}{''.join(imports)}\n{declared}__all__ = [\n{exported}]\n"


def constants() -> Iterator[str]:
    """The versions that ``tf`` itself says."""
    for name, value in vars(tf).items():
        if isinstance(value, str | int) and (name.isupper() or name.endswith(("_version__", "flag__"))):
            yield f"{name}: {type(value).__name__}"


def stubs() -> Mapping[Path, str]:
    """The text of each stub by its path."""
    areas = {**AREAS, **CONTRIB}
    found = {FOLDER / "__init__.pyi": stub_of(CORE) + "\n" + "\n".join(constants()) + "\n"}
    for name, area in areas.items():
        parts = name.split(".")[1:]
        is_package = any(other.startswith(f"{name}.") for other in areas)
        path = FOLDER.joinpath(*parts, "__init__.pyi") if is_package else FOLDER.joinpath(*parts).with_suffix(".pyi")
        found[path] = stub_of(area)
    return {path: HEADER + text for path, text in found.items()}


def main() -> int:
    """Writes or checks the stubs; 1 where one is out of date."""
    parser = argparse.ArgumentParser(description="Writes the .pyi files of the namespace tf.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a file is out of date")
    check: bool = parser.parse_args().check
    wanted = stubs()
    stale = [path for path in FOLDER.rglob("*.pyi") if path not in wanted]
    stale += [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    if check:
        for path in stale:
            print(f"{path} is out of date: run make stubs")
        return 1 if stale else 0
    for path in stale:
        path.unlink(missing_ok=True)
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
