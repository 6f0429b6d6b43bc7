"""Fingerprints equal FarmHash's, for strings of any length."""

from __future__ import annotations

import pytest

from headwater.graph.ops.fingerprints import concatenated, fingerprint64, fingerprints64


def test_empty_text_is_the_constant_that_farmhash_says() -> None:
    assert fingerprint64(b"") == 0x9AE16A3B2F90404F


@pytest.mark.parametrize("size", [0, 1, 3, 4, 7, 8, 16, 17, 32, 33, 64, 65, 128, 129, 1000])
def test_every_length_has_a_number_below_two_to_64_that_depends_on_every_byte(size: int) -> None:
    text = bytes(i * 7 % 256 for i in range(size))
    found = fingerprint64(text)
    assert 0 <= found < 1 << 64
    for place in range(size):
        changed = text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :]
        assert fingerprint64(changed) != found


def test_many_texts_have_the_fingerprints_of_each() -> None:
    texts = [bytes((i * 7 + size) % 256 for i in range(size)) for size in (*range(140), 1000)]
    assert fingerprints64(texts[::-1]).tolist() == [fingerprint64(text) for text in texts[::-1]]
    assert fingerprints64([]).tolist() == []


def test_the_order_of_a_concatenation_counts() -> None:
    first, second = fingerprint64(b"x"), fingerprint64(b"y")
    assert concatenated(first, second) != concatenated(second, first)
    assert 0 <= concatenated(first, second) < 1 << 64
