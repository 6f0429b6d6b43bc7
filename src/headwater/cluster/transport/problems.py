"""Problems of connecting to a task, with hints for the user.

A failed attempt to connect raises `ConnectFailure`. `headwater.cluster.transport.waiting` decides whether to retry, and
`headwater.cluster.transport.doctor` shows the problem to users.
"""

from __future__ import annotations

import enum
import errno
import socket
import ssl

from headwater import errors


class Problem(enum.Enum):
    """Reasons why a task could not be reached."""

    REFUSED = "refused"
    NO_ANSWER = "no answer"
    UNREACHABLE = "unreachable"
    UNKNOWN_HOST = "unknown host"
    SILENT = "silent"
    CLOSED = "closed"
    BUSY = "busy"
    FULL = "full"
    NOT_HEADWATER = "not Headwater"
    CERTIFICATE = "certificate"
    TOKEN = "token"
    VERSION = "version"
    OTHER_TASK = "another task"
    GENERATION = "generation"
    DESCRIPTORS = "descriptors"
    OTHER = "other"


_HINTS = {
    Problem.REFUSED: "nothing listens there yet; is the task started, and is the address the right one?",
    Problem.NO_ANSWER: "is a firewall dropping packets to this port, or the machine down?",
    Problem.UNREACHABLE: "is the machine up, and is there a route (or a firewall) between it and this one?",
    Problem.UNKNOWN_HOST: "no such name; is it spelled right in the cluster spec?",
    Problem.SILENT: "the process at the port accepted the connection but does not answer; is it stopped or stuck, or "
    "something other than Headwater?",
    Problem.CLOSED: "it closed the connection before it authenticated; is it starting, stopping or overloaded?",
    Problem.BUSY: "it is still ending the work of the previous incarnation of this process",
    Problem.FULL: "raise the limit of open files (ulimit -n) for that task",
    Problem.NOT_HEADWATER: "another program holds this port; stop it or use another port in the cluster spec",
    Problem.CERTIFICATE: "compare HEADWATER_TLS_CERT, HEADWATER_TLS_KEY and HEADWATER_TLS_CA of both tasks; the "
    "certificates must be of one CA, valid now, and for the host in the cluster spec",
    Problem.TOKEN: "set HEADWATER_TOKEN to the same value for all tasks, or for none if all run as one user on one "
    "machine",
    Problem.VERSION: "run the same version of Headwater in all tasks",
    Problem.OTHER_TASK: "do the two tasks' cluster specs differ, or does a process of an earlier run hold the port?",
    Problem.GENERATION: "the task was restarted",
    Problem.DESCRIPTORS: "raise the limit of open files (ulimit -n), or close some files",
    Problem.OTHER: "",
}

_CODES = {
    Problem.CERTIFICATE: errors.UNAUTHENTICATED,
    Problem.TOKEN: errors.UNAUTHENTICATED,
    Problem.VERSION: errors.FAILED_PRECONDITION,
    Problem.OTHER_TASK: errors.FAILED_PRECONDITION,
    Problem.GENERATION: errors.ABORTED,
    Problem.FULL: errors.RESOURCE_EXHAUSTED,
    Problem.DESCRIPTORS: errors.RESOURCE_EXHAUSTED,
}

#: Permanent problems: retries do not help.
FINAL = frozenset({Problem.CERTIFICATE, Problem.TOKEN, Problem.VERSION, Problem.GENERATION, Problem.DESCRIPTORS})
#: Error numbers for a lack of descriptors: of the process, of the machine.
NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})


class ConnectFailure(Exception):
    """One attempt to connect failed.

    Attributes:
      problem: the reason, for programs.
      detail: the reason, for users, such as ``"connection refused"``.
    """

    def __init__(self, problem: Problem, detail: str) -> None:
        super().__init__(detail)
        self.problem = problem
        self.detail = detail

    @property
    def hint(self) -> str:
        """Advice for the user; may be empty."""
        return _HINTS[self.problem]

    def __str__(self) -> str:
        return f"{self.detail} ({self.hint})" if self.hint else self.detail

    def as_error(self, what: str) -> errors.OpError:
        """Returns the error to raise when there is no retry.

        Args:
          what: the start of the message: the task that could not be reached, and its address.
        """
        return errors.make_error(_CODES.get(self.problem, errors.UNAVAILABLE), f"{what}: {self}")


def failure_of(error: Exception) -> ConnectFailure:
    """Classifies an exception of a socket; raises it again if it is of another kind."""
    if isinstance(error, ConnectFailure):
        return error
    if isinstance(error, socket.gaierror):
        return ConnectFailure(Problem.UNKNOWN_HOST, f"unknown host: {error.strerror}")
    if isinstance(error, ssl.SSLCertVerificationError):
        return ConnectFailure(Problem.CERTIFICATE, f"its certificate was not accepted: {error.verify_message}")
    if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError, EOFError)):
        return ConnectFailure(Problem.CLOSED, "the connection was closed")
    if isinstance(error, ssl.SSLError):
        return ConnectFailure(Problem.CERTIFICATE, f"no TLS connection: {tls_reason(error)}")
    if isinstance(error, ConnectionRefusedError):
        return ConnectFailure(Problem.REFUSED, "connection refused")
    if isinstance(error, TimeoutError):
        return ConnectFailure(Problem.NO_ANSWER, "no answer")
    if isinstance(error, ConnectionError):
        return ConnectFailure(Problem.CLOSED, "the connection was closed")
    if isinstance(error, OSError) and error.errno in NO_DESCRIPTORS:
        return ConnectFailure(Problem.DESCRIPTORS, "this process has reached its limit of open files")
    if isinstance(error, OSError):
        unreachable = error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN)
        problem = Problem.UNREACHABLE if unreachable else Problem.OTHER
        return ConnectFailure(problem, (error.strerror or str(error)).lower())
    raise error


def tls_reason(error: ssl.SSLError) -> str:
    """Returns OpenSSL's reason for a failure of TLS."""
    return str(getattr(error, "reason", None) or error).lower().replace("_", " ")
