# Written by tools/stubs.py from headwater.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.functional.image_files import decode_and_crop_jpeg as decode_and_crop_jpeg
from headwater.functional.image_files import decode_bmp as decode_bmp
from headwater.functional.image_files import decode_gif as decode_gif
from headwater.functional.image_files import decode_image as decode_image
from headwater.functional.image_files import decode_jpeg as decode_jpeg
from headwater.functional.image_files import decode_png as decode_png
from headwater.functional.image_files import encode_jpeg as encode_jpeg
from headwater.functional.image_files import encode_png as encode_png
from headwater.functional.image_files import extract_jpeg_shape as extract_jpeg_shape
from headwater.functional.image_files import is_jpeg as is_jpeg
from headwater.functional.images import adjust_brightness as adjust_brightness
from headwater.functional.images import adjust_contrast as adjust_contrast
from headwater.functional.images import adjust_hue as adjust_hue
from headwater.functional.images import adjust_saturation as adjust_saturation
from headwater.functional.images import central_crop as central_crop
from headwater.functional.images import convert_image_dtype as convert_image_dtype
from headwater.functional.images import crop_to_bounding_box as crop_to_bounding_box
from headwater.functional.images import flip_left_right as flip_left_right
from headwater.functional.images import flip_up_down as flip_up_down
from headwater.functional.images import grayscale_to_rgb as grayscale_to_rgb
from headwater.functional.images import hsv_to_rgb as hsv_to_rgb
from headwater.functional.images import pad_to_bounding_box as pad_to_bounding_box
from headwater.functional.images import per_image_standardization as per_image_standardization
from headwater.functional.images import per_image_standardization as per_image_whitening
from headwater.functional.images import random_brightness as random_brightness
from headwater.functional.images import random_contrast as random_contrast
from headwater.functional.images import random_flip_left_right as random_flip_left_right
from headwater.functional.images import random_flip_up_down as random_flip_up_down
from headwater.functional.images import random_hue as random_hue
from headwater.functional.images import random_saturation as random_saturation
from headwater.functional.images import resize_image_with_crop_or_pad as resize_image_with_crop_or_pad
from headwater.functional.images import resize_image_with_crop_or_pad as resize_with_crop_or_pad
from headwater.functional.images import rgb_to_grayscale as rgb_to_grayscale
from headwater.functional.images import rgb_to_hsv as rgb_to_hsv
from headwater.functional.images import rot90 as rot90
from headwater.functional.images import transpose_image as transpose
from headwater.functional.images import transpose_image as transpose_image
from headwater.functional.resizing import ResizeMethod as ResizeMethod
from headwater.functional.resizing import resize_area as resize_area
from headwater.functional.resizing import resize_bicubic as resize_bicubic
from headwater.functional.resizing import resize_bilinear as resize_bilinear
from headwater.functional.resizing import resize_images as resize
from headwater.functional.resizing import resize_images as resize_images
from headwater.functional.resizing import resize_nearest_neighbor as resize_nearest_neighbor

__all__ = [
    "ResizeMethod",
    "adjust_brightness",
    "adjust_contrast",
    "adjust_hue",
    "adjust_saturation",
    "central_crop",
    "convert_image_dtype",
    "crop_to_bounding_box",
    "decode_and_crop_jpeg",
    "decode_bmp",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "encode_jpeg",
    "encode_png",
    "extract_jpeg_shape",
    "flip_left_right",
    "flip_up_down",
    "grayscale_to_rgb",
    "hsv_to_rgb",
    "is_jpeg",
    "pad_to_bounding_box",
    "per_image_standardization",
    "per_image_whitening",
    "random_brightness",
    "random_contrast",
    "random_flip_left_right",
    "random_flip_up_down",
    "random_hue",
    "random_saturation",
    "resize",
    "resize_area",
    "resize_bicubic",
    "resize_bilinear",
    "resize_image_with_crop_or_pad",
    "resize_images",
    "resize_nearest_neighbor",
    "resize_with_crop_or_pad",
    "rgb_to_grayscale",
    "rgb_to_hsv",
    "rot90",
    "transpose",
    "transpose_image",
]
