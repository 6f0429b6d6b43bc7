# Written by tools/stubs.py from headwater.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.compat.tf.data import experimental as experimental
from headwater.data.node import INFINITE as INFINITE_CARDINALITY
from headwater.data.node import UNKNOWN as UNKNOWN_CARDINALITY
from headwater.data.options import Options as Options
from headwater.data.prefetch import AUTOTUNE as AUTOTUNE
from headwater.input.dataset import Dataset as Dataset
from headwater.input.dataset import FixedLengthRecordDataset as FixedLengthRecordDataset
from headwater.input.dataset import TFRecordDataset as TFRecordDataset
from headwater.input.dataset import TextLineDataset as TextLineDataset
from headwater.input.dataset import get_output_classes as get_output_classes
from headwater.input.dataset import get_output_shapes as get_output_shapes
from headwater.input.dataset import get_output_types as get_output_types
from headwater.input.dataset import make_initializable_iterator as make_initializable_iterator
from headwater.input.dataset import make_one_shot_iterator as make_one_shot_iterator
from headwater.input.iterators import Iterator as Iterator
from headwater.input.specs import DatasetSpec as DatasetSpec

__all__ = [
    "AUTOTUNE",
    "Dataset",
    "DatasetSpec",
    "FixedLengthRecordDataset",
    "INFINITE_CARDINALITY",
    "Iterator",
    "Options",
    "TFRecordDataset",
    "TextLineDataset",
    "UNKNOWN_CARDINALITY",
    "experimental",
    "get_output_classes",
    "get_output_shapes",
    "get_output_types",
    "make_initializable_iterator",
    "make_one_shot_iterator",
]
