# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.functional.arrays import reshape as reshape
from headwater.tf1.functional.arrays import reverse as reverse
from headwater.tf1.functional.arrays import roll as roll
from headwater.tf1.functional.arrays import tile as tile
from headwater.tf1.functional.indexing import gather_nd as gather_nd
from headwater.tf1.functional.indexing import scatter_nd as scatter_nd
from headwater.tf1.functional.space_to_batch import batch_to_space_nd as batch_to_space_nd
from headwater.tf1.functional.space_to_batch import space_to_batch_nd as space_to_batch_nd

__all__ = [
    "batch_to_space_nd",
    "gather_nd",
    "reshape",
    "reverse",
    "roll",
    "scatter_nd",
    "space_to_batch_nd",
    "tile",
]
