"""`FileWriter`: added events are in the file, the disk never delays the caller, TensorBoard reads it."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from headwater.data.io import event_file, summary_protos
from headwater.data.io.event_file import EventFile, summary_iterator
from headwater.data.io.tfrecord import TFRecordWriter
from headwater.errors import DataLossError, NotFoundError, ResourceExhaustedError
from headwater.tensorboard_protos import config_pb2, event_pb2, graph_pb2, meta_graph_pb2, summary_pb2
from headwater.tf1.training import file_writer
from headwater.tf1.training.file_writer import FileWriter, FileWriterCache


def events(folder: Path) -> list[Any]:
    return [event for path in sorted(folder.iterdir()) for event in summary_iterator(path)]


def loss(value: float = 0.5) -> Any:
    return summary_protos.scalar("loss", value)


class AnyGraph:
    def as_graph_def(self, from_version: int | None = None, add_shapes: bool = False) -> Any:
        assert add_shapes
        graph = graph_pb2.GraphDef()
        graph.node.add(name="c", op="Const")
        return graph


class TestWhatIsWritten:
    def test_names_and_first_event(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(event_file.time, "time", lambda: 1795231709.75)
        monkeypatch.setattr(event_file.socket, "gethostname", lambda: "host")
        for _ in range(2):
            with FileWriter(tmp_path / "a" / "b", filename_suffix=".end") as writer:
                writer.add_summary(loss(), 1)
        names = ["events.out.tfevents.1795231709.host.1.end", "events.out.tfevents.1795231709.host.end"]
        assert sorted(path.name for path in (tmp_path / "a" / "b").iterdir()) == names
        first = events(tmp_path / "a" / "b")[0]
        assert (first.wall_time, first.step, first.file_version) == (1795231709.0, 0, "brain.Event:2")

    def test_no_event_no_file(self, tmp_path: Path) -> None:
        with FileWriter(tmp_path / "log") as writer:
            writer.flush()
        assert not list((tmp_path / "log").iterdir())

    def test_every_kind_of_event(self, tmp_path: Path) -> None:
        with FileWriter(tmp_path) as writer:
            assert writer.get_logdir() == str(tmp_path)
            writer.add_summary(loss(), 1)
            writer.add_summary(loss().SerializeToString(), np.int64(2))
            writer.add_summary(loss())
            writer.add_graph(AnyGraph(), 4)
            writer.add_graph(AnyGraph().as_graph_def(add_shapes=True))
            writer.add_graph(None, graph_def=graph_pb2.GraphDef())
            writer.add_meta_graph(meta_graph_pb2.MetaGraphDef(), 7)
            writer.add_session_log(event_pb2.SessionLog(status=event_pb2.SessionLog.START), 8)
            writer.add_run_metadata(config_pb2.RunMetadata(), "step9", 9)
            writer.add_event(event_pb2.Event(step=10))
        found = events(tmp_path)
        assert [(event.step, event.WhichOneof("what")) for event in found] == [
            (0, "file_version"),
            (1, "summary"),
            (2, "summary"),
            (0, "summary"),
            (4, "graph_def"),
            (0, "graph_def"),
            (0, "graph_def"),
            (7, "meta_graph_def"),
            (8, "session_log"),
            (9, "tagged_run_metadata"),
            (10, None),
        ]
        assert graph_pb2.GraphDef.FromString(found[4].graph_def).node[0].name == "c"
        assert found[9].tagged_run_metadata.tag == "step9"

    def test_graph_of_the_constructor(self, tmp_path: Path) -> None:
        FileWriter(tmp_path, AnyGraph()).close()
        _, graph, meta_graph = events(tmp_path)
        assert graph_pb2.GraphDef.FromString(graph.graph_def).node[0].name == "c"
        assert meta_graph_pb2.MetaGraphDef.FromString(meta_graph.meta_graph_def).graph_def.node[0].name == "c"

    def test_metadata_of_a_tag_is_written_once(self, tmp_path: Path) -> None:
        note = summary_protos.text("note", "hello")
        with FileWriter(tmp_path) as writer:
            for step in range(2):
                writer.add_summary(note, step)
            writer.add_summary(summary_protos.text("other", "hello"))
        assert [event.summary.value[0].HasField("metadata") for event in events(tmp_path)[1:]] == [True, False, True]
        assert note.value[0].HasField("metadata")

    def test_wrong_arguments(self, tmp_path: Path) -> None:
        with FileWriter(tmp_path) as writer:
            with pytest.raises(TypeError, match="Graph"):
                writer.add_graph("graph")
            with pytest.raises(ValueError, match="not both"):
                writer.add_graph(AnyGraph(), graph_def=graph_pb2.GraphDef())
            with pytest.raises(TypeError, match="MetaGraphDef"):
                writer.add_meta_graph("graph")
            writer.add_run_metadata(config_pb2.RunMetadata(), "tag")
            with pytest.raises(ValueError, match="already used"):
                writer.add_run_metadata(config_pb2.RunMetadata(), "tag")

    def test_tensorboard_shows_it(self, tmp_path: Path) -> None:
        with FileWriter(tmp_path, AnyGraph()) as writer:
            for step in range(3):
                writer.add_summary(loss(step / 2), step)
            writer.add_summary(summary_protos.histogram("weights", np.arange(10.0)), 1)
            writer.add_summary(summary_protos.image("pictures", np.zeros((2, 2, 2, 3))), 1)
            writer.add_summary(summary_protos.audio("sounds", np.zeros((1, 4)), 8000), 1)
            writer.add_summary(summary_protos.text("note", "hello"), 1)
        shown = EventAccumulator(str(tmp_path))
        shown.Reload()
        assert [(event.step, event.value) for event in shown.Scalars("loss")] == [(0, 0.0), (1, 0.5), (2, 1.0)]
        tags = shown.Tags()
        assert tags["histograms"] == ["weights"]
        assert tags["images"] == ["pictures/image/0", "pictures/image/1"]
        assert tags["audio"] == ["sounds/audio/0"]
        assert tags["tensors"] == ["note"]
        assert tags["graph"]
        assert shown.Graph().node[0].name == "c"


class TestWhenItIsWritten:
    def test_a_full_queue_is_written(self, tmp_path: Path) -> None:
        written = threading.Event()

        class Told(EventFile):
            def flush(self) -> None:
                super().flush()
                written.set()

        writer = file_writer._BackgroundWriter(lambda: Told(tmp_path), 3, 1e6)
        for _ in range(3):
            writer.put(b"")
        assert written.wait(60)
        assert len(events(tmp_path)) == 4
        writer.close()

    def test_time_writes_too(self, tmp_path: Path) -> None:
        written = threading.Event()

        class Told(EventFile):
            def flush(self) -> None:
                super().flush()
                written.set()

        writer = file_writer._BackgroundWriter(lambda: Told(tmp_path), 1000, 0.001)
        writer.put(b"")
        assert written.wait(60)
        writer.close()

    def test_a_hanging_disk_does_not_block_others(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        release = threading.Event()

        def hang() -> EventFile:
            assert release.wait(60)
            return EventFile(tmp_path)

        monkeypatch.setattr(file_writer, "_MAX_PENDING_BYTES", 50)
        writer = file_writer._BackgroundWriter(hang, 1, 1e6)
        packed = event_pb2.Event(step=1).SerializeToString()
        for _ in range(200):
            writer.put(packed)
        release.set()
        with caplog.at_level(logging.WARNING):
            writer.close()
        assert "events were dropped" in caplog.text
        assert 2 < len(events(tmp_path)) < 100

    def test_a_full_disk_loses_no_events(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        real = TFRecordWriter.write
        full = [True]

        def write(self: TFRecordWriter, record: bytes) -> None:
            if full.pop() if full else False:
                raise ResourceExhaustedError(None, None, "no space left")
            real(self, record)

        monkeypatch.setattr(TFRecordWriter, "write", write)
        with FileWriter(tmp_path) as writer:
            writer.add_summary(loss(), 1)
            writer.flush()
            assert f"Cannot write events in {tmp_path}: no space left. Training continues" in caplog.text
            writer.add_summary(loss(), 2)
        assert [event.step for event in events(tmp_path)] == [0, 1, 2]

    def test_closing_and_reopening(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        writer = FileWriter(tmp_path)
        writer.add_summary(loss(), 1)
        writer.close()
        writer.close()
        writer.flush()
        for _ in range(2):
            writer.add_summary(loss(), 2)
        assert caplog.text.count("closed FileWriter") == 1
        writer.reopen()
        writer.reopen()
        writer.add_summary(loss(), 3)
        writer.close()
        assert [event.step for event in events(tmp_path)] == [0, 1, 0, 3]

    @pytest.mark.slow
    def test_a_program_that_forgets_to_close(self, tmp_path: Path) -> None:
        program = (
            "import sys; from headwater.data.io import summary_protos; from headwater.tf1.training import file_writer;"
            "w = file_writer.FileWriter(sys.argv[1]); w.add_summary(summary_protos.scalar('loss', 1.0), 7)"
        )
        subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
        assert [event.step for event in events(tmp_path)] == [0, 7]

    def test_cache(self, tmp_path: Path) -> None:
        writer = FileWriterCache.get(tmp_path)
        assert FileWriterCache.get(str(tmp_path)) is writer
        writer.add_summary(loss(), 1)
        FileWriterCache.clear()
        assert len(events(tmp_path)) == 2
        assert FileWriterCache.get(tmp_path) is not writer
        FileWriterCache.clear()


def test_reading_a_file_that_is_no_event_file(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        list(summary_iterator(tmp_path / "no"))
    with TFRecordWriter(tmp_path / "records") as writer:
        writer.write(summary_pb2.Summary().SerializeToString())
        writer.write(b"\xff\xff")
    with pytest.raises(DataLossError, match="no Event"):
        list(summary_iterator(tmp_path / "records"))
