"""Lookup tables from text files with errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater import tf


def test_an_empty_line_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "words"
    path.write_text("a\n\nb\n")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.contrib.lookup.index_table_from_file(str(path))
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"Invalid content in {path}: empty line .* line 2"):
            session.run(tf.tables_initializer())
