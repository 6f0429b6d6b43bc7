"""`FileWriter`: events for TensorBoard, written in the background."""

from __future__ import annotations

import atexit
import logging
import threading
import time
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from headwater.data.io.event_file import EventFile
from headwater.data.io.files import Path, as_path, makedirs
from headwater.errors import OpError
from headwater.tensorboard_protos import event_pb2, graph_pb2, meta_graph_pb2, summary_pb2
from headwater.tf1.training.saving_attempts import SavingAttempts

if TYPE_CHECKING:
    from headwater.graph.types import SessionLike, TensorLike
    from headwater.tensorboard_protos import Event, GraphDef, MetaGraphDef, RunMetadata, SessionLog


_logger: Final = logging.getLogger(__name__)

_MAX_PENDING_BYTES: Final = 256 << 20
"""Maximum number of events that wait for a slow disk; further events are dropped, so that training does not stop."""


class _BackgroundWriter:
    """A thread that owns an event file. Callers wait for the disk only in `flush` and `close`.

    Events are written when ``max_queue`` of them wait, or after ``flush_secs`` seconds. If the disk is full, the events
    wait, and are retried with a new file. After another error of the disk, these events are lost, and the loss is
    logged.
    """

    def __init__(
        self,
        make_file: Callable[[], EventFile],
        max_queue: int,
        flush_secs: float,
        attempts: SavingAttempts | None = None,
    ) -> None:
        self._make_file = make_file
        self._attempts = attempts or SavingAttempts("events")
        self._max_queue = max_queue
        self._flush_secs = flush_secs
        self._condition = threading.Condition()
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._dropped = 0
        self._flushes_asked = 0
        self._flushes_done = 0
        self._closing = False
        self._file: EventFile | None = None
        self._thread = threading.Thread(target=self._run, name="headwater-events", daemon=True)
        self._thread.start()

    def put(self, event: bytes) -> None:
        with self._condition:
            if self._pending_bytes + len(event) > _MAX_PENDING_BYTES:
                self._dropped += 1
                return
            self._pending.append(event)
            self._pending_bytes += len(event)
            if len(self._pending) >= self._max_queue:
                self._condition.notify_all()

    def flush(self) -> None:
        """Waits until earlier events are written to the operating system."""
        with self._condition:
            self._flushes_asked += 1
            wanted = self._flushes_asked
            self._condition.notify_all()
            self._condition.wait_for(lambda: self._flushes_done >= wanted or not self._thread.is_alive())

    def close(self) -> None:
        with self._condition:
            self._closing = True
            self._condition.notify_all()
        self._thread.join()

    def _run(self) -> None:
        closing = False
        while not closing:
            with self._condition:
                self._condition.wait_for(self._is_due, self._attempts.pause_s(self._flush_secs))
                events, self._pending, self._pending_bytes = self._pending, [], 0
                dropped, self._dropped = self._dropped, 0
                asked, closing = self._flushes_asked, self._closing
            kept = self._write(events, dropped)
            with self._condition:
                self._pending[:0] = kept
                self._pending_bytes += sum(map(len, kept))
                self._flushes_done = asked
                self._condition.notify_all()
        if self._pending:
            _logger.error("%d events were lost: the disk had no room for them until the end", len(self._pending))
        self._close_file()

    def _is_due(self) -> bool:
        many = len(self._pending) >= self._max_queue and not self._attempts.failing
        return many or self._attempts.due or self._flushes_asked > self._flushes_done or self._closing

    def _write(self, events: list[bytes], dropped: int) -> list[bytes]:
        """Writes events and returns the events to retry later."""
        if dropped:
            _logger.warning("%d events were dropped, because the disk did not take those before in time", dropped)
        if not events:
            return []
        try:
            return [] if self._attempts.attempt(lambda: self._append(events)) else events
        except OpError as error:
            _logger.error("%d events were lost: %s", len(events), error)
            return []

    def _append(self, events: list[bytes]) -> None:
        try:
            if self._file is None:
                self._file = self._make_file()
            for event in events:
                self._file.write(event)
            self._file.flush()
        except OpError:
            file, self._file = self._file, None
            if file is not None:
                file.abandon()
            raise

    def _close_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OpError as error:
                _logger.error("The last events were lost: %s", error)


_open_writers: weakref.WeakSet[FileWriter] = weakref.WeakSet()


@atexit.register
def _close_writers() -> None:
    """Writes waiting events when the program ends."""
    for writer in list(_open_writers):
        writer.close()


