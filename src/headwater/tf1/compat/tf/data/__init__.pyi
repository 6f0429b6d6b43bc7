# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.data.node import INFINITE as INFINITE_CARDINALITY
from headwater.data.node import UNKNOWN as UNKNOWN_CARDINALITY
from headwater.data.options import Options as Options
from headwater.data.prefetch import AUTOTUNE as AUTOTUNE
from headwater.tf1.compat.tf.data import experimental as experimental
from headwater.tf1.input.dataset import Dataset as Dataset
from headwater.tf1.input.dataset import FixedLengthRecordDataset as FixedLengthRecordDataset
from headwater.tf1.input.dataset import TFRecordDataset as TFRecordDataset
from headwater.tf1.input.dataset import TextLineDataset as TextLineDataset
from headwater.tf1.input.dataset import get_output_classes as get_output_classes
from headwater.tf1.input.dataset import get_output_shapes as get_output_shapes
from headwater.tf1.input.dataset import get_output_types as get_output_types
from headwater.tf1.input.dataset import make_initializable_iterator as make_initializable_iterator
from headwater.tf1.input.dataset import make_one_shot_iterator as make_one_shot_iterator
from headwater.tf1.input.iterators import Iterator as Iterator
from headwater.tf1.input.specs import DatasetSpec as DatasetSpec

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
