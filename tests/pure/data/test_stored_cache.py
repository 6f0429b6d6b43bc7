"""`Dataset.cache` with a file name: a damaged file is never taken for the elements."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater import errors
from headwater.data.dataset import Dataset


def elements(path: Path) -> list[int]:
    return [int(value) for value in Dataset.range(5).map(lambda value: value * 3).cache(str(path))]


@pytest.mark.slow
def test_each_damaged_byte_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "cache"
    wanted = elements(path)
    names = sorted(entry.name for entry in tmp_path.iterdir())
    assert names == ["cache.data-00000-of-00001", "cache.index"]
    for name in names:
        content = (tmp_path / name).read_bytes()
        for place in range(len(content)):
            (tmp_path / name).write_bytes(
                content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :]
            )
            try:
                as_before = elements(path) == wanted
            except errors.OpError as error:
                as_before = str(path) in error.message
            assert as_before
        (tmp_path / name).write_bytes(content)
    (tmp_path / "cache.data-00000-of-00001").unlink()
    with pytest.raises(errors.NotFoundError, match=str(path)):
        elements(path)
    (tmp_path / "cache.index").unlink()
    assert elements(path) == wanted
