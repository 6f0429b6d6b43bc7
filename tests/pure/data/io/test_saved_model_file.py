"""The file of a saved model: its bytes, and the errors of invalid files."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.data.io.saved_model import FILE_NAME, TEXT_FILE_NAME, encode, read
from headwater.errors import DataLossError
from headwater.tensorboard_protos import meta_graph_pb2


def _graph(*tags: str):
    proto = meta_graph_pb2.MetaGraphDef()
    proto.meta_info_def.tags.extend(tags)
    return proto


def test_meta_graphs_survive_export_and_import(tmp_path: Path) -> None:
    graphs = [_graph("serve"), _graph("train", "gpu")]
    (tmp_path / FILE_NAME).write_bytes(encode(graphs))
    assert read(str(tmp_path)) == graphs


def test_the_text_form(tmp_path: Path) -> None:
    text = 'saved_model_schema_version: 1\nmeta_graphs { meta_info_def { tags: "serve" } }\n'
    (tmp_path / TEXT_FILE_NAME).write_text(text)
    assert read(str(tmp_path)) == [_graph("serve")]
    (tmp_path / TEXT_FILE_NAME).write_text("meta_graphs {")
    with pytest.raises(DataLossError, match="not a saved model"):
        read(str(tmp_path))


def test_the_bytes_are_those_of_the_message() -> None:
    assert encode([_graph("s")]) == b"\x08\x01\x12\x05\x0a\x03\x22\x01s"


@pytest.mark.parametrize("damage", [b"\x12\x7f\x0a", b"\x1a\x01\x00", b"\x12\x02\xff\xff"])
def test_damage_is_reported(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"\x08\x01" + damage)
    with pytest.raises(DataLossError, match="not a saved model"):
        read(str(tmp_path))


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="does not exist"):
        read(str(tmp_path))
