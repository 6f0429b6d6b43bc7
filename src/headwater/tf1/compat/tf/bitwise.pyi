# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike

def bitwise_and(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """The bits set in both x and y, element by element."""
def bitwise_or(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """The bits set in x or y, element by element."""
def bitwise_xor(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """The bits set in one of x and y, element by element."""
def invert(x: TensorLike, name: str | None = ...) -> Tensor:
    """All bits flipped of every element."""
def left_shift(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x with its bits shifted left by y, element by element."""
def right_shift(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x with its bits shifted right by y, element by element."""
__all__ = [
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "invert",
    "left_shift",
    "right_shift",
]
