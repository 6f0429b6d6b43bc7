"""Draws which package imports which, from the imports of the source, as docs/packages.svg.

``python tools/package_picture.py`` writes the picture; with ``--check`` it fails where the picture is out of date.
``--lines`` prints the lines of source of each package instead.
"""

from __future__ import annotations

import sys
from pathlib import Path

import grimp

REPOSITORY = Path(__file__).resolve().parent.parent
PICTURE = REPOSITORY / "docs" / "packages.svg"
SOURCE = REPOSITORY / "src" / "headwater"

#: From the top: a package imports only packages below it, which import-linter enforces.
PACKAGES = {
    "platform": "jobs, policy, backends, hosts, web, command line",
    "tf2": "eager values, tf.function, custom loops",
    "keras": "strategies, mirrored training, embeddings",
    "tf1": "TensorFlow 1's API on the graph engine",
    "graph": "operations, passes, runtime, servers, sessions",
    "ps": "parameter servers for any pytree",
    "state": "snapshots, primary and backup, witness",
    "tables": "embedding tables",
    "cluster": "specs, transport, task shell, telemetry",
    "data": "datasets, records, file formats",
}
_COLOURS = (
    "#4063d8",
    "#cb3c33",
    "#389826",
    "#9558b2",
    "#b35c00",
    "#00798c",
    "#8a6d00",
    "#555555",
    "#aa336a",
    "#336633",
)
_ROW, _HEIGHT, _LEFT, _WIDTH, _ARC = 62, 44, 20, 380, 26


def dependencies() -> dict[str, list[str]]:
    """Returns for each package the packages that it imports, in the order of `PACKAGES`."""
    graph = grimp.build_graph("headwater", exclude_type_checking_imports=True, cache_dir=None)
    found: dict[str, set[str]] = {name: set() for name in PACKAGES}
    for module in graph.modules:
        package = module.split(".")[1] if "." in module else ""
        if package in PACKAGES:
            targets = {other.split(".")[1] for other in graph.find_modules_directly_imported_by(module) if "." in other}
            found[package] |= targets & PACKAGES.keys() - {package}
    return {name: [other for other in PACKAGES if other in found[name]] for name in PACKAGES}


def picture() -> str:
    """Returns the picture as SVG: a box for each package, an arc to each package that it imports."""
    rows = {name: number for number, name in enumerate(PACKAGES)}
    right, height = _LEFT + _WIDTH, _ROW * len(PACKAGES) + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{right + 300}" height="{height}" font-family="sans-serif">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for source, targets in dependencies().items():
        colour = _COLOURS[rows[source]]
        for number, target in enumerate(targets):
            start = 20 + rows[source] * _ROW + 8 + number * (_HEIGHT - 16) / max(1, len(targets) - 1)
            end = 20 + rows[target] * _ROW + 6 + rows[source] * 3.4
            bend = right + 20 + _ARC * (rows[target] - rows[source])
            parts.append(
                f'<path d="M{right} {start:.1f} C{bend} {start:.1f} {bend} {end:.1f} {right + 7} {end:.1f}" '
                f'fill="none" stroke="{colour}" stroke-width="1.4" opacity="0.8"/>'
                f'<path d="M{right} {end:.1f} l8 -3.5 v7 z" fill="{colour}"/>'
            )
    for name, contents in PACKAGES.items():
        top = 20 + rows[name] * _ROW
        parts.append(
            f'<rect x="{_LEFT}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" fill="#f4f4f8" '
            f'stroke="{_COLOURS[rows[name]]}" stroke-width="2"/>'
            f'<text x="{_LEFT + 12}" y="{top + 27}" font-size="17" font-weight="bold">{name}</text>'
            f'<text x="{_LEFT + 100}" y="{top + 27}" font-size="12">{contents}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def lines() -> dict[str, int]:
    """Returns the lines of Python source of each package, and of the modules beside them as ``headwater``."""
    counts = dict.fromkeys([*PACKAGES, "headwater"], 0)
    for path in SOURCE.rglob("*.py"):
        package = path.relative_to(SOURCE).parts[0]
        counts[package if package in PACKAGES else "headwater"] += path.read_text(encoding="utf-8").count("\n")
    return counts


def main(arguments: list[str]) -> int:
    if "--lines" in arguments:
        counts = lines()
        for name, count in counts.items():
            print(f"{name:10} {count:8,}")
        print(f"{'all':10} {sum(counts.values()):8,}")
        return 0
    made = picture()
    if "--check" not in arguments:
        PICTURE.write_text(made, encoding="utf-8")
        return 0
    if not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != made:
        print("docs/packages.svg is out of date: python tools/package_picture.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
