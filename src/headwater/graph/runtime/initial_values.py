"""Computes initial values of variables with NumPy, so that nothing is compiled for them.

XLA would generate code of a random number generator for each variable, in a program that usually runs once.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from headwater.dtypes import DType
from headwater.errors import InvalidArgumentError
from headwater.graph.kernels import generator
from headwater.graph.kernels.generator import seeds_of
from headwater.graph.ops.common import as_ints
from headwater.graph.passes.plan import Compute, Node
from headwater.graph.registry import lookup
from headwater.lazy_jax import jax

# Pyright finds the types of these functions of JAX in part only.
_jax: Any = jax

Array = np.ndarray[Any, Any]
_Draw = Callable[[tuple[int, int], Sequence[int]], Array]

#: From this number of runs on, operations are not treated as initialisation, and compiling them is worthwhile.
MOST_RUNS: Final = 16

_DRAWS: Final[Mapping[str, _Draw]] = {
    "RandomUniform": generator.uniform,
    "RandomStandardNormal": generator.normal,
    "TruncatedNormal": generator.truncated_normal,
}


def _filled(dims: Array, value: Array) -> Array:
    shape = as_ints(dims)
    # `np.zeros` allocates pages lazily: untouched zeros take no memory.
    return np.full(shape, value, value.dtype) if value.tobytes().strip(b"\0") else np.zeros(shape, value.dtype)


_SUMS: Final = ("Add", "AddV2")


def _identity(value: Array) -> Array:
    return value


def _reshaped(value: Array, shape: Array) -> Array:
    return value.reshape(as_ints(shape))


_FORMS: Final[Mapping[str, Callable[..., Any]]] = {
    "Add": np.add,
    "AddV2": np.add,
    "Fill": _filled,
    "Identity": _identity,
    "Mul": np.multiply,
    "Reshape": _reshaped,
    "Sub": np.subtract,
}


@functools.cache
def _compiled_draw(op_type: str, dtype: DType, size: int) -> Callable[[Array], object]:
    lower = lookup(op_type).lower

    def draw(words: Array) -> object:
        return lower(_jax.random.wrap_key_data(words), np.array([size]), dtype=dtype)

    return _jax.jit(draw)


def _drawn(op_type: str, dtype: DType, key: tuple[int, int], shape: Sequence[int]) -> Array:
    """Draws random numbers of any type. Each depends only on its position, so a compiled draw serves all smaller
    sizes."""
    if dtype.numpy_dtype == np.float32:
        return _DRAWS[op_type](key, shape)
    count = math.prod(shape)
    draw = _compiled_draw(op_type, dtype, 1 << max(0, count - 1).bit_length())
    return np.array(np.asarray(draw(np.array(key, np.uint32)))[:count].reshape(shape))


def _has_form(node: Node) -> bool:
    return node.type in ("Const", "Assign", *_DRAWS) or (node.type in _FORMS and not node.refs)


def split(compute: Compute) -> tuple[Compute | None, Compute | None]:
    """Divides a `Compute` into operations for `InitialValues`, and the others, which can run after them.

    Returns:
      Assignments with the operations that only they use, and the rest, which is None if empty. Both are None if the
      operations are not an initialisation: they compute other results, and draw no random numbers.
    """
    made_by = {f"{node.name}:0": node for node in compute.nodes}
    needs: dict[str, set[str]] = {}  # operations that an assignment needs, itself included
    touched: set[str] = set()
    for node in compute.nodes:
        if node.type == "Assign" and node.refs[0] not in touched:
            needed = _needed(node, made_by)
            if needed is not None:
                needs[node.name] = needed
        touched.update((node.name, *node.refs.values()))
    constants = {node.name for node in compute.nodes if node.type == "Const"}
    while True:
        first = set[str]().union(*needs.values())
        names = {name for node in compute.nodes if node.name not in first for name in node.inputs}
        shared = first.intersection(made_by[name].name for name in names if name in made_by) - constants
        if not shared:
            break
        needs = {name: needed for name, needed in needs.items() if shared.isdisjoint(needed)}
    rest = {node.name for node in compute.nodes} - first
    draws = any(node.type in _DRAWS for node in compute.nodes if node.name in first)
    if not first or (rest - constants and not draws):
        return None, None
    return _part(compute, first), _part(compute, rest | constants) if rest - constants else None


def _needed(node: Node, made_by: Mapping[str, Node]) -> set[str] | None:
    """Returns the names of an assignment and of the operations that it needs; None if one of them is not supported
    here."""
    names: set[str] = set()
    waiting = [node]
    while waiting:
        at = waiting.pop()
        if at.name in names:
            continue
        if not _has_form(at) or (at.type == "Assign" and at is not node):
            return None
        names.add(at.name)
        waiting += [made_by[name] for index, name in enumerate(at.inputs) if index not in at.refs and name in made_by]
    return names


def _part(compute: Compute, names: Collection[str]) -> Compute:
    nodes = tuple(node for node in compute.nodes if node.name in names)
    used = {name for node in nodes for name in node.inputs}
    return replace(
        compute,
        nodes=nodes,
        inputs=tuple(name for name in compute.inputs if name in used),
        static=tuple(name for name in compute.static if name in used),
        outputs=tuple(name for name in compute.outputs if name.rpartition(":")[0] in names),
    )


class InitialValues:
    """Runs the operations chosen by `split`.

    Args:
      compute: the operations.
      seed: seed of operations without seeds.
    """

    def __init__(self, compute: Compute, seed: int) -> None:
        self._compute = compute
        self._seed = seed
        uses = Counter([name for node in compute.nodes for name in node.inputs] + list(compute.outputs))
        used_once = {name for name, count in uses.items() if count == 1}
        # XLA does not round a product that only a sum uses: fuse both, for the same bits.
        products = {f"{node.name}:0" for node in compute.nodes if node.type == "Mul"} & used_once
        self._products = {name for node in compute.nodes if node.type in _SUMS for name in node.inputs[:1]} & products
        # Random numbers that only a product uses: their memory is reused for the result.
        self._spare = {f"{node.name}:0" for node in compute.nodes if node.type in _DRAWS} & used_once

    def run(self, inputs: Sequence[Any], counter: int) -> tuple[dict[str, Array], list[Array]]:
        """Computes all values.

        Args:
          inputs: for the compute's inputs, in order.
          counter: step number, for random numbers.

        Returns:
          The variables' new values by name, read-only, and the values of the compute's outputs.

        Raises:
          OpError: an operation's inputs are invalid; the message names the operation.
        """
        given = dict(zip(self._compute.inputs, map(np.asarray, inputs), strict=True))
        values: dict[str, Any] = dict(given)
        state: dict[str, Array] = {}
        foreign = {*map(id, given.values())}
        for node in self._compute.nodes:
            try:
                value = self._value(node, values, counter)
            except (TypeError, ValueError) as error:
                raise InvalidArgumentError(None, None, f"{error} [in {node.type} operation {node.name!r}]") from error
            values[f"{node.name}:0"] = value
            if node.type == "Const":
                foreign.add(id(value))
            if node.type == "Assign":
                # Copy arrays that are not owned here: the program may change its feeds, and constants belong to the
                # graph.
                kept = value.copy() if value.base is not None or id(value) in foreign else value
                kept.flags.writeable = False
                state[node.refs[0]] = values[f"{node.name}:0"] = kept
        return state, [values[name] for name in self._compute.outputs]

    def _value(self, node: Node, values: Mapping[str, Any], counter: int) -> Any:
        inputs = [values[name] for index, name in enumerate(node.inputs) if index not in node.refs]
        if node.type == "Const":
            return np.asarray(node.attrs["value"])
        if node.type == "Assign":
            attrs = {key: value for key, value in node.attrs.items() if key in node.definition.attrs}
            (value,) = node.definition.lower(None, *inputs, **attrs)
            return value
        if node.type in _DRAWS:
            first, second = seeds_of(node.attrs, node.name, self._seed)
            key = generator.fold_in(generator.seed_key(first), second)
            return _drawn(node.type, node.attrs["dtype"], generator.fold_in(key, counter), as_ints(inputs[0]))
        if f"{node.name}:0" in self._products:
            return inputs, node.inputs[0] in self._spare
        if node.inputs[0] in self._products:
            ((x, factor), spare), term = inputs
            if not (x.dtype == np.float32 and factor.ndim == term.ndim == 0):
                return x * factor + term
            return generator.scaled(x, factor, term, into=x if spare else np.empty_like(x))
        return np.asarray(_FORMS[node.type](*inputs))
