# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.shapes import dimension_at_index as dimension_at_index
from headwater.shapes import dimension_value as dimension_value
from headwater.tf1.compat import tf as v1
from headwater.tf1.compat.text import as_bytes as as_bytes
from headwater.tf1.compat.text import as_str as as_str
from headwater.tf1.compat.text import as_str_any as as_str_any
from headwater.tf1.compat.text import as_text as as_text
from headwater.tf1.compat.text import bytes_or_text_types as bytes_or_text_types
from headwater.tf1.compat.text import complex_types as complex_types
from headwater.tf1.compat.text import forward_compatibility_horizon as forward_compatibility_horizon
from headwater.tf1.compat.text import forward_compatible as forward_compatible
from headwater.tf1.compat.text import integral_types as integral_types
from headwater.tf1.compat.text import path_to_str as path_to_str
from headwater.tf1.compat.text import real_types as real_types

__all__ = [
    "as_bytes",
    "as_str",
    "as_str_any",
    "as_text",
    "bytes_or_text_types",
    "complex_types",
    "dimension_at_index",
    "dimension_value",
    "forward_compatibility_horizon",
    "forward_compatible",
    "integral_types",
    "path_to_str",
    "real_types",
    "v1",
]
