# Written by tools/stubs.py from headwater.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.functional.strings import as_string as as_string
from headwater.functional.strings import format as format
from headwater.functional.strings import reduce_join as reduce_join
from headwater.functional.strings import regex_full_match as regex_full_match
from headwater.functional.strings import regex_replace as regex_replace
from headwater.functional.strings import string_join as join
from headwater.functional.strings import string_length as length
from headwater.functional.strings import string_lower as lower
from headwater.functional.strings import string_split_v2 as split
from headwater.functional.strings import string_strip as strip
from headwater.functional.strings import string_to_number as to_number
from headwater.functional.strings import string_upper as upper
from headwater.functional.strings import substr as substr
from headwater.functional.strings import unsorted_segment_join as unsorted_segment_join
from headwater.functional.tables import string_to_hash_bucket as to_hash_bucket
from headwater.functional.tables import string_to_hash_bucket_fast as to_hash_bucket_fast
from headwater.functional.tables import string_to_hash_bucket_strong as to_hash_bucket_strong

__all__ = [
    "as_string",
    "format",
    "join",
    "length",
    "lower",
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
    "unsorted_segment_join",
    "upper",
]
