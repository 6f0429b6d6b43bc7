"""Structures and files, as TensorFlow's inner modules have them."""

from __future__ import annotations

import pytest

from headwater.errors import AlreadyExistsError
from headwater.tf1.compat import file_io, nest

STRUCTURE = {"b": [1, (2, 3)], "a": 0}


def test_flatten_and_pack():
    assert nest.flatten(STRUCTURE) == [0, 1, 2, 3]
    assert nest.pack_sequence_as(STRUCTURE, [4, 5, 6, 7]) == {"a": 4, "b": [5, (6, 7)]}
    assert nest.map_structure(lambda x, y: x + y, [1, (2,)], [3, (4,)]) == [4, (6,)]


@pytest.mark.parametrize(
    ("first", "second", "error"),
    [([1, 2], [1, (2, 3)], ValueError), ([1], (1,), TypeError), ({"a": 1}, {"b": 1}, ValueError), (1, [1], ValueError)],
)
def test_structures_that_differ(first, second, error):
    with pytest.raises(error, match="don't have the same nested structure"):
        nest.assert_same_structure(first, second)


def test_types_count_only_when_asked():
    nest.assert_same_structure([1, (2,)], (1, [2]), check_types=False)


def test_whole_files(tmp_path):
    name = str(tmp_path / "folder" / "file")
    file_io.recursive_create_dir(str(tmp_path / "folder"))
    file_io.write_string_to_file(name, "text")
    assert file_io.read_file_to_string(name) == "text"
    file_io.atomic_write_string_to_file(name, b"bytes")
    assert file_io.read_file_to_string(name, binary_mode=True) == b"bytes"
    with pytest.raises(AlreadyExistsError):
        file_io.atomic_write_string_to_file(name, "more", overwrite=False)
