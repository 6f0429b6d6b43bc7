"""Boxes in images (TensorFlow 1.15's ``tf.image``): selection, cropping, drawing.

A box is [y of top, x of left, y of bottom, x of right]; 0 is the first row or column of the image, 1 the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from headwater.dtypes import float32
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional.apply import apply, one
from headwater.tf1.functional.random import seed_attrs
from headwater.tf1.functional.reductions import either

_NO_SCORE = float("-inf")


class CombinedNonMaxSuppression(NamedTuple):
    """Boxes of each image of a batch with scores and classes, best first, and the number of valid boxes."""

    nmsed_boxes: Tensor
    nmsed_scores: Tensor
    nmsed_classes: Tensor
    valid_detections: Tensor


class DistortedBoundingBox(NamedTuple):
    """A random part of an image: begin and size for `tf.slice`, and its box [1, 1, 4]."""

    begin: Tensor
    size: Tensor
    bboxes: Tensor


def _named(**limits: Any) -> list[Tensor]:
    """Converts numbers to tensors with these names."""
    return [convert_to_tensor(value, float32, name=name) for name, value in limits.items()]


def non_max_suppression(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: TensorLike,
    iou_threshold: object = 0.5,
    score_threshold: object = _NO_SCORE,
    name: str | None = None,
) -> Tensor:
    """Returns the indices of the boxes with the highest scores that do not overlap much with a better box, best first.

    Args:
      boxes: [boxes, 4].
      scores: [boxes].
      max_output_size: number of boxes to take at most.
      iou_threshold: the largest overlap allowed, as intersection over union.
      score_threshold: take only boxes with a higher score.
    """
    with name_scope(name, "non_max_suppression"):
        overlap, least = _named(iou_threshold=iou_threshold, score_threshold=score_threshold)
        return one("NonMaxSuppressionV3", boxes, scores, max_output_size, overlap, least)


def combined_non_max_suppression(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size_per_class: TensorLike,
    max_total_size: TensorLike,
    iou_threshold: object = 0.5,
    score_threshold: object = _NO_SCORE,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: str | None = None,
) -> CombinedNonMaxSuppression:
    """Applies `non_max_suppression` to each class of each image, and selects the best boxes of all classes.

    Args:
      boxes: [images, boxes, 1 or classes, 4].
      scores: [images, boxes, classes].
      max_output_size_per_class: how many boxes of a class to take at most.
      max_total_size: how many boxes of an image to take at most.
      iou_threshold: the largest overlap allowed, as intersection over union.
      score_threshold: take only boxes with a higher score.
      pad_per_class: pad with zeros to the largest possible number of boxes of all classes, if it is less than
        ``max_total_size``.
      clip_boxes: clip boxes to [0, 1].
    """
    with name_scope(name, "combined_non_max_suppression"):
        overlap, least = _named(iou_threshold=iou_threshold, score_threshold=score_threshold)
        inputs = (boxes, scores, max_output_size_per_class, max_total_size, overlap, least)
        op = apply("CombinedNonMaxSuppression", *inputs, pad_per_class=pad_per_class, clip_boxes=clip_boxes)
        return CombinedNonMaxSuppression(*op.outputs)


def non_max_suppression_with_scores(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: TensorLike,
    iou_threshold: object = 0.5,
    score_threshold: object = _NO_SCORE,
    soft_nms_sigma: object = 0.0,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Returns the indices of `non_max_suppression`, and the scores.

    Args:
      soft_nms_sigma: if positive, a box multiplies the scores of overlapping boxes by exp(-overlap² / (2 sigma)).
    """
    with name_scope(name, "non_max_suppression_with_scores"):
        limits = _named(iou_threshold=iou_threshold, score_threshold=score_threshold, soft_nms_sigma=soft_nms_sigma)
        op = apply("NonMaxSuppressionV5", boxes, scores, max_output_size, *limits, pad_to_max_output_size=False)
        return op.outputs[0], op.outputs[1]


