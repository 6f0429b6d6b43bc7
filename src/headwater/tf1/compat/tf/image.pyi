# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.functional.boxes import combined_non_max_suppression as combined_non_max_suppression
from headwater.tf1.functional.boxes import crop_and_resize as crop_and_resize
from headwater.tf1.functional.boxes import draw_bounding_boxes as draw_bounding_boxes
from headwater.tf1.functional.boxes import non_max_suppression as non_max_suppression
from headwater.tf1.functional.boxes import non_max_suppression_overlaps as non_max_suppression_overlaps
from headwater.tf1.functional.boxes import non_max_suppression_padded as non_max_suppression_padded
from headwater.tf1.functional.boxes import non_max_suppression_with_scores as non_max_suppression_with_scores
from headwater.tf1.functional.boxes import sample_distorted_bounding_box as sample_distorted_bounding_box
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
from headwater.tf1.functional.image_quality import adjust_gamma as adjust_gamma
from headwater.tf1.functional.image_quality import image_gradients as image_gradients
from headwater.tf1.functional.image_quality import psnr as psnr
from headwater.tf1.functional.image_quality import resize_image_with_pad as resize_image_with_pad
from headwater.tf1.functional.image_quality import rgb_to_yiq as rgb_to_yiq
from headwater.tf1.functional.image_quality import rgb_to_yuv as rgb_to_yuv
from headwater.tf1.functional.image_quality import sobel_edges as sobel_edges
from headwater.tf1.functional.image_quality import ssim as ssim
from headwater.tf1.functional.image_quality import ssim_multiscale as ssim_multiscale
from headwater.tf1.functional.image_quality import total_variation as total_variation
from headwater.tf1.functional.image_quality import yiq_to_rgb as yiq_to_rgb
from headwater.tf1.functional.image_quality import yuv_to_rgb as yuv_to_rgb
from headwater.tf1.functional.images import adjust_brightness as adjust_brightness
from headwater.tf1.functional.images import adjust_contrast as adjust_contrast
from headwater.tf1.functional.images import adjust_hue as adjust_hue
from headwater.tf1.functional.images import adjust_saturation as adjust_saturation
from headwater.tf1.functional.images import central_crop as central_crop
from headwater.tf1.functional.images import convert_image_dtype as convert_image_dtype
from headwater.tf1.functional.images import crop_to_bounding_box as crop_to_bounding_box
from headwater.tf1.functional.images import flip_left_right as flip_left_right
from headwater.tf1.functional.images import flip_up_down as flip_up_down
from headwater.tf1.functional.images import grayscale_to_rgb as grayscale_to_rgb
from headwater.tf1.functional.images import hsv_to_rgb as hsv_to_rgb
from headwater.tf1.functional.images import pad_to_bounding_box as pad_to_bounding_box
from headwater.tf1.functional.images import per_image_standardization as per_image_standardization
from headwater.tf1.functional.images import per_image_standardization as per_image_whitening
from headwater.tf1.functional.images import random_brightness as random_brightness
from headwater.tf1.functional.images import random_contrast as random_contrast
from headwater.tf1.functional.images import random_flip_left_right as random_flip_left_right
from headwater.tf1.functional.images import random_flip_up_down as random_flip_up_down
from headwater.tf1.functional.images import random_hue as random_hue
from headwater.tf1.functional.images import random_saturation as random_saturation
from headwater.tf1.functional.images import resize_image_with_crop_or_pad as resize_image_with_crop_or_pad
from headwater.tf1.functional.images import resize_image_with_crop_or_pad as resize_with_crop_or_pad
from headwater.tf1.functional.images import rgb_to_grayscale as rgb_to_grayscale
from headwater.tf1.functional.images import rgb_to_hsv as rgb_to_hsv
from headwater.tf1.functional.images import rot90 as rot90
from headwater.tf1.functional.images import transpose_image as transpose
from headwater.tf1.functional.images import transpose_image as transpose_image
from headwater.tf1.functional.random import random_crop as random_crop
from headwater.tf1.functional.resizing import ResizeMethod as ResizeMethod
from headwater.tf1.functional.resizing import resize_area as resize_area
from headwater.tf1.functional.resizing import resize_bicubic as resize_bicubic
from headwater.tf1.functional.resizing import resize_bilinear as resize_bilinear
from headwater.tf1.functional.resizing import resize_images as resize
from headwater.tf1.functional.resizing import resize_images as resize_images
from headwater.tf1.functional.resizing import resize_nearest_neighbor as resize_nearest_neighbor
from headwater.tf1.functional.small_functions import adjust_jpeg_quality as adjust_jpeg_quality
from headwater.tf1.functional.small_functions import extract_glimpse as extract_glimpse
from headwater.tf1.functional.small_functions import random_jpeg_quality as random_jpeg_quality
from headwater.tf1.functional.space_to_batch import extract_image_patches as extract_image_patches
from headwater.tf1.functional.space_to_batch import extract_patches as extract_patches

__all__ = [
    "ResizeMethod",
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_jpeg_quality",
    "adjust_saturation",
    "central_crop",
    "combined_non_max_suppression",
    "convert_image_dtype",
    "crop_and_resize",
    "crop_to_bounding_box",
    "decode_and_crop_jpeg",
    "decode_bmp",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "draw_bounding_boxes",
    "encode_jpeg",
    "encode_png",
    "extract_glimpse",
    "extract_image_patches",
    "extract_jpeg_shape",
    "extract_patches",
    "flip_left_right",
    "flip_up_down",
    "grayscale_to_rgb",
    "hsv_to_rgb",
    "image_gradients",
    "is_jpeg",
    "non_max_suppression",
    "non_max_suppression_overlaps",
    "non_max_suppression_padded",
    "non_max_suppression_with_scores",
    "pad_to_bounding_box",
    "per_image_standardization",
    "per_image_whitening",
    "psnr",
    "random_brightness",
    "random_contrast",
    "random_crop",
    "random_flip_left_right",
    "random_flip_up_down",
    "random_hue",
    "random_jpeg_quality",
    "random_saturation",
    "resize",
    "resize_area",
    "resize_bicubic",
    "resize_bilinear",
    "resize_image_with_crop_or_pad",
    "resize_image_with_pad",
    "resize_images",
    "resize_nearest_neighbor",
    "resize_with_crop_or_pad",
    "rgb_to_grayscale",
    "rgb_to_hsv",
    "rgb_to_yiq",
    "rgb_to_yuv",
    "rot90",
    "sample_distorted_bounding_box",
    "sobel_edges",
    "ssim",
    "ssim_multiscale",
    "total_variation",
    "transpose",
    "transpose_image",
    "yiq_to_rgb",
    "yuv_to_rgb",
]
