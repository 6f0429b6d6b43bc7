"""Writes docs/compatibility.md: which of TensorFlow's names Headwater has, and what differs.

The names are facts, kept in tools/data: the public ones of TensorFlow 1.15, and others that programs use, of older and
newer dialects and of modules that were never meant to be public. Whether a name is there is asked of the finder that
programs get (`headwater.tf1.compat.modules`); what falls short of one that is there stands in
`headwater.tf1.compat.partial`.

``python tools/compatibility.py`` writes the file; with ``--check`` it fails where the file is out of date.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headwater.tf1.compat import modules
from headwater.tf1.compat.partial import CONTRIB_LEFT_OUT, LEFT_OUT, PARTIAL

REPOSITORY = Path(__file__).resolve().parent.parent
TABLE = REPOSITORY / modules.COMPATIBILITY_TABLE
DATA = REPOSITORY / "tools" / "data"

INTRODUCTION = """\
# What of TensorFlow is there

`from headwater import tf`, or `import tensorflow as tf` in a program that `headwater exec` runs, is the namespace of
TensorFlow 1.15 with the spellings of 0.x beside it. A name that is not there raises an `AttributeError` that names it.
`make compatibility` makes this page: it asks for each name as a program would.

Functions take the arguments of TensorFlow 1.15, in its order and with its defaults, give operations its names, and
check types and shapes as it does: some 700 expressions are compared with what TensorFlow answers, graphs, values,
gradients and errors alike. Graphs that TensorFlow built, with its own gradient operations, run as they are: conditions
and loops of both forms, resource variables, functions, datasets with their iterators, and forms of 0.x. What in them
keeps values of turns for a gradient (stacks, tensor arrays) runs on the host. Not imported: `Case`, `SymbolicGradient`,
`ParseSingleSequenceExample`, and of tensor lists `Concat` and `Split`.

All public names of TensorFlow 1.15 are listed, but for the inner modules of `tf.contrib`, and `tf.raw_ops`, which has a
function for each operation type that says its inputs by name.
`tf.compat.v1` is `tf` itself. Names of other dialects, and of modules that programs import although they are not
public, are those seen in programs. Names stand without their area: `relu` under `tf.nn` is `tf.nn.relu`. Those with an
asterisk are there in part.
"""

DIFFERENCES = """\
## What differs

- `tf.keras` is Keras 3. Functions of `tf.keras.backend` work on its values and symbolic tensors, not on tensors of
  graphs; its variables have values at once, and updates happen when they are called.
- Random numbers: the same seeds give the same numbers in every session, but others than TensorFlow's.
- An index out of range fails on CPUs, as in TensorFlow: before anything is computed where it comes from a feed, a
  pipeline, another task or a constant; when all of that part of the step is computed, variables included, where that
  part computes it, as with slices out of bounds and integers divided by zero. Within loops and branches that are
  compiled it gives zeros, or what lies nearest, as it does between two operations of a step that run on the host.
- A label, segment or row out of range is an error of the same kind, on CPUs. A label that the same part of the step
  computes fails when this part has run: a variable that it changes has taken the NaN.
- The gradient of a loop that runs on the host takes its turns one by one where only changing shapes keep it from being
  compiled, and is a LookupError else (`tf.while_loop` says which loops do).
- The gradient of a partitioned `tf.nn.embedding_lookup` has, for each part, some rows more than were asked for: zeros
  with the index -1, which updates, accumulators and conversions to a tensor leave out. So few shapes are compiled.
- `tf.train.SyncReplicasOptimizer` gives no tokens where their number is not said (`num_tokens`), so every gradient
  counts exactly once; TensorFlow gives `replicas_to_aggregate`, and each replica's second gradient is stale.
- A step is compiled as a whole; sums may differ in the last digits.
- Inputs that say a shape (`shape` of `tf.reshape`, `axis` of `tf.reduce_sum` and the like) may be computed; each new
  value compiles the step anew.
- `tf.nn.swish`, `tf.repeat`, `tf.sort`, `tf.einsum`, cross entropies of matrices and partitioned lookups are made of
  fewer operations; the names of those inside differ.

## Deliberate differences

Headwater reports some mistakes earlier than TensorFlow 1.15, and accepts some programs that TensorFlow refuses:

