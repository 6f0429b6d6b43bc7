"""Examples read by compiled functions are as the protobuf library reads them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.data.io.example import (
    BytesList,
    Example,
    ExampleBatch,
    Feature,
    Features,
    FloatList,
    Int64List,
    columns_of_one,
)
from headwater.dtypes import DType, float32, float64, int64, string
from headwater.tables.examples import columns_of

pytestmark = pytest.mark.slow  # numba compiles what they call

WANTED = {"i": int64, "f": float32, "s": string}


def example(**features: list[Any]) -> bytes:
    made = {
        name: Feature(bytes_list=BytesList(value=values))
        if name.startswith("s")
        else Feature(float_list=FloatList(value=values))
        if name.startswith("f")
        else Feature(int64_list=Int64List(value=values))
        for name, values in features.items()
    }
    return Example(features=Features(feature=made)).SerializeToString()


def same(serialized: list[bytes], wanted: dict[str, DType]) -> None:
    """Fails unless both ways give the same values."""
    columns = columns_of(serialized, wanted, ["i", "s"])
    assert columns is not None
    assert [columns[name].indices is None for name in wanted] == [name not in ("i", "s") for name in wanted]
    batches = [(ExampleBatch(serialized, None, columns), ExampleBatch(serialized))]
    batches += [(ExampleBatch([one], None, columns_of_one(one, wanted)), ExampleBatch([one])) for one in serialized]
    for (found, expected), (name, dtype) in product(batches, wanted.items()):
        ours, theirs = found.sparse(name, dtype), expected.sparse(name, dtype)
        assert ours.values.dtype == theirs.values.dtype
        np.testing.assert_array_equal(ours.values, theirs.values)
        np.testing.assert_array_equal(ours.indices, theirs.indices)
        np.testing.assert_array_equal(ours.dense_shape, theirs.dense_shape)


@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "i": st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=5),
                "f": st.lists(st.floats(width=32), max_size=5),
                "s": st.lists(st.binary(max_size=200), max_size=3),
                "s_unasked": st.lists(st.binary(max_size=5), max_size=3),
                "i_unasked": st.lists(st.integers(0, 300), max_size=3),
            },
        ),
        max_size=6,
    )
)
def test_any_examples(examples: list[dict[str, list[Any]]]) -> None:
    same([example(**features) for features in examples], WANTED)


def test_features_in_another_order_and_absent() -> None:
    features = {"i": [1], "f": [2.0], "s": [b"x"]}
    turned = dict(reversed(features.items()))
    same([example(**features), example(**turned), b"", example(s=[]), example(**features)], WANTED)


def test_lists_longer_than_the_memory_for_them() -> None:
    long = example(i=list(range(-3, 1000)), f=[0.5] * 900, s=[b"x"] * 700)
    same([example(i=[1]), long, example(s=[b"y"]), long], WANTED)


@given(st.data())
def test_changed_bytes_are_read_as_by_protobuf_or_left_to_it(data: st.DataObject) -> None:
    packed = bytearray(example(i=[1, 300], f=[2.0], s=[b"ab", b""], i_more=[4]))
    for _ in range(data.draw(st.integers(1, 3))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    serialized = [bytes(packed[: data.draw(st.integers(0, len(packed)))]), example(i=[5])]
    columns = columns_of(serialized, WANTED)
    if columns is not None:
        same(serialized, WANTED)


def test_other_forms_are_left_to_protobuf() -> None:
    whole = example(i=[1])
    one_by_one = b"\x0a\x0c\x0a\x0a\x0a\x01i\x12\x05\x1a\x03\x08\xac\x02"
    assert list(Example.FromString(one_by_one).features.feature["i"].int64_list.value) == [300]
    too_long = b"\x0a\x15\x0a\x13\x0a\x01i\x12\x0e\x1a\x0c\x0a\x0a" + b"\xff" * 9 + b"\x01"
    assert list(Example.FromString(too_long).features.feature["i"].int64_list.value) == [-1]
    same([too_long], WANTED)
    too_long = too_long.replace(b"\x01i\x12\x0e\x1a\x0c\x0a\x0a", b"\x01i\x12\x0f\x1a\x0d\x0a\x0b\xff")
    too_long = too_long.replace(b"\x0a\x15\x0a\x13", b"\x0a\x16\x0a\x14")
    wrong_text = b"\x0a\x08\x0a\x06\x0a\x02\xff\xff\x12\x00"
    wrong_kind = whole.replace(b"i", b"f")
    for packed in (whole + whole, one_by_one, too_long, wrong_text, whole[:-1], b"junk", wrong_kind):
        assert columns_of([packed, whole], WANTED) is None
    assert columns_of([whole], {"i": float64}) is None


def test_names_that_begin_alike_or_are_many() -> None:
    names = {f"{kind}_feature_{number}": dtype for kind, dtype in WANTED.items() for number in range(20)}
    names |= {
        "i": int64,
        "i_featur": int64,
        "i_feature": int64,
        "i_feature_": int64,
        "f" * 8: float32,
        "f" * 9: float32,
    }
    values: dict[DType, Any] = {int64: [7, -1], float32: [0.5], string: [b"a", b""]}
    same([example(**{name: values[dtype] for name, dtype in names.items()})] * 3, dict(list(names.items())[::2]))


def test_messages_that_lack_features_of_the_message_before() -> None:
    names = {f"{kind}{number:0{number}}": dtype for kind, dtype in WANTED.items() for number in range(20)}
    values: dict[DType, Any] = {int64: [7, -1], float32: [0.5], string: [b"a", b""]}
    whole = {name: values[dtype] for name, dtype in names.items()}
    some = [{name: whole[name] for place, name in enumerate(whole) if place % step != 1} for step in (2, 3, 7, 50)]
    same([example(**features) for features in (whole, *some, whole, {"i_unasked": [1], **whole}, whole)], names)


def test_many_features() -> None:
    names = {f"i{number}": int64 for number in range(1100)}
    same([example(**{name: [place] for place, name in enumerate(names)})] * 2, dict(list(names.items())[::-3]))


def test_parts_of_a_batch_in_two_threads() -> None:
    rng = np.random.default_rng(1)
    examples: list[dict[str, list[Any]]] = []
    for size in rng.integers(0, 9, 301).tolist():
        lists: dict[str, list[Any]] = {
            "i": rng.integers(-(1 << 63), (1 << 63) - 1, size).tolist(),
            "i_short": (300 ** rng.random(20 * size)).astype(int).tolist(),
            "f": rng.normal(size=size).tolist(),
            "s": [bytes(place) for place in range(size)],
        }
        examples.append({name: values for name, values in lists.items() if rng.random() < 0.9})
    same([example(**features) for features in examples], {**WANTED, "i_short": int64})
    damaged = [example(**features) for features in examples]
    damaged[-1] = damaged[-1][:-1]
    assert columns_of(damaged, WANTED) is None


def test_errors_of_one_example_are_those_of_a_batch() -> None:
    for bad in (example(i=[1])[:-1], example(i=[1])):
        assert columns_of_one(bad, {"i": float32}) is None
    assert columns_of_one(example(i=[1]), {"i": float64}) is None
