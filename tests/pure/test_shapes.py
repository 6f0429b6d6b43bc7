"""Static shapes: merging and broadcasting agree with NumPy wherever the dimensions turn out to be known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.shapes import Dims, TensorShape, as_shape, broadcast_dims, merge_dims, unknown_shape

Example = tuple[tuple[int, ...], Dims]
_known = st.lists(st.integers(0, 3), max_size=4).map(tuple)
_dims = st.none() | st.lists(st.none() | st.integers(0, 3), max_size=4).map(tuple)


@st.composite
def _known_and_blurred(draw: st.DrawFn) -> Example:
    """A shape, and a partially known shape that it matches."""
    known = draw(_known)
    if draw(st.booleans()):
        return known, tuple(dim if draw(st.booleans()) else None for dim in known)
    return known, None


def _fits(known: tuple[int, ...], dims: Dims) -> bool:
    """Whether a tensor of shape ``known`` may have the static shape ``dims``."""
    return dims is None or (
        len(dims) == len(known) and all(dim in (None, size) for dim, size in zip(dims, known, strict=True))
    )


@given(_known_and_blurred(), _known_and_blurred())
def test_broadcast_agrees_with_numpy(a: Example, b: Example) -> None:
    try:
        result = np.broadcast_shapes(a[0], b[0])
    except ValueError:
        with pytest.raises(ValueError, match="Dimensions must be equal"):
            broadcast_dims(a[0], b[0])
        return
    assert broadcast_dims(a[0], b[0]) == result
    assert _fits(result, broadcast_dims(a[1], b[1]))


@given(_dims, _dims)
def test_broadcast_does_not_care_for_order(a: Dims, b: Dims) -> None:
    try:
        result = broadcast_dims(a, b)
    except ValueError:
        with pytest.raises(ValueError, match="must be equal"):
            broadcast_dims(b, a)
    else:
        assert broadcast_dims(b, a) == result


@given(_known, st.data())
def test_merge_keeps_known_dimensions(known: tuple[int, ...], data: st.DataObject) -> None:
    def blurred() -> Dims:
        return tuple(dim if data.draw(st.booleans()) else None for dim in known)

    a, b = blurred(), blurred()
    merged = merge_dims(a, b)
    assert _fits(known, merged)
    assert a is not None
    assert b is not None
    assert merged == tuple(x if y is None else y for x, y in zip(a, b, strict=True))


@given(_dims, _dims)
def test_merge_is_symmetric_and_says_compatible(a: Dims, b: Dims) -> None:
    compatible = TensorShape(a).is_compatible_with(TensorShape(b))
    try:
        merged = merge_dims(a, b)
    except ValueError:
        assert not compatible
        with pytest.raises(ValueError, match="not compatible"):
            merge_dims(b, a)
    else:
        assert compatible
        assert merge_dims(b, a) == merged
        assert merge_dims(merged, a) == merged


@given(_dims)
def test_proto_and_text_round_trip(dims: Dims) -> None:
    shape = TensorShape(dims)
    assert TensorShape(shape.as_proto()) == shape
    assert as_shape(shape) is shape
    assert hash(TensorShape(dims)) == hash(shape)


@given(st.none() | st.integers(0, 6), st.integers(-7, 7), st.none() | st.integers(-7, 7))
def test_slices_agree_with_tuples(rank: int | None, start: int, stop: int | None) -> None:
    sliced = unknown_shape(rank)[start:stop]
    if rank is not None:
        assert sliced.ndims == len(range(rank)[start:stop])
    elif stop is not None and start >= 0 and stop >= 0:
        assert sliced.ndims == max(0, stop - start)
    else:
        assert sliced.ndims is None


def test_partially_known_shapes_equal_themselves() -> None:
    """Unlike in TensorFlow 1.15, where an unknown dimension equals nothing."""
    assert TensorShape([1, None]) == TensorShape([1, None])
    assert TensorShape([1, None]) != TensorShape([1, 2])
    assert TensorShape(None) != TensorShape([1])


def test_dimensions_as_text() -> None:
    texts: list[Any] = ["100", b"3", None]
    assert TensorShape(texts).as_list() == [100, 3, None]
    texts.append(2.5)
    with pytest.raises(ValueError, match=r"Ambiguous dimension: 2\.5"):
        TensorShape(texts)
