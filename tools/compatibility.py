"""Writes docs/compatibility.md: the supported names of TensorFlow, and differences in behaviour.

The names are stored in tools/data: the public names of TensorFlow 1.15, and other names that programs use, from older
and newer versions and from modules that are not public. A name is supported if the finder that programs use
(`headwater.tf1.compat.modules`) finds it. `headwater.tf1.compat.partial` describes partial support.

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
from headwater.tf1.compat.partial import PARTIAL, UNSUPPORTED, UNSUPPORTED_CONTRIB

REPOSITORY = Path(__file__).resolve().parent.parent
TABLE = REPOSITORY / modules.COMPATIBILITY_TABLE
DATA = REPOSITORY / "tools" / "data"

INTRODUCTION = """\
# Supported names of TensorFlow

`from headwater import tf`, or `import tensorflow as tf` in a program that `headwater exec` runs, is the namespace of
TensorFlow 1.15 and also has the spellings of 0.x. An unsupported name raises an `AttributeError` that names it.
`make compatibility` generates this page; it looks up each name as a program would.

Functions have the arguments of TensorFlow 1.15, in the same order and with the same defaults. Operations have the same
names, and types and shapes are checked in the same way: tests compare graphs, values, gradients and errors of some 700
expressions with TensorFlow's. Graphs that TensorFlow built, including their gradient operations, run unchanged:
conditions and loops of both forms, resource variables, functions, datasets with their iterators, and forms of 0.x.
Operations that keep values of iterations for a gradient (stacks, tensor arrays) run on the host. Not imported: `Case`,
`SymbolicGradient`, `ParseSingleSequenceExample`, and the tensor list operations `Concat` and `Split`.

All public names of TensorFlow 1.15 are listed, except the inner modules of `tf.contrib`, and `tf.raw_ops`, which has a
function for each operation type that names its inputs.
`tf.compat.v1` is `tf` itself. Names of other versions, and of modules that are not public, are listed if programs use
them. Names are listed without their area: `relu` under `tf.nn` is `tf.nn.relu`. Names with an asterisk are partially
supported.
"""

DIFFERENCES = """\
## Differences

- `tf.keras` is Keras 3; its variables are initialised when they are created, and updates are executed when they are
  called. On tensors of graphs its functions, layers and models add operations and create variables of the graph, with
  the names of TensorFlow 1.15. Layers and functions without an equivalent in `tf`, such as `LSTM` and losses, are
  computed by one operation in the task that has built the graph, and cannot be exported. Where Keras 3 has changed a
  default or a formula (`hard_sigmoid`, the recurrent activation of `LSTM` and `GRU`, the sign of `cosine_similarity`,
  the mean of `binary_accuracy`), Keras 3 applies. Variables and random numbers of `tf.keras.backend` belong to
  no graph.
- Random numbers: the same seeds give the same numbers in every session, but other numbers than in TensorFlow. Stateless
  functions, such as `tf.random.stateless_uniform`, return TensorFlow's numbers: uniform, integer, binomial and Poisson
  numbers and classes exactly, normal and gamma numbers up to rounding. TensorFlow draws the classes of large batches,
  and the numbers of `stateless_parameterized_truncated_normal`, in an order that depends on its threads; these differ.
- An index out of range raises an error on CPUs, as in TensorFlow. If the index is from a feed, a pipeline, another task
  or a constant, the error is raised before anything is computed. If the same part of the step computes the index, the
  error is raised after that part has run and has changed its variables. The same applies to slices out of bounds and to
  integer divisions by zero. Within compiled loops and branches, and between two operations of a step that run on the
  host, there is no error: the result is zeros or the nearest element.
- A label, segment or row out of range raises an error at the same point, on CPUs. If the same part of the step computes
  the label, that part has already set the variables that it changes to NaN.
- The gradient of a loop that runs on the host is computed iteration by iteration if changing shapes are the only reason
  why it is not compiled; otherwise it raises LookupError (see `tf.while_loop` for the loops that run on the host).
