#!/usr/bin/env python3
"""Writes the reference of what programs use, as HTML: the namespace ``tf``, strategies, tables and the like.

Other modules are the inside of the package: ARCHITECTURE.md shows them. Run through ``make docs``.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import warnings
from pathlib import Path

import pdoc
import pdoc.render

from headwater.tf1.compat.tables.areas import AREAS
from headwater.tf1.compat.tables.contrib import CONTRIB
from headwater.tf1.compat.tables.core import CORE

#: What is public beside ``tf``; a package stands for its own names, not for its modules.
MODULES = (
    "headwater",
    "headwater.ps.consistency",
    "headwater.errors",
    "headwater.keras",
    "headwater.keras.layers",
    "headwater.platform.client",
    "headwater.platform.notebook",
    "headwater.tables",
    "headwater.tables.snapshots",
    "headwater.tf1.testing",
    "headwater.tf1.training.consistency",
)
TF = "headwater.tf1.compat.tf"


def show(name: str, names: list[str] | None = None) -> None:
    """Has the page of a module show ``names``, without modules below it; None means the names that it says itself."""
    module = importlib.import_module(name)
    if names is None:
        names = getattr(module, "__all__", None)
    if names is None and hasattr(module, "__path__"):  # a package, whose names are loaded at first use
        names = [each for each in dir(module) if not each.startswith("_")]
    if names is not None:
        vars(module).update({each: getattr(module, each) for each in names}, __all__=names)


def prepare() -> list[str]:
    """The modules to show, each with the names that it is to show."""
    show("headwater", ["ParameterServer", "report"])
    for name in MODULES[1:]:
        show(name)
    show(TF, sorted(CORE.table()))
    found = [*MODULES, TF]
    for name, area in {**AREAS, **CONTRIB}.items():
        if name.startswith("tf.") and area.names:
            show(f"headwater.tf1.compat.{name}", sorted(area.table()))
            found.append(f"headwater.tf1.compat.{name}")
    return found


def main() -> int:
    """Writes the pages."""
    parser = argparse.ArgumentParser(description="Writes the API reference as HTML.")
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    modules = prepare()
    # Annotations that name what only type checkers import are shown as they stand.
    warnings.filterwarnings("ignore", message="Error parsing type annotation")
    warnings.filterwarnings("error", message=".*does not resolve")
    pdoc.render.configure(docformat="google", show_source=False)
    pdoc.pdoc(*modules, output_directory=folder)
    print(f"{folder / 'headwater.html'}: {len(modules)} modules")
    return 0


if __name__ == "__main__":
    sys.exit(main())