- `tf.transpose(x, [0, 1, 1])` with constants: TensorFlow raises `InvalidArgumentError` when it runs, Headwater
  `ValueError` when the graph is built.
- `array.write(0, a).write(0, b)` of a `TensorArray`: the same error, but when the graph is built.
- `array.read(0)` twice: TensorFlow has cleared the element after the first; Headwater returns it both times.
- `tf.contrib.lookup.index_table_from_file(path).init`: a name of 0.x, which TensorFlow 1.15 no longer has.
- `tf.nn.top_k([3., nan, 5.], 2)`: 5 and 3; in TensorFlow NaN can hide a larger number.
- A shared accumulator with another shape or type: TensorFlow accepts it; Headwater refuses it like a shared queue.

## TensorFlow's own tests

TensorFlow 1.15.5's tests of kernels, framework, operations, training and layers are run with both engines, one file in
a process. Imports of internal modules are replaced by lookups of the same names in the public namespace. A test counts
if TensorFlow itself passes it in this form, so tests of names that are not public do not count. Of 17 files, drawn at
random from 408, TensorFlow passes 320 tests and Headwater 296 (92.5 %). Headwater passed 250 (78 %) before the errors
that these files showed were corrected; the rate of the other 391 files is not known. Most of the 24 expect another
wording of an error, checkpoints in format V1, or names that NumPy has removed since.
"""

_DEEP = ("contrib", "python", "core")
"""Areas whose parts are areas of their own: ``tf.contrib.layers``, not ``tf.contrib``."""


def public_names() -> list[str]:
    """The public names of TensorFlow 1.15, such as ``tf.nn.relu``."""
    return (DATA / "tensorflow_1_15_names.txt").read_text().split()


def other_names() -> list[str]:
    """Names that programs use and TensorFlow 1.15 has elsewhere, or not in public, or not at all."""
    return (DATA / "other_names.txt").read_text().split()


def classify(names: Sequence[str]) -> dict[str, bool]:
    """For each name whether it is there. Installs the finder: from then on ``tensorflow`` is Headwater."""
    modules.install()
    return {name: _is_there(name) for name in names}


def _is_there(name: str) -> bool:
    value: Any = importlib.import_module(modules.TENSORFLOW)
    for word in name.split(".")[1:]:
        try:
            value = getattr(value, word)
        except AttributeError:
            return False
    return True


def area_of(name: str) -> str:
    """The area that lists ``name``: ``tf.nn`` for ``tf.nn.relu``, ``tf`` for ``tf.add``."""
    words = name.split(".")
    return ".".join(words[: min(len(words) - 1, 3 if words[1] in _DEEP else 2)])


def render(public: Mapping[str, bool], others: Mapping[str, bool]) -> str:
    """The whole page.

    Raises:
      ValueError: `PARTIAL` speaks of a name that is not there.
    """
    lines = [
        INTRODUCTION,
        *_counts(public, others),
        DIFFERENCES,
        *_partly({**public, **others}),
        *_reasons(public),
        *_contrib(public),
        *_areas("TensorFlow 1.15", public),
        *_areas("Other dialects and inner modules", others),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _counts(public: Mapping[str, bool], others: Mapping[str, bool]) -> Iterator[str]:
    contrib = {name: there for name, there in public.items() if name.startswith("tf.contrib.")}
    rows = (
        ("TensorFlow 1.15", {name: there for name, there in public.items() if name not in contrib}),
        ("its `tf.contrib`", contrib),
        ("other dialects and inner modules", others),
    )
    yield from ("| names | there | of |", "| --- | ---: | ---: |")
    yield from (f"| {title} | {sum(names.values())} | {len(names)} |" for title, names in rows)
    left = sum(len(names) for names in _left_out(public).values())
    yield from ("", f"Of TensorFlow 1.15's names that are missing, {left} are left out on purpose; see *Left out*.", "")


def _share(public: Mapping[str, bool]) -> str:
    names = [there for name, there in public.items() if not name.startswith("tf.contrib.")]
    left = sum(len(listed) for listed in _left_out(public).values())
    rest, there = len(names) - left, sum(names)
    return (
        f"{there} of TensorFlow 1.15's {len(names)} names outside tf.contrib are there, {there / len(names):.1%}; "
        f"{left} are left out on purpose; of the rest {there / rest:.1%} are there"
    )


def _left_out(public: Mapping[str, bool]) -> dict[str, list[str]]:
    """For each reason the names that are left out for it."""
    missing = [name for name, there in public.items() if not there and not name.startswith("tf.contrib.")]

    def belongs(name: str, beginnings: str) -> bool:
        return any(name == each or (each[-1] in "._" and name.startswith(each)) for each in beginnings.split())

    return {reason: [name for name in missing if belongs(name, names)] for reason, names in LEFT_OUT.items()}


def _reasons(public: Mapping[str, bool]) -> Iterator[str]:
    yield from ("## Left out", "")
    for reason, names in _left_out(public).items():
        yield _wrapped(f"- {', '.join(f'`{name}`' for name in names)}: {reason}.", "  ")
    yield ""


def _contrib(public: Mapping[str, bool]) -> Iterator[str]:
    """The packages of ``tf.contrib`` with their counts, and the replacements of missing names.

    Raises:
      ValueError: `CONTRIB_LEFT_OUT` lacks a package with missing names, or has one with all of them.
    """
    packages: dict[str, list[bool]] = {}
    for name, there in public.items():
        if name.startswith("tf.contrib."):
            packages.setdefault(name.split(".")[2], []).append(there)
    wrong = sorted(package for package, found in packages.items() if all(found) == (package in CONTRIB_LEFT_OUT))
    if wrong:
        raise ValueError(f"headwater.tf1.compat.partial.CONTRIB_LEFT_OUT is out of date: {', '.join(wrong)}")
    yield from ("## Packages of tf.contrib", "", "| package | there | of | missing names | use |")
    yield "| --- | ---: | ---: | --- | --- |"
    for package in sorted({*packages, *CONTRIB_LEFT_OUT}):
        found = packages.get(package, [])
        reason, replacement = CONTRIB_LEFT_OUT.get(package, ("", ""))
        yield f"| `{package}` | {sum(found)} | {len(found) or ''} | {reason} | {replacement} |"
    yield from ("", "Packages without a count have their names in submodules, or are no part of `tf.contrib`.", "")


def _partly(names: Mapping[str, bool]) -> Iterator[str]:
    wrong = [name for name in PARTIAL if not names.get(name)]
    if wrong:
        raise ValueError(f"headwater.tf1.compat.partial speaks of {', '.join(wrong)}: not there, or not in tools/data")
    yield from ("## Partly there", "")
    for name, note in sorted(PARTIAL.items()):
        yield _wrapped(f"- `{name}`: {note}.", "  ")
    yield ""


def _areas(title: str, names: Mapping[str, bool]) -> Iterator[str]:
    areas: dict[str, list[str]] = {}
    for name in names:
        areas.setdefault(area_of(name), []).append(name)
    absent = sorted(area for area, listed in areas.items() if not any(names[name] for name in listed))
    yield from (f"## {title}", "")
    for area in sorted(areas.keys() - set(absent)):
        listed = areas[area]
        there = [name for name in listed if names[name]]
        yield from (f"### {area}: {len(there)} of {len(listed)}", "")
        yield from _paragraph("There", area, there)
        yield from _paragraph("Not there", area, [name for name in listed if not names[name]])
    if absent:
        yield from (f"### Areas of {title} that are not there", "")
        for area in absent:
            yield from _paragraph(f"`{area}` ({len(areas[area])})", area, areas[area])


def _paragraph(title: str, area: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        shown = sorted((name.removeprefix(f"{area}."), "\\*" if name in PARTIAL else "") for name in names)
        yield from (_wrapped(f"{title}: {', '.join(f'`{name}`{mark}' for name, mark in shown)}."), "")


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def main() -> int:
    """Writes or checks the file."""
    parser = argparse.ArgumentParser(description="Writes docs/compatibility.md.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 where it is out of date")
    options = parser.parse_args()
    public, others = classify(public_names()), classify(other_names())
    text = render(public, others)
    print(_share(public))
    if not options.check:
        TABLE.write_text(text)
    elif TABLE.read_text() != text:
        print(f"{modules.COMPATIBILITY_TABLE} is out of date; `make compatibility` writes it")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