- The gradient of a partitioned `tf.nn.embedding_lookup` is padded with rows of zeros that have the index -1, so that
  fewer shapes have to be compiled. Updates, accumulators and conversions to a tensor ignore these rows.
- `tf.train.SyncReplicasOptimizer` provides no initial tokens if `num_tokens` is not given, so every gradient counts
  exactly once. TensorFlow provides `replicas_to_aggregate` tokens, so that each replica computes its second gradient
  from old values, and that gradient is dropped as stale.
- A step is compiled as a whole, which changes the order of additions: sums may differ in the last digits.
- Inputs that determine a shape (such as `shape` of `tf.reshape` and `axis` of `tf.reduce_sum`) may be computed; each
  new value compiles the step again.
- `tf.debugging.enable_check_numerics` raises FloatingPointError, not InvalidArgumentError, and does not check the steps
  that Keras compiles for `fit`.
- `tf.linalg.eig` and `eigvals` list eigenvalues in LAPACK's order, and eigenvectors have LAPACK's phase; TensorFlow
  promises no order.
- `tf.image.decode_jpeg` without `dct_method` decodes as TensorFlow's `INTEGER_ACCURATE`; TensorFlow's own default is
  its faster, less exact form.
- `tf.nn.swish`, `tf.repeat`, `tf.sort`, `tf.einsum`, cross entropies of matrices and partitioned lookups consist of
  fewer operations, with other names.

## Deliberate differences

Headwater reports some mistakes earlier than TensorFlow 1.15, and accepts some programs that TensorFlow rejects:

- `tf.transpose(x, [0, 1, 1])` with constants: TensorFlow raises `InvalidArgumentError` when it runs, Headwater
  `ValueError` when the graph is built.
- `array.write(0, a).write(0, b)` of a `TensorArray`: the same error, but when the graph is built.
- `array.read(0)` twice: TensorFlow clears the element after the first read; Headwater returns it both times.
- `tf.contrib.lookup.index_table_from_file(path).init`: a name of 0.x, which TensorFlow 1.15 no longer has.
- `tf.reduce_sum(ragged, 1, keepdims=True)`: TensorFlow 2 computes it, TensorFlow 1.15 raises `ValueError`.
- `tf.nn.top_k([3., nan, 5.], 2)`: Headwater returns 5 and 3; in TensorFlow, a NaN can hide a larger number.
- A step of `tf.contrib.factorization.KMeans` with mini-batches: TensorFlow reads the number of each cluster's points
  before or after it adds the batch, at random; Headwater reads it before, so that each point counts once.
- A shared accumulator that is defined again with another shape or type: TensorFlow accepts it; Headwater rejects it,
  as both do for queues.
- Constant axes, sizes and indices that are wrong, as in `tf.sparse_reduce_sum(s, 5)`: `ValueError` when the graph is
  built; some operations of TensorFlow raise `InvalidArgumentError` when they run.

Of 20,000 programs that `tools/differential.py` draws, 203 differ. In about half of these TensorFlow 1.15 is at fault:

- Its gradient lacks the shape of a broadcast input (`tf.atan2`), does not exist (`tf.reduce_euclidean_norm`), or is
  NaN at 0 (`tf.cumprod`).
- Its `tf.sort` and `tf.argsort` fail for tensors of unknown rank, and their gradients fail for empty tensors.
- Its `tf.reduce_euclidean_norm` of a single negative element is negative.
- Its `tf.div` of integers is wrong for a scalar that is fed: `tf.div(2147483647, -3)` is 715827882.

The other differences are infinities and NaN in `RMSPropOptimizer`, errors of another class, and errors that only
TensorFlow raises: for scalars of unknown rank, and for tensors without elements.

## TensorFlow's own tests

TensorFlow 1.15.5's tests of kernels, framework, operations, training and layers are run with both engines, one file in
a process. Imports of internal modules are replaced by lookups of the same names in the public namespace. A test counts
if TensorFlow itself passes it in this form, so tests of names that are not public do not count. A test that takes
longer than 25 s fails. Of 84 files, drawn at random from 407, TensorFlow passes 892 tests:

