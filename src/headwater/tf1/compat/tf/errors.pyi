# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.errors import ABORTED as ABORTED
from headwater.errors import ALREADY_EXISTS as ALREADY_EXISTS
from headwater.errors import AbortedError as AbortedError
from headwater.errors import AlreadyExistsError as AlreadyExistsError
from headwater.errors import CANCELLED as CANCELLED
from headwater.errors import CancelledError as CancelledError
from headwater.errors import DATA_LOSS as DATA_LOSS
from headwater.errors import DEADLINE_EXCEEDED as DEADLINE_EXCEEDED
from headwater.errors import DataLossError as DataLossError
from headwater.errors import DeadlineExceededError as DeadlineExceededError
from headwater.errors import FAILED_PRECONDITION as FAILED_PRECONDITION
from headwater.errors import FailedPreconditionError as FailedPreconditionError
from headwater.errors import INTERNAL as INTERNAL
from headwater.errors import INVALID_ARGUMENT as INVALID_ARGUMENT
from headwater.errors import InternalError as InternalError
from headwater.errors import InvalidArgumentError as InvalidArgumentError
from headwater.errors import NOT_FOUND as NOT_FOUND
from headwater.errors import NotFoundError as NotFoundError
from headwater.errors import OK as OK
from headwater.errors import OUT_OF_RANGE as OUT_OF_RANGE
from headwater.errors import OpError as OpError
from headwater.errors import OperatorNotAllowedInGraphError as OperatorNotAllowedInGraphError
from headwater.errors import OutOfRangeError as OutOfRangeError
from headwater.errors import PERMISSION_DENIED as PERMISSION_DENIED
from headwater.errors import PermissionDeniedError as PermissionDeniedError
from headwater.errors import RESOURCE_EXHAUSTED as RESOURCE_EXHAUSTED
from headwater.errors import ResourceExhaustedError as ResourceExhaustedError
from headwater.errors import UNAUTHENTICATED as UNAUTHENTICATED
from headwater.errors import UNAVAILABLE as UNAVAILABLE
from headwater.errors import UNIMPLEMENTED as UNIMPLEMENTED
from headwater.errors import UNKNOWN as UNKNOWN
from headwater.errors import UnauthenticatedError as UnauthenticatedError
from headwater.errors import UnavailableError as UnavailableError
from headwater.errors import UnimplementedError as UnimplementedError
from headwater.errors import UnknownError as UnknownError
from headwater.errors import error_code_from_exception_type as error_code_from_exception_type
from headwater.errors import exception_type_from_error_code as exception_type_from_error_code

__all__ = [
    "ABORTED",
    "ALREADY_EXISTS",
    "AbortedError",
    "AlreadyExistsError",
    "CANCELLED",
    "CancelledError",
    "DATA_LOSS",
    "DEADLINE_EXCEEDED",
    "DataLossError",
    "DeadlineExceededError",
    "FAILED_PRECONDITION",
    "FailedPreconditionError",
    "INTERNAL",
    "INVALID_ARGUMENT",
    "InternalError",
    "InvalidArgumentError",
    "NOT_FOUND",
    "NotFoundError",
    "OK",
    "OUT_OF_RANGE",
    "OpError",
    "OperatorNotAllowedInGraphError",
    "OutOfRangeError",
    "PERMISSION_DENIED",
    "PermissionDeniedError",
    "RESOURCE_EXHAUSTED",
    "ResourceExhaustedError",
    "UNAUTHENTICATED",
    "UNAVAILABLE",
    "UNIMPLEMENTED",
    "UNKNOWN",
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
    "UnknownError",
    "error_code_from_exception_type",
    "exception_type_from_error_code",
]