class FileWriter:
    """Writes summaries, graphs and more into an event file of a folder, which TensorBoard reads.

    The folder is created immediately, the file with the first event. Adding an event never waits for the disk.

    Args:
      logdir: the folder; it is made if it is missing.
      graph: an object with ``as_graph_def``; written immediately, as a graph and as a meta graph.
      max_queue: maximum number of events that wait to be written.
      flush_secs: seconds after which waiting events are written.
      graph_def: old form of ``graph``: a ``GraphDef``.
      filename_suffix: end of the file's name.
      session: accepted for programs that pass one; events need none.
    """

    def __init__(
        self,
        logdir: Path,
        graph: object = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        graph_def: GraphDef | None = None,
        filename_suffix: str | None = None,
        session: SessionLike | None = None,
    ) -> None:
        self._logdir = as_path(logdir)
        self._max_queue = max_queue
        self._flush_secs = flush_secs
        self._suffix = filename_suffix or ""
        self._lock = threading.Lock()
        self._tags_with_metadata: set[str] = set()
        self._tags_of_run_metadata: set[str] = set()
        self._writer: _BackgroundWriter | None = None
        self._warned = False
        self.reopen()
        if graph is not None or graph_def is not None:
            self.add_graph(graph, graph_def=graph_def)
            meta_graph = meta_graph_pb2.MetaGraphDef(graph_def=_as_graph_def(graph, graph_def))
            self.add_meta_graph(meta_graph)

    def get_logdir(self) -> str:
        """Returns the folder of the event files."""
        return self._logdir

    def add_summary(self, summary: object, global_step: TensorLike | None = None) -> None:
        """Adds a ``Summary`` message, or its bytes as computed by a summary operation.

        The ``metadata`` of a tag is written with the first summary of that tag only.
        """
        if isinstance(summary, bytes):
            summary = summary_pb2.Summary.FromString(summary)
        event = event_pb2.Event(summary=summary)
        with self._lock:
            for value in event.summary.value:
                if not value.HasField("metadata"):
                    continue
                if value.tag in self._tags_with_metadata:
                    value.ClearField("metadata")
                else:
                    self._tags_with_metadata.add(value.tag)
        self._add(event, global_step)

    def add_graph(
        self, graph: object, global_step: TensorLike | None = None, graph_def: GraphDef | None = None
    ) -> None:
        """Adds a graph.

        Args:
          graph: anything that has ``as_graph_def``, or a ``GraphDef``.
          graph_def: old form of ``graph``.

        Raises:
          ValueError: both ``graph`` and ``graph_def`` are given.
          TypeError: neither is a graph.
        """
        self._add(event_pb2.Event(graph_def=_as_graph_def(graph, graph_def).SerializeToString()), global_step)

    def add_meta_graph(self, meta_graph_def: MetaGraphDef, global_step: TensorLike | None = None) -> None:
        """Adds a ``MetaGraphDef``; TypeError for anything else."""
        if not isinstance(meta_graph_def, meta_graph_pb2.MetaGraphDef):
            raise TypeError(f"meta_graph_def must be type MetaGraphDef, saw type: {type(meta_graph_def)}")
        self._add(event_pb2.Event(meta_graph_def=meta_graph_def.SerializeToString()), global_step)

    def add_run_metadata(self, run_metadata: RunMetadata, tag: str, global_step: TensorLike | None = None) -> None:
        """Adds the ``RunMetadata`` of a step under a tag.

        Raises:
          ValueError: the tag was used before.
        """
        with self._lock:
            if tag in self._tags_of_run_metadata:
                raise ValueError(f"The provided tag was already used for this event type: {tag!r}")
            self._tags_of_run_metadata.add(tag)
        event = event_pb2.Event()
        event.tagged_run_metadata.tag = tag
        event.tagged_run_metadata.run_metadata = run_metadata.SerializeToString()
        self._add(event, global_step)

    def add_session_log(self, session_log: SessionLog, global_step: TensorLike | None = None) -> None:
        """Adds a ``SessionLog`` message: that a session starts, stops or saves."""
        self._add(event_pb2.Event(session_log=session_log), global_step)

    def _add(self, event: Event, global_step: Any) -> None:
        event.wall_time = time.time()
        if global_step is not None:
            event.step = int(global_step)
        self.add_event(event)

    def add_event(self, event: Event) -> None:
        """Adds an ``Event`` message unchanged. If the writer is closed, it only logs a warning, once."""
        writer = self._writer
        if writer is not None:
            writer.put(event.SerializeToString())
        elif not self._warned:
            self._warned = True
            _logger.warning("Attempting to use a closed FileWriter of %s: nothing is written", self._logdir)

    def flush(self) -> None:
        """Waits until all events are written to the operating system."""
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """Writes all events and ends the file; `reopen` begins another."""
        writer, self._writer = self._writer, None
        _open_writers.discard(self)
        if writer is not None:
            writer.close()

    def reopen(self) -> None:
        """Starts another file after `close`; does nothing if the writer is open."""
        if self._writer is None:
            logdir, suffix = self._logdir, self._suffix
            makedirs(logdir)
            attempts = SavingAttempts(f"events in {logdir}")
            self._writer = _BackgroundWriter(
                lambda: EventFile(logdir, suffix), self._max_queue, self._flush_secs, attempts
            )
            self._warned = False
            _open_writers.add(self)

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _as_graph_def(graph: Any, graph_def: GraphDef) -> GraphDef:
    if graph is not None and graph_def is not None:
        raise ValueError("Please pass only graph, or graph_def (deprecated), but not both.")
    graph = graph_def if graph is None else graph
    if hasattr(graph, "as_graph_def"):
        return graph.as_graph_def(add_shapes=True)
    if isinstance(graph, graph_pb2.GraphDef):
        return graph
    raise TypeError(f"The passed graph must be a Graph or a GraphDef, saw type: {type(graph)}")


class FileWriterCache:
    """Cache with one `FileWriter` per folder, shared by all callers that write there."""

    _cache: ClassVar[dict[str, FileWriter]] = {}
    _lock: ClassVar[threading.RLock] = threading.RLock()

    @staticmethod
    def get(logdir: Path) -> FileWriter:
        """The writer of a folder, made at the first call."""
        with FileWriterCache._lock:
            name = as_path(logdir)
            if name not in FileWriterCache._cache:
                FileWriterCache._cache[name] = FileWriter(name)
            return FileWriterCache._cache[name]

    @staticmethod
    def clear() -> None:
        """Closes all writers, and removes them from the cache."""
        with FileWriterCache._lock:
            for writer in FileWriterCache._cache.values():
                writer.close()
            FileWriterCache._cache.clear()
