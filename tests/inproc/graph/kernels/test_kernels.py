"""Kernels on host arrays compute the same as the operations' lowerings, and their gradients equal JAX's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import jax
import numpy as np
import pytest

import headwater.graph.runtime.kernel_loops  # noqa: F401  registers kernels of loops
from headwater.errors import InvalidArgumentError
from headwater.graph.kernels.registry import (
    gradient_kernel_of,
    kernel_names,
    kernel_of,
    takes_outputs,
    update_kernel_of,
)
from headwater.graph.registry import FunctionAttr, Kind, OpDef, as_outputs, lookup
from tests.inproc.graph.kernels.cases import FAMILIES, Case, all_cases, updates

_QUICK: Any = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
_TOLERANCES = {"float32": 3e-5, "complex64": 3e-5, "float64": 1e-9, "float16": 1e-2, "bfloat16": 4e-2}


def _known(definition: OpDef, case: Case) -> frozenset[int]:
    """Returns the inputs whose values must be known when the operation is traced."""
    taken = {name: value for name, value in case.attrs.items() if name in definition.attrs}
    return definition.static_positions(taken, len(case.inputs))


def _slopes(definition: OpDef, case: Case, outputs: Sequence[Any]) -> tuple[list[bool], list[Any]]:
    """Returns which inputs have gradients, and random gradients of the outputs."""
    static = _known(definition, case)
    wanted = [
        value.dtype.kind in "fcV" and index not in static and index not in definition.constants
        for index, value in enumerate(case.inputs)
    ]
    draw = np.random.default_rng(1)
    given: list[Any] = []
    for index, value in enumerate(outputs):
        chosen = value.dtype.kind in "fcV" and (not case.outputs or index in case.outputs)
        drawn = draw.uniform(-1, 1, value.shape) + (
            1j * draw.uniform(-1, 1, value.shape) if value.dtype.kind == "c" else 0
        )
        given.append(np.asarray(drawn).astype(value.dtype) if chosen else None)
    return wanted, given


def _is_compared(case: Case, definition: OpDef) -> bool:
    return case.slopes and definition.differentiable and gradient_kernel_of(case.op) is not None


def _reference(cases: Sequence[Case], kernels: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Returns outputs and gradients of all cases, from one executable: each further executable takes 50 ms."""
    computed: list[Callable[..., Any]] = []
    arguments: list[Any] = []
    for case, outputs in zip(cases, kernels, strict=True):
        definition = lookup(case.op)
        static = _known(definition, case)
        dynamic = [None if index in static else value for index, value in enumerate(case.inputs)]
        wanted, given = _slopes(definition, case, outputs)
        has = [grad is not None for grad in given]
        compared = _is_compared(case, definition) and any(wanted) and any(has)
        computed.append(_computed(definition, case, wanted, has, compared))
        arguments.append((dynamic, [grad for grad in given if grad is not None]))

    def every(arguments: Any) -> Any:
        return [compute(*each) for compute, each in zip(computed, arguments, strict=True)]

    compiled = cast(Any, jax).jit(every).lower(arguments).compile(compiler_options=_QUICK)
    return cast(Any, jax).tree.map(np.asarray, compiled(arguments))


def _computed(definition: OpDef, case: Case, wanted: Any, given: Any, compared: bool) -> Callable[..., Any]:
    vjp = lookup("Vjp").lower
    f = FunctionAttr(case.op, tuple(case.attrs.items()))

    def compute(dynamic: Sequence[Any], grads: Sequence[Any]) -> Any:
        inputs = [known if value is None else value for known, value in zip(case.inputs, dynamic, strict=True)]
        outputs = as_outputs(definition.lower(*inputs, **case.attrs))
        if not compared:
            return outputs, ()
        return outputs, vjp(*inputs, *grads, f=f, wanted=wanted, given=given)

    return compute


def _compare(case: Case, what: str, got: Any, expected: Any) -> None:
    got = np.asarray(got)
    assert got.dtype == expected.dtype, f"{case}: {what} is {got.dtype}, not {expected.dtype}"
    assert got.shape == expected.shape, f"{case}: {what} has shape {got.shape}, not {expected.shape}"
    tolerance = _TOLERANCES.get(got.dtype.name, 0)
    if got.dtype.kind == "V" or got.dtype == np.float16:
        got, expected = got.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance, err_msg=f"{case}: {what}")