| folder | files | TensorFlow | Headwater, before corrections | Headwater |
| --- | ---: | ---: | ---: | ---: |
| kernel_tests | 60 | 758 | 642 (84.7 %) | 680 (89.7 %) |
| training | 9 | 67 | 62 (92.5 %) | 62 (92.5 %) |
| ops | 7 | 41 | 32 (78.0 %) | 33 (80.5 %) |
| framework | 6 | 26 | 7 (26.9 %) | 21 (80.8 %) |
| client, feature_column | 2 | 0 | 0 | 0 |
| all | 84 | 892 | 743 (83.3 %) | 796 (89.2 %) |

The last column is a lower bound: only the files that had failed were run again, two of them in part or not at all. Of
the 96 other tests, 19 use what NumPy 2 has removed or rounds otherwise; most of the rest expect another wording of an
error. Random operations with equal seeds in one graph are equal in TensorFlow when each is run for the first time; here
they are equal only within one step.

Another sample, of 370 files drawn at random from 560, also includes tests of datasets, ragged tensors and saved models.
TensorFlow passes a test in 156 of them.
In it a test may use a helper module of TensorFlow's tests, the names that NumPy 2 has removed are there for the tests,
and a test that takes longer than 60 s fails. The operation types of TensorFlow's test library, which exist only for
tests, are registered beside Headwater's, and the context that chooses between TensorFlow's kernels has no effect.
TensorFlow passes 2,573 tests:

| folder | TensorFlow | Headwater, before corrections | Headwater |
| --- | ---: | ---: | ---: |
| kernel_tests | 1507 | 1342 (89.1 %) | 1407 (93.4 %) |
| ops | 539 | 422 (78.3 %) | 518 (96.1 %) |
| data | 244 | 172 (70.5 %) | 190 (77.9 %) |
| framework | 91 | 49 (53.8 %) | 81 (89.0 %) |
| layers | 78 | 63 (80.8 %) | 72 (92.3 %) |
| training | 71 | 66 (93.0 %) | 66 (93.0 %) |
| summary, saved_model, client, lib | 43 | 38 (88.4 %) | 38 (88.4 %) |
| all | 2573 | 2152 (83.6 %) | 2372 (92.2 %) |

