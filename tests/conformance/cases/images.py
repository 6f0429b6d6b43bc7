"""Images turned, cut, filled up, resized, brightened."""

import numpy as np

_numbers = np.random.RandomState(2)
IMAGE = _numbers.rand(5, 4, 3).astype(np.float32)
BATCH = _numbers.rand(2, 4, 6, 3).astype(np.float32)
BYTES = _numbers.randint(0, 255, (4, 5, 3)).astype(np.uint8)

CALLS = [
    "I.flip_left_right(x)",
    "I.flip_left_right(b)",
    "I.flip_up_down(x)",
    "I.transpose_image(x)",
    "I.rot90(x)",
    "I.rot90(b, 3)",
    "I.crop_to_bounding_box(x, 1, 0, 3, 2)",
    "I.crop_to_bounding_box(b, 1, 2, 2, 3)",
    "I.pad_to_bounding_box(x, 1, 2, 8, 7)",
    "I.resize_image_with_crop_or_pad(x, 3, 3)",
    "I.resize_image_with_crop_or_pad(x, 8, 7)",
    "I.resize_image_with_crop_or_pad(x, 2, 9)",
    "I.resize_image_with_crop_or_pad(b, 5, 3)",
    "I.resize_image_with_crop_or_pad(u, 3, 7)",
    "I.central_crop(x, .5)",
    "I.resize_bilinear(b, [3, 5])",
    "I.resize_bilinear(b, [8, 9])",
    "I.resize_bilinear(b, [8, 9], align_corners=True)",
    "I.resize_bilinear(b, [7, 3], half_pixel_centers=True)",
    "I.resize_nearest_neighbor(b, [3, 5])",
    "I.resize_nearest_neighbor(b, [8, 9], align_corners=True)",
    "I.resize_nearest_neighbor(tf.expand_dims(u, 0), [8, 9])",
    "I.resize_images(x, [7, 3])",
    "I.resize_images(u, (3, 3))",
    "I.resize_images(x, [7, 3], method=I.ResizeMethod.NEAREST_NEIGHBOR)",
    "I.resize_images(b, tf.constant([3, 2]))",
    "I.convert_image_dtype(u, tf.float32)",
    "I.convert_image_dtype(x, tf.uint8)",
    "I.convert_image_dtype(u, tf.int32)",
    "I.convert_image_dtype(x * 2, tf.uint8, saturate=True)",
    "I.adjust_brightness(x, .2)",
    "I.adjust_brightness(u, .1)",
    "I.adjust_contrast(x, 1.5)",
    "I.adjust_contrast(b, .5)",
    "I.adjust_contrast(u, 2.)",
    "I.per_image_standardization(x)",
    "I.per_image_standardization(b)",
    "I.per_image_standardization(u)",
    "I.rgb_to_grayscale(x)",
    "I.rgb_to_grayscale(u)",
    "I.grayscale_to_rgb(x[..., :1])",
    "I.rgb_to_hsv(x)",
    "I.hsv_to_rgb(x)",
    "I.adjust_hue(x, .3)",
    "I.adjust_saturation(x, 1.5)",
    "R.rotate(x, .5)",
    "R.rotate(b, [.3, -1.2])",
    "R.rotate(b, .7, 'BILINEAR')",
    "R.rotate(u, 1.)",
]
ERRORS = [
    "I.flip_left_right(x[0])",
    "I.crop_to_bounding_box(x, 3, 0, 3, 2)",
    "I.pad_to_bounding_box(x, 4, 2, 8, 7)",
    "I.central_crop(x, 2.)",
    "I.random_brightness(x, -1.)",
    "I.random_contrast(x, 2., 1.)",
    "I.resize_image_with_crop_or_pad(x, 0, 3)",
    "R.rotate(x[0, 0], 1.)",
]


def cases(tf):
    found = {"call " + call: lambda tf, call=call: called(tf, call) for call in CALLS}
    found.update({"error " + call: lambda tf, call=call: str(called(tf, call)) for call in ERRORS})
    return found


def digest(value):
    """The shape of an image and three numbers that change with every pixel."""
    flat = np.ravel(value).astype(np.float64)
    places = np.arange(flat.size)
    return [list(value.shape), flat.sum(), flat.dot(np.sin(places)), np.abs(flat).dot(1 + np.cos(places))]


def called(tf, call):
    names = {"x": tf.constant(IMAGE), "b": tf.constant(BATCH), "u": tf.constant(BYTES), "tf": tf}
    result = eval(call, dict(names, I=tf.image, R=tf.contrib.image))
    with tf.Session() as session:
        return [None if "rot90" in call else result.shape.as_list(), result.dtype.name, digest(session.run(result))]
