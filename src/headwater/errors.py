"""The one error tree: TensorFlow's codes and class names, raised by every layer.

::

    OpError
      CancelledError           1   the step, or its session, was cancelled
      UnknownError             2   no other class fits
      InvalidArgumentError     3   the request is invalid, in any state
      DeadlineExceededError    4   the operation timed out
      NotFoundError            5   a file, operation, variable or task does not exist
      AlreadyExistsError       6   ... exists already
      PermissionDeniedError    7   known caller, not allowed
      ResourceExhaustedError   8   memory, disk or a limit is exhausted
      FailedPreconditionError  9   not in this state, e.g. a variable without a value
      AbortedError            10   state that it relied on is lost, e.g. a task was restarted
      OutOfRangeError         11   past the end, e.g. of a closed queue
      UnimplementedError      12   not implemented
      InternalError           13   an invariant of Headwater does not hold
      UnavailableError        14   a task cannot be reached now; a retry may help
      DataLossError           15   a file or frame is damaged
      UnauthenticatedError    16   unknown caller

The numbers are those of gRPC's status codes (https://grpc.github.io/grpc/core/md_doc_statuscodes.html), which
TensorFlow uses too.
"""

from __future__ import annotations

from typing import Any, ClassVar

OK = 0
CANCELLED = 1
UNKNOWN = 2
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
DATA_LOSS = 15
UNAUTHENTICATED = 16


class OpError(Exception):
    """An error with a code and, if it is known, the failed operation of the graph.

    Args:
      node_def: the ``NodeDef`` of the operation that failed, or None.
      op: the ``Operation`` that failed, or None when it is not part of the caller's graph.
      message: one sentence that names the problem.
      error_code: one of this module's numbers.
    """

    def __init__(self, node_def: Any, op: Any, message: str, error_code: int = UNKNOWN) -> None:
        super().__init__(message)
        self._node_def = node_def
        self._op = op
        self._message = message
        self._error_code = error_code

    @property
    def node_def(self) -> Any:
        return self._node_def

    @property
    def op(self) -> Any:
        return self._op

    @property
    def message(self) -> str:
        return self._message

    @property
    def error_code(self) -> int:
        return self._error_code

    def __str__(self) -> str:
        if self._op is None:
            return self._message
        return f"{self._message}\n  in operation {self._op.name!r} ({self._op.type})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (None, None, str(self))


class _CodedError(OpError):
    code: ClassVar[int] = UNKNOWN

    def __init__(self, node_def: object, op: object, message: str, error_code: int | None = None) -> None:
        super().__init__(node_def, op, message, self.code if error_code is None else error_code)


class CancelledError(_CodedError):
    code = CANCELLED
    #: Whether the cancelled operation had changed state before it waited.
    half_done: bool = False


class UnknownError(_CodedError):
    code = UNKNOWN


class InvalidArgumentError(_CodedError):
    code = INVALID_ARGUMENT


class DeadlineExceededError(_CodedError):
    code = DEADLINE_EXCEEDED


class NotFoundError(_CodedError):
    code = NOT_FOUND


class AlreadyExistsError(_CodedError):
    code = ALREADY_EXISTS


class PermissionDeniedError(_CodedError):
    code = PERMISSION_DENIED


class ResourceExhaustedError(_CodedError):
    code = RESOURCE_EXHAUSTED


class FailedPreconditionError(_CodedError):
    code = FAILED_PRECONDITION


class AbortedError(_CodedError):
    code = ABORTED


class OutOfRangeError(_CodedError):
    code = OUT_OF_RANGE


class UnimplementedError(_CodedError):
    code = UNIMPLEMENTED


class InternalError(_CodedError):
    code = INTERNAL


class UnavailableError(_CodedError):
    code = UNAVAILABLE


class DataLossError(_CodedError):
    code = DATA_LOSS


class UnauthenticatedError(_CodedError):
    code = UNAUTHENTICATED


class GaveUpError(UnavailableError):
    """A task could not be reached before the deadline of a wait, so that a retry is pointless."""


_BY_CODE: dict[int, type[_CodedError]] = {cls.code: cls for cls in _CodedError.__subclasses__()}


class OperatorNotAllowedInGraphError(TypeError):
    """A Python operator needs the value of a tensor, which has none before a step runs."""


def exception_type_from_error_code(error_code: int) -> type[OpError]:
    """Returns the class of ``error_code``; raises KeyError for an unknown number."""
    return _BY_CODE[error_code]


def error_code_from_exception_type(cls: type[OpError]) -> int:
    """Returns the code of ``cls``; UNKNOWN for `OpError` itself."""
    return getattr(cls, "code", UNKNOWN)


def make_error(error_code: int, message: str, op: object = None) -> OpError:
    """Returns an error of the class of ``error_code``; `UnknownError` for an unknown number."""
    return _BY_CODE.get(error_code, UnknownError)(None, op, message)
