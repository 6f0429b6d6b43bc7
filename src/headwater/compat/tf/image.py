"""``tf.image``: images and their formats."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.functional.images": """
        adjust_brightness adjust_contrast adjust_hue adjust_saturation central_crop convert_image_dtype
        crop_to_bounding_box flip_left_right flip_up_down grayscale_to_rgb hsv_to_rgb pad_to_bounding_box
        per_image_standardization per_image_whitening=per_image_standardization random_brightness random_contrast
        random_flip_left_right random_flip_up_down random_hue random_saturation resize_image_with_crop_or_pad
        resize_with_crop_or_pad=resize_image_with_crop_or_pad rgb_to_grayscale rgb_to_hsv rot90
        transpose=transpose_image transpose_image""",
    "headwater.functional.resizing": """
        ResizeMethod resize=resize_images resize_area resize_bicubic resize_bilinear resize_images
        resize_nearest_neighbor""",
    "headwater.functional.image_files": """
        decode_and_crop_jpeg decode_bmp decode_gif decode_image decode_jpeg decode_png encode_jpeg encode_png
        extract_jpeg_shape is_jpeg""",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
