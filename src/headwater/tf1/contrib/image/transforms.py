"""Projective transformations of images: rotations, translations and their compositions.

A transformation is a row of eight numbers ``a0, a1, a2, b0, b1, b2, c0, c1``. It maps a pixel (x, y) of the result to
the pixel ``((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k)`` of the source, with ``k = c0 x + c1 y + 1``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from headwater import dtypes
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.tf1.functional import arrays, linalg, math
from headwater.tf1.functional.apply import one
from headwater.tf1.functional.factorisations import matrix_inverse
from headwater.tf1.functional.gradients import RegisterGradient

if TYPE_CHECKING:
    from headwater.graph.operation import Operation, Tensor
    from headwater.graph.types import TensorLike

_KINDS: Final = (dtypes.uint8, dtypes.int32, dtypes.int64, dtypes.float16, dtypes.float32, dtypes.float64)


def _matrix(values: TensorLike, what: str, rank: int) -> Tensor:
    """``values`` of rank ``rank`` or one less, which is one row; float32."""
    tensor = convert_to_tensor(values, dtypes.float32, name=what)
    if tensor.shape.ndims is None:
        raise TypeError(f"{what} rank must be statically known")
    if tensor.shape.ndims not in (rank - 1, rank):
        raise TypeError(f"{what.capitalize()} should have rank {rank - 1} or {rank}.")
    return tensor if tensor.shape.ndims == rank else arrays.expand_dims(tensor, 0)


def _table(*columns: Tensor | float) -> Tensor:
    """[rows, columns] of vectors of equal length, and of numbers, which are repeated."""
    like = next(column for column in columns if not isinstance(column, float))
    full = [arrays.ones_like(like) * column if isinstance(column, float) else column for column in columns]
    return arrays.stack(full, axis=1)


def _batched(images: TensorLike) -> tuple[Tensor, int]:
    """Images [batch, height, width, channels], and the rank that they had."""
    tensor = convert_to_tensor(images, name="images")
    if tensor.dtype.base_dtype not in _KINDS:
        raise TypeError(f"Invalid dtype {tensor.dtype}.")
    rank = tensor.shape.ndims
    if rank is None:
        raise TypeError("image_or_images rank must be statically known")
    if rank not in (2, 3, 4):
        raise TypeError("Images should have rank between 2 and 4.")
    if rank == 2:
        return arrays.expand_dims(arrays.expand_dims(tensor, 0), -1), rank
    return (arrays.expand_dims(tensor, 0) if rank == 3 else tensor), rank


def transform(
    images: TensorLike,
    transforms: TensorLike,
    interpolation: str = "NEAREST",
    output_shape: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Applies a transformation to each image; pixels from outside of it are 0.

    The gradient is the inverse transformation of the incoming gradient; the numbers of ``transforms`` have none.

    Args:
      images: [height, width], [height, width, channels] or [batch, height, width, channels].
      transforms: [8], the same for all images, or [batch, 8].
      interpolation: ``NEAREST`` or ``BILINEAR``.
      output_shape: height and width of the result; by default the height and width of the images.

    Raises:
      TypeError: an element type or a rank that is not supported.
      ValueError: ``output_shape`` does not consist of two integers, or an unknown interpolation.
    """
    with name_scope(name, "transform", [images, transforms]):
        batch, rank = _batched(images)
        rows = _matrix(transforms, "transforms", 2)
        if interpolation.upper() not in ("NEAREST", "BILINEAR"):
            raise ValueError(f"Invalid interpolation {interpolation}; it must be NEAREST or BILINEAR")
        size = convert_to_tensor(
            arrays.shape(batch)[1:3] if output_shape is None else output_shape, dtypes.int32, name="output_shape"
        )
        if not size.shape.is_compatible_with([2]):
            raise ValueError("output_shape must be a 1-D Tensor of 2 elements: new_height, new_width")
        result = one("ImageProjectiveTransformV2", batch, rows, size, interpolation=interpolation.upper())
        if rank == 2:
            return arrays.squeeze(result, [0, 3])
        return arrays.squeeze(result, [0]) if rank == 3 else result


