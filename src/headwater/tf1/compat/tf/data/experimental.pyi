# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.data.experimental import INFINITE_CARDINALITY as INFINITE_CARDINALITY
from headwater.data.experimental import UNKNOWN_CARDINALITY as UNKNOWN_CARDINALITY
from headwater.data.experimental import choose_from_datasets as choose_from_datasets
from headwater.data.experimental import copy_to_device as copy_to_device
from headwater.data.experimental import dense_to_sparse_batch as dense_to_sparse_batch
from headwater.data.experimental import enumerate_dataset as enumerate_dataset
from headwater.data.experimental import ignore_errors as ignore_errors
from headwater.data.experimental import map_and_batch as map_and_batch
from headwater.data.experimental import map_and_batch as map_and_batch_with_legacy_function
from headwater.data.experimental import parallel_interleave as parallel_interleave
from headwater.data.experimental import prefetch_to_device as prefetch_to_device
from headwater.data.experimental import sample_from_datasets as sample_from_datasets
from headwater.data.experimental import scan as scan
from headwater.data.experimental import shuffle_and_repeat as shuffle_and_repeat
from headwater.data.experimental import take_while as take_while
from headwater.data.experimental import unbatch as unbatch
from headwater.data.experimental import unique as unique
from headwater.data.options import AutoShardPolicy as AutoShardPolicy
from headwater.data.options import DistributeOptions as DistributeOptions
from headwater.data.options import ExternalStatePolicy as ExternalStatePolicy
from headwater.data.options import MapVectorizationOptions as MapVectorizationOptions
from headwater.data.options import OptimizationOptions as OptimizationOptions
from headwater.data.options import ThreadingOptions as ThreadingOptions
from headwater.data.prefetch import AUTOTUNE as AUTOTUNE
from headwater.tf1.input.dataset import cardinality as cardinality
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
from headwater.tf1.input.iterators import make_saveable_from_iterator as make_saveable_from_iterator
from headwater.tf1.input.optionals import Optional as Optional
from headwater.tf1.input.optionals import OptionalSpec as OptionalStructure
from headwater.tf1.input.optionals import from_variant as from_variant
from headwater.tf1.input.optionals import get_next_as_optional as get_next_as_optional
from headwater.tf1.input.optionals import to_variant as to_variant
from headwater.tf1.input.specs import DatasetSpec as DatasetStructure
from headwater.tf1.input.specs import TypeSpec as Structure
from headwater.tf1.input.specs import get_structure as get_structure
from headwater.tf1.input.specs import ragged_tensor_structure as RaggedTensorStructure
from headwater.tf1.input.specs import sparse_tensor_structure as SparseTensorStructure
from headwater.tf1.input.specs import tensor_array_structure as TensorArrayStructure
from headwater.tf1.input.specs import tensor_structure as TensorStructure

__all__ = [
    "AUTOTUNE",
    "AutoShardPolicy",
    "Counter",
    "CsvDataset",
    "DatasetStructure",
    "DistributeOptions",
    "ExternalStatePolicy",
    "INFINITE_CARDINALITY",
    "MapVectorizationOptions",
    "OptimizationOptions",
    "Optional",
    "OptionalStructure",
    "RaggedTensorStructure",
    "RandomDataset",
    "Reducer",
    "SparseTensorStructure",
    "SqlDataset",
    "Structure",
    "TFRecordWriter",
    "TensorArrayStructure",
    "TensorStructure",
    "ThreadingOptions",
    "UNKNOWN_CARDINALITY",
    "bucket_by_sequence_length",
    "cardinality",
    "choose_from_datasets",
    "copy_to_device",
    "dense_to_sparse_batch",
    "enumerate_dataset",
    "from_variant",
    "get_next_as_optional",
    "get_single_element",
    "get_structure",
    "group_by_reducer",
    "group_by_window",
    "ignore_errors",
    "make_batched_features_dataset",
    "make_csv_dataset",
    "make_saveable_from_iterator",
    "map_and_batch",
    "map_and_batch_with_legacy_function",
    "parallel_interleave",
    "parse_example_dataset",
    "prefetch_to_device",
    "rejection_resample",
    "sample_from_datasets",
    "scan",
    "shuffle_and_repeat",
    "take_while",
    "to_variant",
    "unbatch",
    "unique",
]
