"""Paths that are URLs, against a server that speaks the protocol of S3."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater import tf
from headwater.data.io import files
from headwater.data.io.event_file import summary_iterator
from headwater.data.io.files import AtomicFile
from headwater.data.io.tfrecord import TFRecordReader, TFRecordWriter
from headwater.errors import AlreadyExistsError, DataLossError, NotFoundError, UnavailableError, UnimplementedError

moto = pytest.importorskip("moto.server")
pytest.importorskip("s3fs")

# Warnings of the S3 server and of its client are not Headwater's.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    served: Any = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    served.start()
    host, port = served.get_host_and_port()
    yield f"http://{host}:{port}"
    served.stop()


@pytest.fixture
def bucket(server: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    import s3fs

    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    s3fs.S3FileSystem.clear_instance_cache()
    name = "".join(c if c.isalnum() else "-" for c in request.node.name.lower())[:40].strip("-")
    s3fs.S3FileSystem(skip_instance_cache=True).mkdir(name)
    return f"s3://{name}"


def test_files(bucket: str) -> None:
    path = f"{bucket}/logs/a.txt"
    assert not files.exists(path)
    files.makedirs(f"{bucket}/logs")
    with tf.gfile.GFile(path, "w") as file:
        file.write("one\ntwo\n")
    assert files.exists(path)
    assert files.isdir(f"{bucket}/logs")
    assert files.stat(path).length == 8
    assert tf.gfile.GFile(path).readlines() == ["one\n", "two\n"]
    with tf.gfile.GFile(path, "a") as file:
        file.write("three\n")
    assert tf.io.gfile.GFile(path, "rb").read() == b"one\ntwo\nthree\n"
    files.copy(path, f"{bucket}/logs/deep/b.txt")
    assert sorted(files.listdir(f"{bucket}/logs")) == ["a.txt", "deep"]
    assert files.glob(f"{bucket}/logs/*.txt") == [path]
    assert files.glob(f"{bucket}/*/*/b.*") == [f"{bucket}/logs/deep/b.txt"]
    walked = [(folder, sorted(below), sorted(here)) for folder, below, here in files.walk(f"{bucket}/logs")]
    assert walked == [(f"{bucket}/logs", ["deep"], ["a.txt"]), (f"{bucket}/logs/deep", [], ["b.txt"])]
    with pytest.raises(AlreadyExistsError):
        files.rename(path, f"{bucket}/logs/deep/b.txt")
    files.rename(path, f"{bucket}/logs/c.txt")
    assert sorted(files.listdir(f"{bucket}/logs")) == ["c.txt", "deep"]
    files.rmtree(f"{bucket}/logs")
    assert not files.exists(f"{bucket}/logs")
    with pytest.raises(NotFoundError):
        files.remove(path)
    with pytest.raises(NotFoundError):
        tf.gfile.GFile(path).read()


def test_files_are_written_atomically(bucket: str) -> None:
    path = f"{bucket}/whole"
    with AtomicFile(path) as file:
        file.write(b"first")
    with pytest.raises(KeyError), AtomicFile(path) as file:
        file.write(b"second")
        raise KeyError
    with files.open_file(path, "rb") as stream:
        assert stream.read() == b"first"
    writer = files.open_file(f"{bucket}/late", "wb")
    writer.write(b"x" * 2_000_000)
    assert not files.exists(f"{bucket}/late")
    writer.close()
    assert files.stat(f"{bucket}/late").length == 2_000_000


def test_records(bucket: str) -> None:
    path = f"{bucket}/data/part.tfrecord"
    records = [bytes([index]) * 1000 * index for index in range(50)]
    with TFRecordWriter(path) as writer:
        writer.write_all(records)
    with TFRecordReader(path) as reader:
        assert list(reader) == records
    assert [r.item() for r in tf.data.TFRecordDataset(path)] == records
    with files.open_file(path, "rb") as stream:
        data = bytearray(stream.read())
    data[len(data) // 2] ^= 1
    with AtomicFile(path) as file:
        file.write(bytes(data))
    with pytest.raises(DataLossError, match=r"s3://.*part.tfrecord: .* at offset \d+"), TFRecordReader(path) as reader:
        list(reader)


def test_checkpoints_and_summaries(bucket: str) -> None:
    folder = f"{bucket}/model/run"
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable("v", initializer=np.arange(1000, dtype=np.float32))
        session.run(tf.global_variables_initializer())
        saver = tf.train.Saver(max_to_keep=2)
        for step in (1, 2, 3):
            session.run(tf.assign(variable, np.full(1000, step, np.float32)))
            saver.save(session, f"{folder}/model", global_step=step)
        newest = tf.train.latest_checkpoint(folder)
        assert newest == f"{folder}/model-3"
        assert not files.exists(f"{folder}/model-1.index")
        session.run(tf.assign(variable, np.zeros(1000, np.float32)))
        saver.restore(session, newest)
        assert (session.run(variable) == 3).all()
        with tf.summary.FileWriter(folder, session.graph) as writer:
            writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=0.5)]), 7)
        (events,) = files.glob(f"{folder}/events.*")
        assert [event.step for event in summary_iterator(events)][-1] == 7


def test_an_unknown_protocol_is_reported() -> None:
    with pytest.raises(UnimplementedError, match="fsspec knows no nowhere://"):
        files.exists("nowhere://bucket/file")


def test_a_store_that_is_not_there_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    import s3fs

    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    s3fs.S3FileSystem.clear_instance_cache()
    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
    with pytest.raises(UnavailableError, match="s3://bucket/file"):
        files.stat("s3://bucket/file")


def test_local_urls_are_paths(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    assert files.exists(f"file://{tmp_path}/a")
    assert files.as_path(f"file://{tmp_path}/a") == f"{tmp_path}/a"
