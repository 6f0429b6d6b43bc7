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

from typing import Any, ClassVar, overload

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

    As in TensorFlow, the arguments are an operation and a message; Headwater itself usually gives a message alone.

    Args:
      node_def: the ``NodeDef`` of the operation that failed, or None.
      op: the ``Operation`` that failed, or None when it is not part of the caller's graph.
      message: one sentence that names the problem.
      error_code: one of this module's numbers; the class's number if None.
    """

    code: ClassVar[int] = UNKNOWN

    @overload
    def __init__(self, message: str, /) -> None: ...
    @overload
    def __init__(self, node_def: Any, op: Any, message: str, error_code: int | None = None) -> None: ...
    def __init__(self, node_def: Any, op: Any = None, message: Any = None, error_code: int | None = None) -> None:
        if message is None:
            if op is not None or not isinstance(node_def, str):
                raise TypeError(f"{type(self).__name__}: missing argument message")
            node_def, message = None, node_def
        super().__init__(message)
        self.node_def: Any = node_def
        self.op: Any = op
        self.message: str = message
        self.error_code: int = self.code if error_code is None else error_code

    def __str__(self) -> str:
        if self.op is None:
            return self.message
        return f"{self.message}\n  in operation {self.op.name!r} ({self.op.type})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self),)


class CancelledError(OpError):
    code = CANCELLED
    #: Whether the cancelled operation had changed state before it waited.
    half_done: bool = False


class UnknownError(OpError):
    code = UNKNOWN


class InvalidArgumentError(OpError):
    code = INVALID_ARGUMENT


class DeadlineExceededError(OpError):
    code = DEADLINE_EXCEEDED


class NotFoundError(OpError):
    code = NOT_FOUND


class AlreadyExistsError(OpError):
    code = ALREADY_EXISTS


class PermissionDeniedError(OpError):
    code = PERMISSION_DENIED


class ResourceExhaustedError(OpError):
    code = RESOURCE_EXHAUSTED


class FailedPreconditionError(OpError):
    code = FAILED_PRECONDITION


class AbortedError(OpError):
    code = ABORTED


class OutOfRangeError(OpError):
    code = OUT_OF_RANGE


class UnimplementedError(OpError):
    code = UNIMPLEMENTED


class InternalError(OpError):
    code = INTERNAL


class UnavailableError(OpError):
    code = UNAVAILABLE


class DataLossError(OpError):
    code = DATA_LOSS


class UnauthenticatedError(OpError):
    code = UNAUTHENTICATED


class GaveUpError(UnavailableError):
    """A task could not be reached before the deadline of a wait, so that a retry is pointless."""


_BY_CODE: dict[int, type[OpError]] = {cls.code: cls for cls in OpError.__subclasses__()}


class OperatorNotAllowedInGraphError(TypeError):
    """A Python operator needs the value of a tensor, which has none before a step runs."""


def exception_type_from_error_code(error_code: int) -> type[OpError]:
    """Returns the class of ``error_code``; raises KeyError for an unknown number."""
    return _BY_CODE[error_code]


def error_code_from_exception_type(cls: type[OpError]) -> int:
    """Returns the code of ``cls``; UNKNOWN for `OpError` itself."""
    return cls.code


def make_error(error_code: int, message: str, op: object = None) -> OpError:
    """Returns an error of the class of ``error_code``; `UnknownError` for an unknown number."""
    return _BY_CODE.get(error_code, UnknownError)(None, op, message)


_OF_FUNCTIONS: dict[type[Exception], type[OpError]] = {
    TypeError: InvalidArgumentError,
    ValueError: InvalidArgumentError,
    StopIteration: OutOfRangeError,
    MemoryError: ResourceExhaustedError,
    NotImplementedError: UnimplementedError,
}


def error_of_function(error: Exception) -> OpError:
    """Returns the error that TensorFlow raises for an exception of a program's Python function."""
    kind = next((kind for base, kind in _OF_FUNCTIONS.items() if isinstance(error, base)), UnknownError)
    return kind(f"{type(error).__name__}: {error}")
