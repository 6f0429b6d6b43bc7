# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.data.experimental import batch_and_drop_remainder as batch_and_drop_remainder
from headwater.data.experimental import choose_from_datasets as choose_from_datasets
from headwater.data.experimental import copy_to_device as copy_to_device
from headwater.data.experimental import dense_to_sparse_batch as dense_to_sparse_batch
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
from headwater.data.experimental import unique as unique
from headwater.data.prefetch import AUTOTUNE as AUTOTUNE
from headwater.tf1.input.dataset import counter as Counter
from headwater.tf1.input.dataset import get_single_element as get_single_element
from headwater.tf1.input.dataset_groups import Reducer as Reducer
from headwater.tf1.input.dataset_groups import bucket_by_sequence_length as bucket_by_sequence_length
from headwater.tf1.input.dataset_groups import group_by_reducer as group_by_reducer
from headwater.tf1.input.dataset_groups import group_by_window as group_by_window
from headwater.tf1.input.dataset_groups import rejection_resample as rejection_resample
from headwater.tf1.input.file_datasets import CsvDataset as CsvDataset
from headwater.tf1.input.file_datasets import RandomDataset as RandomDataset
from headwater.tf1.input.file_datasets import SqlDataset as SqlDataset
from headwater.tf1.input.file_datasets import TFRecordWriter as TFRecordWriter
from headwater.tf1.input.file_datasets import make_batched_features_dataset as make_batched_features_dataset
from headwater.tf1.input.file_datasets import make_csv_dataset as make_csv_dataset
from headwater.tf1.input.file_datasets import parse_example_dataset as parse_example_dataset
from headwater.tf1.input.iterators import Iterator as Iterator
from headwater.tf1.input.iterators import make_saveable_from_iterator as make_saveable_from_iterator
from headwater.tf1.input.old_dataset import Dataset as Dataset
from headwater.tf1.input.old_dataset import FixedLengthRecordDataset as FixedLengthRecordDataset
from headwater.tf1.input.old_dataset import TFRecordDataset as TFRecordDataset
from headwater.tf1.input.old_dataset import TextLineDataset as TextLineDataset
from headwater.tf1.input.optionals import Optional as Optional
from headwater.tf1.input.optionals import get_next_as_optional as get_next_as_optional

__all__ = [
    "AUTOTUNE",
    "Counter",
    "CsvDataset",
    "Dataset",
    "FixedLengthRecordDataset",
    "Iterator",
    "Optional",
    "RandomDataset",
    "Reducer",
    "SqlDataset",
    "TFRecordDataset",
    "TFRecordWriter",
    "TextLineDataset",
    "batch_and_drop_remainder",
    "bucket_by_sequence_length",
    "choose_from_datasets",
    "copy_to_device",
    "dense_to_sparse_batch",
    "enumerate_dataset",
    "get_next_as_optional",
    "get_single_element",
    "group_by_reducer",
    "group_by_window",
    "ignore_errors",
    "make_batched_features_dataset",
    "make_csv_dataset",
    "make_saveable_from_iterator",
    "map_and_batch",
    "padded_batch_and_drop_remainder",
    "parallel_interleave",
    "parse_example_dataset",
    "prefetch_to_device",
    "rejection_resample",
    "sample_from_datasets",
    "scan",
    "shuffle_and_repeat",
    "sloppy_interleave",
    "unbatch",
    "unique",
]
