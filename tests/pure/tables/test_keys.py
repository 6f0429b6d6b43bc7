"""How keys are hashed, and which of many are distinct."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.tables.hashing import add_up, distinct, extent, owners, siphash, string_keys

NONE = np.empty(0, np.int64)


def words_of(data, ends):
    out = np.empty((len(ends), 2), np.int64)
    siphash(np.frombuffer(data, np.uint8), np.array(ends), 0x0706050403020100, 0x0F0E0D0C0B0A0908, out)
    return [word.tobytes().hex() for word in out]


def test_siphash_gives_the_published_results():
    data = bytes(range(63))
    got = [words_of(data[:n], [n])[0] for n in (0, 1)]
    assert got == ["a3817f04ba25a8e66df67214c7550293", "da87c1d86b99af44347659119b22fc45"]


def test_each_string_is_hashed_by_itself():
    together = string_keys(["", "a", "straße", "x" * 100, b"\x00"])
    alone = np.concatenate([string_keys([piece]) for piece in ["", "a", "straße", "x" * 100, b"\x00"]])
    assert np.array_equal(together, alone)
    assert len(np.unique(together[:, 0])) == 5


def test_arrays_of_text_have_the_keys_of_their_elements():
    assert np.array_equal(string_keys(np.array(["ab", "c"])), string_keys(["ab", "c"]))
    assert np.array_equal(string_keys(np.array([b"ab", b"c"])), string_keys(["ab", "c"]))


def test_ids_that_are_no_text_are_rejected():
    with pytest.raises(TypeError, match="int"):
        string_keys(np.array(["a", 3], object))


@settings(deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3), max_size=60))
def test_distinct_keys_come_in_the_order_of_their_first(ids):
    keys = np.array(ids, np.int64)
    first, inverse = distinct(keys, NONE)
    assert keys[first].tolist() == list(dict.fromkeys(ids))
    assert np.array_equal(keys[first][inverse], keys)


def test_keys_with_equal_first_words_are_distinguished_by_their_second():
    first, inverse = distinct(np.array([7, 7, 7]), np.array([1, 2, 1]))
    assert first.tolist() == [0, 1]
    assert inverse.tolist() == [0, 1, 0]


def test_rows_of_one_key_are_added():
    rows = np.arange(8, dtype=np.float32).reshape(4, 2)
    assert add_up(rows, np.array([0, 1, 0, 0]), 2).tolist() == [[10, 13], [2, 3]]


def test_owners_share_keys_evenly():
    found = np.bincount(owners(np.arange(30_000), 3), minlength=3)
    assert found.min() > 9_700
    assert found.sum() == 30_000


@pytest.mark.parametrize("numbers", [[], [5], [3, -7, 2], [-(2**63), 2**63 - 1]])
def test_extent(numbers):
    given = np.array(numbers, np.int64)
    assert extent(given) == ((min(numbers), max(numbers)) if numbers else (0, 0))