def non_max_suppression_padded(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: TensorLike,
    iou_threshold: object = 0.5,
    score_threshold: object = _NO_SCORE,
    pad_to_max_output_size: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Like `non_max_suppression`, padded with zeros on request; also returns the number of boxes."""
    with name_scope(name, "non_max_suppression_padded"):
        limits = _named(iou_threshold=iou_threshold, score_threshold=score_threshold)
        op = apply(
            "NonMaxSuppressionV4",
            boxes,
            scores,
            max_output_size,
            *limits,
            pad_to_max_output_size=pad_to_max_output_size,
        )
        return op.outputs[0], op.outputs[1]


def non_max_suppression_overlaps(
    overlaps: TensorLike,
    scores: TensorLike,
    max_output_size: TensorLike,
    overlap_threshold: object = 0.5,
    score_threshold: TensorLike = _NO_SCORE,
    name: str | None = None,
) -> Tensor:
    """Selects boxes as `non_max_suppression`, with a matrix of the overlaps of all pairs."""
    with name_scope(name, "non_max_suppression_overlaps"):
        (most,) = _named(overlap_threshold=overlap_threshold)
        return one("NonMaxSuppressionWithOverlaps", overlaps, scores, max_output_size, most, score_threshold)


def crop_and_resize(
    image: TensorLike,
    boxes: TensorLike,
    box_ind: TensorLike | None = None,
    crop_size: Any = None,
    method: str = "bilinear",
    extrapolation_value: float = 0,
    name: str | None = None,
    box_indices: TensorLike | None = None,
) -> Tensor:
    """Crops a part of an image for each box and resizes it; float32 [boxes, height, width, channels].

    Args:
      image: [batch, height, width, channels].
      boxes: [boxes, 4]; a box with its top below its bottom flips the part.
      box_ind, box_indices: for each box the number of its image.
      crop_size: height and width.
      method: ``bilinear`` or ``nearest``.
      extrapolation_value: value of pixels outside the image.

    Raises:
      ValueError: the method is unknown, or shapes do not match.
    """
    if method not in ("bilinear", "nearest"):
        raise ValueError(f"method must be bilinear or nearest, not {method!r}")
    indices = either(box_indices, box_ind, "box_indices", "box_ind")
    attrs = {"method": method, "extrapolation_value": float(extrapolation_value)}
    return one("CropAndResize", image, boxes, indices, crop_size, name=name, **attrs)


def draw_bounding_boxes(
    images: TensorLike, boxes: TensorLike, name: str | None = None, colors: TensorLike | None = None
) -> Tensor:
    """The images [batch, height, width, channels] with the outlines of boxes [batch, boxes, 4].

    Args:
      colors: [colours, channels], used cyclically for the boxes of an image.
    """
    if colors is None:
        return one("DrawBoundingBoxes", images, boxes, name=name)
    return one("DrawBoundingBoxesV2", images, boxes, colors, name=name)


def sample_distorted_bounding_box(
    image_size: TensorLike,
    bounding_boxes: TensorLike,
    seed: int | None = None,
    seed2: int | None = None,
    min_object_covered: TensorLike = 0.1,
    aspect_ratio_range: Sequence[float] | None = None,
    area_range: Sequence[float] | None = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> DistortedBoundingBox:
    """Returns a random part of an image that covers enough of a box.

    Args:
      image_size: [height, width, channels].
      bounding_boxes: [batch, boxes, 4].
      min_object_covered: the fraction of a box that the part must cover.
      aspect_ratio_range: range of width / height; (0.75, 1.33) if None.
      area_range: range of the part's fraction of the image; (0.05, 1) if None.
      max_attempts: number of attempts before the whole image is returned; 100 if None.
      use_image_if_no_bounding_boxes: without boxes, use the whole image as box; else it is an error.
    """
    seeds: dict[str, Any] = seed_attrs(seed) if not seed2 else {"seed": seed or 0, "seed2": seed2}
    with name_scope(name, "sample_distorted_bounding_box"):
        op = apply(
            "SampleDistortedBoundingBoxV2",
            image_size,
            bounding_boxes,
            min_object_covered,
            aspect_ratio_range=tuple(aspect_ratio_range or (0.75, 1.33)),
            area_range=tuple(area_range or (0.05, 1.0)),
            max_attempts=max_attempts or 100,
            use_image_if_no_bounding_boxes=bool(use_image_if_no_bounding_boxes),
            **seeds,
        )
        return DistortedBoundingBox(*op.outputs)
