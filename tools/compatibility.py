#!/usr/bin/env python3
"""Writes docs/compatibility.md: the names of TensorFlow that Headwater has, and what differs.

Usage: python tools/compatibility.py > docs/compatibility.md
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from types import ModuleType

from headwater import tf

INTRODUCTION = """\
# What of TensorFlow is there

`from headwater import tf`, or `import tensorflow as tf` in a program that `headwater exec` runs, is the namespace of
TensorFlow 1.15 with the spellings of 0.x beside it. A name that is not listed here raises an `AttributeError` that
names it. `tools/compatibility.py` makes this page from the namespace itself.

Functions take the arguments of TensorFlow 1.15, in its order and with its defaults, give operations its names, and
check types and shapes as it does: some 700 expressions are compared with what TensorFlow answers, graphs, values,
gradients and errors alike. Graphs that TensorFlow 1.15 built, with its own gradient operations, run as they are.
`tf.compat.v1` is `tf` itself.

## What differs

- Random numbers: the same seeds give the same numbers in every session, but others than TensorFlow's.
- `tf.gather` and `tf.nn.embedding_lookup` give zeros for an index that is out of range, as TensorFlow does on GPUs;
  on CPUs it fails there.
- A partitioned `tf.nn.embedding_lookup` asks every part for a row per id, so that shapes stay the same from step to
  step.
- Integers divided by zero give no error.
- A step is compiled as a whole; sums may differ in the last digits.
- Inputs that say a shape (`shape` of `tf.reshape`, `axis` of `tf.reduce_sum` and the like) may be computed; each new
  value compiles the step anew.
- `tf.nn.swish`, `tf.repeat`, `tf.sort`, `tf.einsum`, cross entropies of matrices and partitioned lookups are made of
  fewer operations; the names of those inside differ.
"""

_FOREIGN = ("typing", "collections.abc", "__future__")


def areas(module: ModuleType, path: str, seen: set[str]) -> Iterator[tuple[str, list[str]]]:
    """Every namespace with the names in it that are no namespaces."""
    names: list[str] = []
    inner: list[tuple[str, ModuleType]] = []
    for name in dir(module):
        value = getattr(module, name)
        if name.startswith("_") or type(value).__module__ in _FOREIGN or getattr(value, "__module__", "") in _FOREIGN:
            continue
        if isinstance(value, ModuleType):
            if value.__name__.startswith("headwater.compat") and value.__name__ not in seen:
                seen.add(value.__name__)
                inner.append((name, value))
        else:
            names.append(name)
    yield path, names
    for name, value in inner:
        yield from areas(value, f"{path}.{name}", seen)


def render() -> str:
    """The page."""
    parts = [INTRODUCTION]
    for path, names in areas(tf, "tf", {tf.__name__}):
        listed = textwrap.fill(
            ", ".join(f"`{name}`" for name in names), 120, break_long_words=False, break_on_hyphens=False
        )
        parts.append(f"## `{path}`\n\n{listed}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    print(render(), end="")