Only files with failures were run again for the last column: 78 of the 156, with a limit of 25 s for each test. In 31 of
the tests that pass there and not before, the cause is the registered types or that context, not a correction. Of the
201 other tests, 42 expect another wording of an error, 33 an error that is not raised here, 15 use internal attributes,
and 13 use NumPy in ways that NumPy 2 refuses.
"""

_DEEP = ("contrib", "python", "core")
"""Areas that are divided further: ``tf.contrib.layers``, not ``tf.contrib``."""


def public_names() -> list[str]:
    """Returns the public names of TensorFlow 1.15, such as ``tf.nn.relu``."""
    return (DATA / "tensorflow_1_15_names.txt").read_text().split()


def other_names() -> list[str]:
    """Returns names that programs use and that are not public in TensorFlow 1.15 under this name."""
    return (DATA / "other_names.txt").read_text().split()


def classify(names: Sequence[str]) -> dict[str, bool]:
    """Returns whether each name is supported. Installs the finder: from then on ``tensorflow`` is Headwater."""
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
    """Returns the area that lists ``name``: ``tf.nn`` for ``tf.nn.relu``, ``tf`` for ``tf.add``."""
    words = name.split(".")
    return ".".join(words[: min(len(words) - 1, 3 if words[1] in _DEEP else 2)])


def render(public: Mapping[str, bool], others: Mapping[str, bool]) -> str:
    """Returns the whole page.

    Raises:
      ValueError: `PARTIAL` names an unsupported name.
    """
    lines = [
        INTRODUCTION,
        *_counts(public, others),
        DIFFERENCES,
        *_partly({**public, **others}),
        *_reasons(public),
        *_contrib(public),
        *_areas("TensorFlow 1.15", public),
        *_areas("Other versions and inner modules", others),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _counts(public: Mapping[str, bool], others: Mapping[str, bool]) -> Iterator[str]:
    contrib = {name: there for name, there in public.items() if name.startswith("tf.contrib.")}
    rows = (
        ("TensorFlow 1.15", {name: there for name, there in public.items() if name not in contrib}),
        ("its `tf.contrib`", contrib),
        ("other versions and inner modules", others),
    )
    yield from ("| names | supported | of |", "| --- | ---: | ---: |")
    yield from (f"| {title} | {sum(names.values())} | {len(names)} |" for title, names in rows)
    left = sum(len(names) for names in _left_out(public).values())
    yield from (
        "",
        f"{left} names of TensorFlow 1.15 are unsupported deliberately; see *Deliberately unsupported*.",
        "",
    )


def _share(public: Mapping[str, bool]) -> str:
    names = [there for name, there in public.items() if not name.startswith("tf.contrib.")]
    left = sum(len(listed) for listed in _left_out(public).values())
    rest, there = len(names) - left, sum(names)
    return (
        f"{there} of TensorFlow 1.15's {len(names)} names outside tf.contrib are supported, {there / len(names):.1%}; "
        f"{left} are unsupported deliberately; of the rest {there / rest:.1%} are supported"
    )


def _left_out(public: Mapping[str, bool]) -> dict[str, list[str]]:
    """Returns the deliberately unsupported names of each reason."""
    missing = [name for name, there in public.items() if not there and not name.startswith("tf.contrib.")]

    def belongs(name: str, beginnings: str) -> bool:
        return any(name == each or (each[-1] in "._" and name.startswith(each)) for each in beginnings.split())

    return {reason: [name for name in missing if belongs(name, names)] for reason, names in UNSUPPORTED.items()}


def _reasons(public: Mapping[str, bool]) -> Iterator[str]:
    yield from ("## Deliberately unsupported", "")
    for reason, names in _left_out(public).items():
        yield _wrapped(f"- {', '.join(f'`{name}`' for name in names)}: {reason}.", "  ")
    yield ""


def _contrib(public: Mapping[str, bool]) -> Iterator[str]:
    """Yields the packages of ``tf.contrib`` with their counts, and the replacements of missing names.

    Raises:
      ValueError: `UNSUPPORTED_CONTRIB` lacks a package with missing names, or has a complete package.
    """
    packages: dict[str, list[bool]] = {}
    for name, there in public.items():
        if name.startswith("tf.contrib."):
            packages.setdefault(name.split(".")[2], []).append(there)
    wrong = sorted(package for package, found in packages.items() if all(found) == (package in UNSUPPORTED_CONTRIB))
    if wrong:
        raise ValueError(f"headwater.tf1.compat.partial.UNSUPPORTED_CONTRIB is out of date: {', '.join(wrong)}")
    yield from ("## Packages of tf.contrib", "", "| package | supported | of | missing names | replacement |")
    yield "| --- | ---: | ---: | --- | --- |"
    for package in sorted({*packages, *UNSUPPORTED_CONTRIB}):
        found = packages.get(package, [])
        reason, replacement = UNSUPPORTED_CONTRIB.get(package, ("", ""))
        yield f"| `{package}` | {sum(found)} | {len(found) or ''} | {reason} | {replacement} |"
    yield from ("", "Packages without a count have their names in submodules, or do not belong to `tf.contrib`.", "")


def _partly(names: Mapping[str, bool]) -> Iterator[str]:
    wrong = [name for name in PARTIAL if not names.get(name)]
    if wrong:
        raise ValueError(f"headwater.tf1.compat.partial has unsupported or unlisted names: {', '.join(wrong)}")
    yield from ("## Partially supported", "")
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
        yield from _paragraph("Supported", area, there)
        yield from _paragraph("Unsupported", area, [name for name in listed if not names[name]])
    if absent:
        yield from (f"### Unsupported areas of {title}", "")
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
