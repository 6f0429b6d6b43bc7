# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.data.experimental import batch_and_drop_remainder as batch_and_drop_remainder
from headwater.data.experimental import choose_from_datasets as choose_from_datasets
from headwater.data.experimental import enumerate_dataset as enumerate_dataset
from headwater.data.experimental import ignore_errors as ignore_errors
from headwater.data.experimental import map_and_batch as map_and_batch
from headwater.data.experimental import padded_batch_and_drop_remainder as padded_batch_and_drop_remainder
from headwater.data.experimental import parallel_interleave as parallel_interleave
from headwater.data.experimental import parallel_interleave as sloppy_interleave
from headwater.data.experimental import prefetch_to_device as prefetch_to_device
from headwater.data.experimental import sample_from_datasets as sample_from_datasets
from headwater.data.experimental import scan as scan
from headwater.data.experimental import shuffle_and_repeat as shuffle_and_repeat
from headwater.data.experimental import unbatch as unbatch
from headwater.data.prefetch import AUTOTUNE as AUTOTUNE
from headwater.tf1.input.dataset import get_single_element as get_single_element
from headwater.tf1.input.dataset_groups import bucket_by_sequence_length as bucket_by_sequence_length
from headwater.tf1.input.dataset_groups import group_by_window as group_by_window
from headwater.tf1.input.iterators import Iterator as Iterator
from headwater.tf1.input.old_dataset import Dataset as Dataset
from headwater.tf1.input.old_dataset import FixedLengthRecordDataset as FixedLengthRecordDataset
from headwater.tf1.input.old_dataset import TFRecordDataset as TFRecordDataset
from headwater.tf1.input.old_dataset import TextLineDataset as TextLineDataset

__all__ = [
    "AUTOTUNE",
    "Dataset",
    "FixedLengthRecordDataset",
    "Iterator",
    "TFRecordDataset",
    "TextLineDataset",
    "batch_and_drop_remainder",
    "bucket_by_sequence_length",
    "choose_from_datasets",
    "enumerate_dataset",
    "get_single_element",
    "group_by_window",
    "ignore_errors",
    "map_and_batch",
    "padded_batch_and_drop_remainder",
    "parallel_interleave",
    "prefetch_to_device",
    "sample_from_datasets",
    "scan",
    "shuffle_and_repeat",
    "sloppy_interleave",
    "unbatch",
]
