"""Hashes by compiled loops equal hashes by NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from headwater.graph.ops import fingerprints, searching, tables
from tests.support.loops import use_loops

NUMBERS = np.concatenate(
    [
        np.array([0, -1, 9, 10, -10, 2**63 - 1, -(2**63)]),
        10 ** np.arange(19),
        10 ** np.arange(1, 19) - 1,
        np.arange(0, 1200, 7),
        np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 100),
    ]
)


@pytest.fixture(params=[True, False], ids=["compiled", "numpy"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Uses compiled loops for all work, or for none."""
    use_loops(monkeypatch, compiled=request.param)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.uint64, np.float32, np.bool_])
def test_numbers_are_hashed_as_their_texts(dtype: type[np.generic]) -> None:
    numbers = NUMBERS.astype(dtype).reshape(2, -1)
    if dtype in (np.float32, np.bool_):
        texts = [(b"true" if item else b"false") if dtype is np.bool_ else b"%f" % item for item in numbers.ravel()]
    else:
        texts = [b"%d" % item for item in numbers.ravel().tolist()]
    found = tables.number_to_hash_bucket_fast(numbers, num_buckets=997)
    expected = [fingerprints.fingerprint64(text) % 997 for text in texts]
    np.testing.assert_array_equal(found, np.reshape(expected, numbers.shape))


@pytest.mark.usefixtures("way")
def test_texts_of_all_sizes_have_the_same_fingerprints() -> None:
    rng = np.random.default_rng(2)
    texts = [rng.bytes(size) for size in (*range(140), *range(70))]
    np.testing.assert_array_equal(fingerprints.fingerprints64(texts), list(map(fingerprints.fingerprint64, texts)))
    assert fingerprints.fingerprints64([]).size == 0


@pytest.mark.usefixtures("way")
def test_distinct_numbers_are_in_the_order_of_first_occurrence() -> None:
    numbers = np.array([7, -3, 7, 0, -3, 2**62], np.int64)
    values, places = searching.unique(numbers)
    np.testing.assert_array_equal(values, [7, -3, 0, 2**62])
    np.testing.assert_array_equal(places, [0, 1, 0, 2, 1, 3])
