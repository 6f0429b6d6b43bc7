"""``tf.errors``: what can go wrong, by code."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.errors": """
        ABORTED ALREADY_EXISTS AbortedError AlreadyExistsError CANCELLED CancelledError DATA_LOSS DEADLINE_EXCEEDED
        DataLossError DeadlineExceededError FAILED_PRECONDITION FailedPreconditionError INTERNAL INVALID_ARGUMENT
        InternalError InvalidArgumentError NOT_FOUND NotFoundError OK OUT_OF_RANGE OpError OutOfRangeError
        OperatorNotAllowedInGraphError PERMISSION_DENIED PermissionDeniedError RESOURCE_EXHAUSTED
        ResourceExhaustedError UNAUTHENTICATED UNAVAILABLE UNIMPLEMENTED UNKNOWN UnauthenticatedError UnavailableError
        UnimplementedError UnknownError error_code_from_exception_type exception_type_from_error_code""",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
