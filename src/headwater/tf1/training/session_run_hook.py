"""`SessionRunHook`: callbacks before and after every step of a monitored session, and their arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from headwater.graph.session.session import BaseSession
    from headwater.graph.types import FeedDict, SessionLike, Structure
    from headwater.tensorboard_protos import RunMetadata, RunOptions
    from headwater.tf1.training.coordinator import Coordinator


class SessionRunHook:
    """Base of all hooks; override the methods you need."""

    def begin(self) -> None:
        """Called once, before the session is made: the last moment to add to the graph."""

    def after_create_session(self, session: SessionLike, coord: Coordinator) -> None:
        """Called after every new session is created: the first, and each replacement of a lost session.

        Args:
          session: the new session.
          coord: the coordinator of its threads.
        """

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Called before every step; returns further tensors to fetch and values to feed."""
        return None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Called after every step, unless there was an error.

        Args:
          run_context: the step; its ``request_stop`` ends the loop.
          run_values: results of the fetches that `before_run` returned.
        """

    def end(self, session: SessionLike) -> None:
        """Called once, at the end, unless there was an error; the session is still open."""


class _RunArgs(NamedTuple):
    fetches: Structure
    feed_dict: FeedDict | None
    options: RunOptions


class SessionRunArgs(_RunArgs):
    """Fetches and feeds that a hook adds to a step.

    Attributes:
      fetches: any structure that `Session.run` takes.
      feed_dict: values to feed.
      options: a ``RunOptions``, merged into the step's options.
    """

    __slots__ = ()

    def __new__(
        cls, fetches: Structure, feed_dict: Mapping[Any, Any] | None = None, options: RunOptions | None = None
    ) -> SessionRunArgs:
        return super().__new__(cls, fetches, feed_dict, options)


class SessionRunContext:
    """A step that is about to run, or just ran.

    Attributes:
      original_args: the caller's fetches and feeds, a `SessionRunArgs`.
      session: the session, without hooks.
      stop_requested: whether a hook asked to stop.
    """

    def __init__(self, original_args: SessionRunArgs, session: BaseSession) -> None:
        self.original_args: SessionRunArgs = original_args
        self.session: Any = session
        self.stop_requested: bool = False

    def request_stop(self) -> None:
        """Ends the loop after this step: ``should_stop`` is true from then on."""
        self.stop_requested = True


class SessionRunValues(NamedTuple):
    """Results of a hook's `SessionRunArgs`.

    Attributes:
      results: values in the structure of its ``fetches``; None without fetches.
      options: the ``RunOptions`` of the step.
      run_metadata: the ``RunMetadata`` of the step.
    """

    results: Any
    options: RunOptions
    run_metadata: RunMetadata
