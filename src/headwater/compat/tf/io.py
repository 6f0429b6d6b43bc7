"""``tf.io``: files, records, and what is in them."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.input.readers": "matching_files read_file write_file",
    "headwater.input.parsing": """
        FixedLenFeature FixedLenSequenceFeature SparseFeature VarLenFeature decode_compressed decode_csv parse_example
        parse_single_example parse_tensor serialize_tensor""",
    "headwater.functional.image_files": """
        decode_and_crop_jpeg decode_bmp decode_gif decode_image decode_jpeg decode_png encode_jpeg encode_png
        extract_jpeg_shape is_jpeg""",
    "headwater.input.queues": "PaddingFIFOQueue PriorityQueue QueueBase RandomShuffleQueue",
    "headwater.functional.strings": "decode_base64 decode_raw encode_base64",
    "headwater.io.tfrecord": "TFRecordCompressionType TFRecordOptions TFRecordWriter tf_record_iterator",
    "headwater.training.input_producers": "match_filenames_once",
    "headwater.training.training_util": "write_graph",
}

_MODULES = {"gfile": "headwater.compat.gfile"}

__getattr__, __dir__ = namespace(__name__, _NAMES, _MODULES)
