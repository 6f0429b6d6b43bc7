"""How operation types are declared, and the static shapes that follow from their functions."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from headwater import dtypes
from headwater.graph.ops.define import by_evaluation, parse_arguments, pure, same_as
from headwater.graph.registry import Inference, OpDef, Spec, as_outputs, lookup, names, register
from headwater.shapes import Dims

F32 = dtypes.float32


def _inference(*inputs: Spec, values: dict[int, Any] | None = None, **attrs: Any) -> Inference:
    known = values or {}
    return Inference("Test", attrs, inputs, lambda i: known.get(i), lambda i: None)


def _evaluated(function: Any, *dims: Dims, static: tuple[int, ...] = (), values: dict[int, Any] | None = None) -> Dims:
    specs = [Spec(F32, d) for d in dims]
    (found,) = by_evaluation(function, static)(_inference(*specs, values=values))
    assert found.dtype == F32
    return found.dims


def test_arguments() -> None:
    found = parse_arguments("x:T|numeric, axis:Tidx|index=int32, names:string, parts:T*, rest:Tin**")
    assert [a.name for a in found] == ["x", "axis", "names", "parts", "rest"]
    x, axis, names_, parts, rest = found
    assert (x.type_attr, x.allowed, x.dtype) == ("T", "numeric", None)
    assert (axis.type_attr, axis.allowed, axis.default) == ("Tidx", "index", dtypes.int32)
    assert (names_.dtype, names_.type_attr) == (dtypes.string, "")
    assert (parts.many, parts.mixed, rest.many, rest.mixed) == (True, False, False, True)
    assert parse_arguments("") == ()


def test_a_type_is_registered_once() -> None:
    definition = lookup("Identity")
    with pytest.raises(ValueError, match="'Identity' is registered twice"):
        register(definition)
    assert "Identity" in names()
    with pytest.raises(KeyError):
        lookup("NoSuchType")


def test_attributes_are_the_keywords_of_the_function() -> None:
    @pure("TestAttributes", infer=same_as(), inputs="x:T")
    def lower(x: Any, *, factor: int, name: str = "n") -> Any:
        return x, factor, name

    definition = lookup("TestAttributes")
    assert isinstance(definition, OpDef)
    assert definition.attrs == {"factor", "name"}
    assert definition.defaults == {"name": "n"}
    assert definition.lower is lower


@pytest.mark.parametrize(
    ("given", "outputs"),
    [(None, ()), (1, (1,)), ((1, 2), (1, 2)), ([1, 2], (1, 2)), ((), ()), ("ab", ("ab",)), ([None], (None,))],
)
def test_output_specs_of_a_lowering(given: Any, outputs: tuple[Any, ...]) -> None:
    assert as_outputs(given) == outputs


def test_static_positions_count_from_either_end() -> None:
    definition = lookup("Identity")
    assert definition.static_positions({}, 1) == frozenset()
    last = OpDef(name="x", kind=definition.kind, lower=definition.lower, infer=definition.infer, static=(0, -1))
    assert last.static_positions({}, 3) == {0, 2}
    assert last.static_positions({}, 0) == frozenset()


@pytest.mark.parametrize(
    ("dims", "result"),
    [
        ([(2, 3), (3, 4)], (2, 4)),
        ([(None, 3), (3, 4)], (None, 4)),
        ([(None, None), (None, 4)], (None, 4)),
        ([None, (3, 4)], None),
        ([None, None], None),
    ],
)
def test_shapes_by_evaluation(dims: list[Dims], result: Dims) -> None:
    assert _evaluated(jnp.matmul, *dims) == result


def test_shapes_that_cannot_be_decided_are_unknown() -> None:
    assert _evaluated(lambda x: jnp.zeros((2,) if x.shape[0] > 3 else (1,), jnp.float32), (None,)) is None
    assert _evaluated(lambda x: x.reshape(2, -1), (None, 6)) in ((2, None), None)


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"contracting|shapes|dot"):
        _evaluated(jnp.matmul, (2, 3), (4, 5))


def test_values_that_shapes_depend_on() -> None:
    def fill(dims: Any, value: Any) -> Any:
        return jnp.full(tuple(int(d) for d in dims), value)

    assert _evaluated(fill, (2,), (), static=(0,), values={0: np.array([4, 5])}) == (4, 5)
    assert _evaluated(fill, (2,), (), static=(0,)) is None
    assert _evaluated(fill, (2,), (), static=(0,), values={0: np.array([1, 5])}) == (1, 5), "not what was cached"
