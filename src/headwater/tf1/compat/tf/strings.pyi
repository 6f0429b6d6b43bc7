# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional.ragged_parts import string_split_v2 as split
from headwater.tf1.functional.strings import as_string as as_string
from headwater.tf1.functional.strings import format as format
from headwater.tf1.functional.strings import reduce_join as reduce_join
from headwater.tf1.functional.strings import regex_full_match as regex_full_match
from headwater.tf1.functional.strings import regex_replace as regex_replace
from headwater.tf1.functional.strings import string_join as join
from headwater.tf1.functional.strings import string_length as length
from headwater.tf1.functional.strings import string_lower as lower
from headwater.tf1.functional.strings import string_to_number as to_number
from headwater.tf1.functional.strings import string_upper as upper
from headwater.tf1.functional.strings import substr as substr
from headwater.tf1.functional.strings import unsorted_segment_join as unsorted_segment_join
from headwater.tf1.functional.tables import string_to_hash_bucket as to_hash_bucket
from headwater.tf1.functional.tables import string_to_hash_bucket_fast as to_hash_bucket_fast
from headwater.tf1.functional.tables import string_to_hash_bucket_strong as to_hash_bucket_strong
from headwater.tf1.functional.unicode import ngrams as ngrams
from headwater.tf1.functional.unicode import string_bytes_split as bytes_split
from headwater.tf1.functional.unicode import unicode_decode as unicode_decode
from headwater.tf1.functional.unicode import unicode_decode_with_offsets as unicode_decode_with_offsets
from headwater.tf1.functional.unicode import unicode_encode as unicode_encode
from headwater.tf1.functional.unicode import unicode_script as unicode_script
from headwater.tf1.functional.unicode import unicode_split as unicode_split
from headwater.tf1.functional.unicode import unicode_split_with_offsets as unicode_split_with_offsets
from headwater.tf1.functional.unicode import unicode_transcode as unicode_transcode

def strip(input: TensorLike, name: str | None = ...) -> Tensor:
    """Without blanks at both ends."""
__all__ = [
    "as_string",
    "bytes_split",
    "format",
    "join",
    "length",
    "lower",
    "ngrams",
    "reduce_join",
    "regex_full_match",
    "regex_replace",
    "split",
    "strip",
    "substr",
    "to_hash_bucket",
    "to_hash_bucket_fast",
    "to_hash_bucket_strong",
    "to_number",
    "unicode_decode",
    "unicode_decode_with_offsets",
    "unicode_encode",
    "unicode_script",
    "unicode_split",
    "unicode_split_with_offsets",
    "unicode_transcode",
    "unsorted_segment_join",
    "upper",
]
