"""No two modules of the package need each other, not even by imports within functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"


def _module(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Returns all parts of a module except imports for type checkers."""
    for part in ast.iter_child_nodes(tree):
        if isinstance(part, ast.If) and ast.unparse(part.test) == "TYPE_CHECKING":
            continue
        yield part
        yield from _statements(part)


def _imported(path: Path, modules: set[str]) -> set[str]:
    found: set[str] = set()
    for part in _statements(ast.parse(path.read_text())):
        if isinstance(part, ast.ImportFrom) and part.module is not None:
            for alias in part.names:
                inner = f"{part.module}.{alias.name}"
                found.add(inner if inner in modules else part.module)
        elif isinstance(part, ast.Import):
            found |= {alias.name for alias in part.names}
    return found & modules


@pytest.mark.slow
def test_imports_have_no_cycles() -> None:
    # The package itself may import all of its parts; it says to some where others are.
    paths = {_module(path): path for path in SOURCE.rglob("*.py") if not path.stem.endswith("_pb2")}
    paths.pop("headwater")
    assert len(paths) > 500
    sorter = TopologicalSorter({module: _imported(path, set(paths) - {module}) for module, path in paths.items()})
    try:
        sorter.prepare()
    except CycleError as error:
        pytest.fail(f"modules need each other: {' <- '.join(error.args[1])}")


def test_no_module_of_the_package_is_imported_by_a_name_that_layers_do_not_see() -> None:
    found = [_module(path) for path in SOURCE.rglob("*.py") if 'import_module("headwater' in path.read_text()]
    assert found == []
