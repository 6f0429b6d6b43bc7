"""Refusals of requests by the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headwater.platform.job_file import Problem


class Refused(Exception):
    """A request is refused.

    Attributes:
      status: the HTTP status.
      problems: the wrong fields, if the request is invalid.
      headers: further headers of the response.
    """

    def __init__(
        self, status: int, message: str, *, problems: Sequence[Problem] = (), headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.problems: tuple[Problem, ...] = tuple(problems)
        self.headers: dict[str, str] = dict(headers or {})
