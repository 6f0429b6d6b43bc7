# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.functional.audio import decode_wav as decode_wav
from headwater.tf1.functional.audio import encode_wav as encode_wav

__all__ = [
    "decode_wav",
    "encode_wav",
]
