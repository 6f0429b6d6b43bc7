"""Sessions, with which a program runs operations of its graph."""

from headwater.graph.session.session import BaseSession, InteractiveSession, Session

__all__ = ["BaseSession", "InteractiveSession", "Session"]