@RegisterGradient("ImageProjectiveTransformV2")
def _transform_gradient(op: Operation, grad: Tensor) -> list[Tensor | None]:
    images, transforms, _ = op.inputs
    inverse = matrices_to_flat_transforms(matrix_inverse(flat_transforms_to_matrices(transforms)))
    size = arrays.shape(images)[1:3]
    kind: Any = op.get_attr("interpolation")
    text = kind.decode() if isinstance(kind, bytes) else kind
    return [one("ImageProjectiveTransformV2", grad, inverse, size, interpolation=text), None, None]


def rotate(images: TensorLike, angles: TensorLike, interpolation: str = "NEAREST", name: str | None = None) -> Tensor:
    """Rotates counterclockwise around the centre by angles in radians; see `transform`.

    Args:
      angles: one for all images, or one for each image.
    """
    with name_scope(name, "rotate", [images]):
        batch, _ = _batched(images)
        height, width = arrays.shape(batch)[1], arrays.shape(batch)[2]
        return transform(images, angles_to_projective_transforms(angles, height, width), interpolation)


def translate(
    images: TensorLike, translations: TensorLike, interpolation: str = "NEAREST", name: str | None = None
) -> Tensor:
    """Moves images to the right and down; see `transform`.

    Args:
      translations: [2], distances in pixels in the direction of x and y, or [batch, 2].
    """
    with name_scope(name, "translate", [images]):
        return transform(images, translations_to_projective_transforms(translations), interpolation)


def angles_to_projective_transforms(
    angles: TensorLike, image_height: TensorLike, image_width: TensorLike, name: str | None = None
) -> Tensor:
    """Returns the transformations [images, 8] that rotate images of one size around their centres.

    Args:
      angles: radians, counterclockwise; a scalar or a vector.
    """
    with name_scope(name, "angles_to_projective_transforms", [angles]):
        turned = _matrix(angles, "angles", 1)
        bottom, right = math.to_float(image_height) - 1.0, math.to_float(image_width) - 1.0
        cos, sin = math.cos(turned), math.sin(turned)
        x = (right - (cos * right - sin * bottom)) / 2.0
        y = (bottom - (sin * right + cos * bottom)) / 2.0
        return _table(cos, -sin, x, sin, cos, y, 0.0, 0.0)


def translations_to_projective_transforms(translations: TensorLike, name: str | None = None) -> Tensor:
    """Returns the transformations [images, 8] for distances [2] or [images, 2]; see `translate`."""
    with name_scope(name, "translations_to_projective_transforms", [translations]):
        moved = _matrix(translations, "translations", 2)
        return _table(1.0, 0.0, -moved[:, 0], 0.0, 1.0, -moved[:, 1], 0.0, 0.0)


def flat_transforms_to_matrices(transforms: TensorLike) -> Tensor:
    """Returns the matrices [images, 3, 3] of transformations [8] or [images, 8]."""
    with name_scope(None, "flat_transforms_to_matrices", [transforms]):
        tensor = convert_to_tensor(transforms, dtypes.float32, name="transforms")
        if tensor.shape.ndims not in (1, 2):
            raise ValueError(f"Transforms should be 1D or 2D, got: {tensor}")
        flat = arrays.reshape(tensor, [-1, 8])
        return arrays.reshape(arrays.concat([flat, arrays.ones_like(flat[:, :1])], 1), [-1, 3, 3])


def matrices_to_flat_transforms(transform_matrices: TensorLike) -> Tensor:
    """Returns the transformations [images, 8] of matrices [3, 3] or [images, 3, 3], scaled to a last number of 1."""
    with name_scope(None, "matrices_to_flat_transforms", [transform_matrices]):
        tensor = convert_to_tensor(transform_matrices, dtypes.float32, name="matrices")
        if tensor.shape.ndims not in (2, 3):
            raise ValueError(f"Matrices should be 2D or 3D, got: {tensor}")
        flat = arrays.reshape(tensor, [-1, 9])
        return (flat / flat[:, 8:])[:, :8]


def compose_transforms(*transforms: TensorLike) -> Tensor:
    """Returns one transformation with the effect of several in this order, each [8] or [images, 8]."""
    assert transforms, "transforms cannot be empty"
    with name_scope(None, "compose_transforms", list(transforms)):
        composed = flat_transforms_to_matrices(transforms[0])
        for each in transforms[1:]:
            composed = linalg.matmul(composed, flat_transforms_to_matrices(each))
        return matrices_to_flat_transforms(composed)
