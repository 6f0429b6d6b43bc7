# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.data.io.tfrecord import TFRecordCompressionType as TFRecordCompressionType
from headwater.data.io.tfrecord import TFRecordOptions as TFRecordOptions
from headwater.data.io.tfrecord import TFRecordWriter as TFRecordWriter
from headwater.data.io.tfrecord import tf_record_iterator as tf_record_iterator
from headwater.tf1.compat import gfile as gfile
from headwater.tf1.functional.image_files import decode_and_crop_jpeg as decode_and_crop_jpeg
from headwater.tf1.functional.image_files import decode_bmp as decode_bmp
from headwater.tf1.functional.image_files import decode_gif as decode_gif
from headwater.tf1.functional.image_files import decode_image as decode_image
from headwater.tf1.functional.image_files import decode_jpeg as decode_jpeg
from headwater.tf1.functional.image_files import decode_png as decode_png
from headwater.tf1.functional.image_files import encode_jpeg as encode_jpeg
from headwater.tf1.functional.image_files import encode_png as encode_png
from headwater.tf1.functional.image_files import extract_jpeg_shape as extract_jpeg_shape
from headwater.tf1.functional.image_files import is_jpeg as is_jpeg
from headwater.tf1.functional.small_functions import decode_json_example as decode_json_example
from headwater.tf1.functional.strings import decode_raw as decode_raw
from headwater.tf1.functional.strings import encode_base64 as encode_base64
from headwater.tf1.input.messages import decode_proto as decode_proto
from headwater.tf1.input.messages import encode_proto as encode_proto
from headwater.tf1.input.parsing import FixedLenFeature as FixedLenFeature
from headwater.tf1.input.parsing import FixedLenSequenceFeature as FixedLenSequenceFeature
from headwater.tf1.input.parsing import SparseFeature as SparseFeature
from headwater.tf1.input.parsing import VarLenFeature as VarLenFeature
from headwater.tf1.input.parsing import decode_compressed as decode_compressed
from headwater.tf1.input.parsing import decode_csv as decode_csv
from headwater.tf1.input.parsing import parse_example as parse_example
from headwater.tf1.input.parsing import parse_single_example as parse_single_example
from headwater.tf1.input.parsing import parse_tensor as parse_tensor
from headwater.tf1.input.parsing import serialize_tensor as serialize_tensor
from headwater.tf1.input.queues import PaddingFIFOQueue as PaddingFIFOQueue
from headwater.tf1.input.queues import PriorityQueue as PriorityQueue
from headwater.tf1.input.queues import QueueBase as QueueBase
from headwater.tf1.input.queues import RandomShuffleQueue as RandomShuffleQueue
from headwater.tf1.input.readers import matching_files as matching_files
from headwater.tf1.input.readers import read_file as read_file
from headwater.tf1.input.readers import write_file as write_file
from headwater.tf1.input.sequences import deserialize_many_sparse as deserialize_many_sparse
from headwater.tf1.input.sequences import parse_sequence_example as parse_sequence_example
from headwater.tf1.input.sequences import parse_single_sequence_example as parse_single_sequence_example
from headwater.tf1.input.sequences import serialize_many_sparse as serialize_many_sparse
from headwater.tf1.input.sequences import serialize_sparse as serialize_sparse
from headwater.tf1.training.input_producers import match_filenames_once as match_filenames_once
from headwater.tf1.training.training_util import write_graph as write_graph

def decode_base64(input: TensorLike, name: str | None = ...) -> Tensor:
    """Decodes web-safe Base64 text."""
__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "PaddingFIFOQueue",
    "PriorityQueue",
    "QueueBase",
    "RandomShuffleQueue",
    "SparseFeature",
    "TFRecordCompressionType",
    "TFRecordOptions",
    "TFRecordWriter",
    "VarLenFeature",
    "decode_and_crop_jpeg",
    "decode_base64",
    "decode_bmp",
    "decode_compressed",
    "decode_csv",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_json_example",
    "decode_png",
    "decode_proto",
    "decode_raw",
    "deserialize_many_sparse",
    "encode_base64",
    "encode_jpeg",
    "encode_png",
    "encode_proto",
    "extract_jpeg_shape",
    "gfile",
    "is_jpeg",
    "match_filenames_once",
    "matching_files",
    "parse_example",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "parse_tensor",
    "read_file",
    "serialize_many_sparse",
    "serialize_sparse",
    "serialize_tensor",
    "tf_record_iterator",
    "write_file",
    "write_graph",
]
