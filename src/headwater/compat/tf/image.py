"""``tf.image``: images and their formats."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.build.image_files": """
        decode_and_crop_jpeg decode_bmp decode_gif decode_image decode_jpeg decode_png encode_jpeg encode_png
        extract_jpeg_shape is_jpeg""",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
