"""Conversion of values to arrays of TensorFlow's element types."""

from __future__ import annotations

import numpy as np
import pytest

from headwater.dtypes import to_string_array


def test_strings_become_new_arrays_of_bytes() -> None:
    given = np.array([[b"a", b"b"], [b"", b"c"]], object)
    found = to_string_array(given)
    given[0, 0] = b"changed"
    assert found.tolist() == [[b"a", b"b"], [b"", b"c"]]
    assert to_string_array([b"a", "\u00e4", np.bytes_(b"b")]).tolist() == [b"a", b"\xc3\xa4", b"b"]
    assert type(to_string_array([np.bytes_(b"b")])[0]) is bytes
    assert to_string_array(b"a").item() == b"a"
    assert to_string_array([]).shape == (0,)
    with pytest.raises(TypeError, match="Expected a string, got 3 of type int"):
        to_string_array([b"a", 3])
