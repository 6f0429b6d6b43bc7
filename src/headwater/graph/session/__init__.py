"""Sessions: a program uses them to run operations of its graph."""

from headwater.graph.session.session import BaseSession, InteractiveSession, Session

__all__ = ["BaseSession", "InteractiveSession", "Session"]