def _by_index(rows: Sequence[Any]) -> list[Any]:
    order = np.argsort(rows[1])
    return [part[order] for part in rows]


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_kernels_agree_with_lowerings(family: Callable[[], Iterator[Case]]) -> None:
    cases = list(family())
    with np.errstate(all="ignore"):
        kernels: list[Any] = []
        for case in cases:
            before = [np.array(value) for value in case.inputs]
            compute = kernel_of(case.op)
            assert compute is not None, case.op
            kernels.append(as_outputs(compute(*case.inputs, **case.attrs)))
            for old, new in zip(before, case.inputs, strict=True):
                np.testing.assert_array_equal(old, new, err_msg=f"{case} changed an input")
        expected = _reference(cases, kernels)
        for case, outputs, (reference, slopes) in zip(cases, kernels, expected, strict=True):
            assert len(outputs) == len(reference), case
            if case.op == "SumEqualRows":  # in any order
                outputs, reference = (_by_index(rows) for rows in (outputs, reference))
            for index, (got, wanted) in enumerate(zip(outputs, reference, strict=True)):
                _compare(case, f"output {index}", got, wanted)
            if not slopes:
                continue
            definition = lookup(case.op)
            needed, given = _slopes(definition, case, outputs)
            pull = gradient_kernel_of(case.op)
            assert pull is not None
            more = (outputs,) if takes_outputs(case.op) else ()
            found = pull(case.inputs, given, needed, case.attrs, *more)
            assert len(found) == len(needed), f"{case} gives {len(found)} gradients"
            slope = iter(slopes)
            for index, want in enumerate(needed):
                if want:
                    _compare(case, f"gradient {index}", found[index], next(slope))


@pytest.mark.slow
def test_updates_change_variables_as_lowerings_do() -> None:
    cases = list(updates())
    with np.errstate(all="ignore"):
        changed: list[Any] = []
        for case in cases:
            inputs = [np.array(value) for value in case.inputs]
            update = update_kernel_of(case.op)
            assert update is not None, case.op
            assert update(*inputs, **case.attrs) is None
            places = lookup(case.op).updates
            for place, (old, new) in enumerate(zip(case.inputs, inputs, strict=True)):
                if place not in places:
                    np.testing.assert_array_equal(old, new, err_msg=f"{case} changed input {place}")
            changed.append([inputs[place] for place in places])
    for case, outputs, (reference, _) in zip(cases, changed, _reference(cases, changed), strict=True):
        for place, (got, wanted) in enumerate(zip(outputs, reference, strict=True)):
            _compare(case, f"variable {place}", got, wanted)
    assert {case.op for case in cases} == set(kernel_names()[2])


@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        ("AssignAdd", ((3, 4), (4,))),
        ("ApplyGradientDescent", ((3, 4), (), (4,))),
        ("ApplyMomentum", ((3, 4), (3, 3), (), (3, 4), ())),
        ("SparseApplyAdagrad", ((3, 4), (3, 4), (), (3, 4), (2,))),
    ],
)
def test_an_update_refuses_shapes_before_it_changes_anything(op: str, inputs: Sequence[tuple[int, ...]]) -> None:
    values = [
        np.zeros(shape, np.int64 if op.startswith("Sparse") and i == 4 else np.float32)
        for i, shape in enumerate(inputs)
    ]
    update = update_kernel_of(op)
    assert update is not None
    with pytest.raises(InvalidArgumentError, match="shape"):
        update(*values)
    assert not any(value.any() for value in values)


def test_every_kernel_has_a_case() -> None:
    kernels, gradients, _ = kernel_names()
    cases = all_cases()
    drawn = {
        name for name in kernels if any(part in name for part in ("Random", "Truncated", "Multinomial", "Sampler"))
    }  # these are tested in test_random.py
    untested = set(kernels) - drawn - {case.op for case in cases}
    differentiated = {case.op for case in cases if _is_compared(case, lookup(case.op))}
    assert not untested, f"no case of {sorted(untested)}"
    assert not set(gradients) - differentiated, f"no gradient of {sorted(set(gradients) - differentiated)}"
    assert all(lookup(name).kind in (Kind.PURE, Kind.RANDOM) for name in kernels)


def test_a_pool_with_nan_equals_the_executable() -> None:
    image = np.array([[np.nan, 1, 2, np.nan], [0, 3, 4, 5]], np.float32).reshape(1, 2, 4, 1)
    attrs = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    kernel = kernel_of("MaxPool")
    assert kernel is not None
    found = kernel(image, **attrs)
    np.testing.assert_array_equal(found, lookup("MaxPool").lower(image, **attrs))
    np.testing.assert_array_equal(found.ravel(), [np.nan, 5])
