"""Operations that select, crop and draw boxes of images. A box is [top y, left x, bottom y, right x], in [0, 1]."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from headwater.dtypes import float32, int32
from headwater.errors import InvalidArgumentError
from headwater.graph.ops.common import as_ints, constant_int, constant_ints
from headwater.graph.ops.define import host, pure, random
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.lazy_jax import jax, jnp, lax

# Selection -----------------------------------------------------------------------------------------------------------


def _chosen_spec(inference: Inference) -> Sequence[Spec]:
    for spec, rank in zip(inference.inputs, (2, 1, 0), strict=False):
        if spec.dims is not None and len(spec.dims) != rank:
            raise ValueError(f"Shape must be rank {rank} but is rank {len(spec.dims)}")
    boxes, scores = inference.inputs[0].dims, inference.inputs[1].dims
    if boxes is not None and boxes[1] not in (None, 4):
        raise ValueError(f"Dimension must be 4 but is {boxes[1]}")
    if boxes is not None and scores is not None and None not in (boxes[0], scores[0]) and boxes[0] != scores[0]:
        raise ValueError(f"Dimensions must be equal, but are {boxes[0]} and {scores[0]}")
    return [Spec(int32, (None,))]


def _overlap(box: HostArray, others: HostArray) -> HostArray:
    """Returns the intersection over union of a box with others; 0 if a box has no area."""

    def sides(of: HostArray) -> tuple[HostArray, HostArray, HostArray, HostArray]:
        top, bottom = np.minimum(of[..., 0], of[..., 2]), np.maximum(of[..., 0], of[..., 2])
        return top, np.minimum(of[..., 1], of[..., 3]), bottom, np.maximum(of[..., 1], of[..., 3])

    (top, left, bottom, right), (tops, lefts, bottoms, rights) = sides(box), sides(others)
    area, areas = (bottom - top) * (right - left), (bottoms - tops) * (rights - lefts)
    height = np.maximum(np.minimum(bottom, bottoms) - np.maximum(top, tops), 0)
    width = np.maximum(np.minimum(right, rights) - np.maximum(left, lefts), 0)
    shared, there = height * width, (area > 0) & (areas > 0)
    return np.where(there, shared / np.where(there, area + areas - shared, 1), 0)


def _suppressed(
    scores: HostArray, count: int, most: float, least: float, overlap: Callable[[int, HostArray], HostArray]
) -> HostArray:
    """Selects boxes greedily by descending score; skips a box if its overlap with a selected box is above ``most``."""
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] > least]
    kept: list[int] = []
    while order.size and len(kept) < count:
        kept.append(int(order[0]))
        order = order[1:][overlap(kept[-1], order[1:]) <= most]
    return np.array(kept, np.int32)


def _check_share(value: HostArray, name: str) -> float:
    share = float(value)
    if not 0 <= share <= 1:
        raise InvalidArgumentError(f"{name} must be in [0, 1], not {share}")
    return share


@host(
    "NonMaxSuppressionV3",
    infer=_chosen_spec,
    inputs="boxes:T|floating=float32, scores:T, max_output_size:int32, "
    "iou_threshold:T_threshold=float32, score_threshold:T_threshold",
)
def non_max_suppression(
    boxes: HostArray,
    scores: HostArray,
    max_output_size: HostArray,
    iou_threshold: HostArray,
    score_threshold: HostArray,
) -> HostArray:
    """Returns the indices of the boxes with the highest scores that overlap no selected box too much."""
    share = _check_share(iou_threshold, "iou_threshold")
    return _suppressed(
        scores,
        int(max_output_size),
        share,
        float(score_threshold),
        lambda best, others: _overlap(boxes[best], boxes[others]),
    )


def _combined_spec(inference: Inference) -> Sequence[Spec]:
    for spec, rank in zip(inference.inputs, (4, 3, 0, 0, 0, 0), strict=True):
        if spec.dims is not None and len(spec.dims) != rank:
            raise ValueError(f"Shape must be rank {rank} but is rank {len(spec.dims)}")
    boxes, scores = inference.inputs[0].dims, inference.inputs[1].dims
    batch = None if boxes is None else boxes[0]
    each, total = constant_int(inference, 2), constant_int(inference, 3)
    classes = None if scores is None else scores[2]
    if inference.attrs.get("pad_per_class"):
        total = None if None in (each, total, classes) else min(total or 0, (each or 0) * (classes or 0))
    return [Spec(float32, (batch, total, 4)), *[Spec(float32, (batch, total))] * 2, Spec(int32, (batch,))]


@host(
    "CombinedNonMaxSuppression",
    infer=_combined_spec,
    inputs="boxes:float32, scores:float32, max_output_size_per_class:int32, max_total_size:int32, "
    "iou_threshold:float32, score_threshold:float32",
)
def combined_non_max_suppression(
    boxes: HostArray,
    scores: HostArray,
    max_output_size_per_class: HostArray,
    max_total_size: HostArray,
    iou_threshold: HostArray,
    score_threshold: HostArray,
    *,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
) -> tuple[HostArray, ...]:
    """Returns the best boxes of all classes for each image, after suppression per class; padded with zeros."""
    share, least = _check_share(iou_threshold, "iou_threshold"), float(score_threshold)
    each, total, classes = int(max_output_size_per_class), int(max_total_size), scores.shape[2]
    if each <= 0 or total <= 0:
        raise InvalidArgumentError("max_output_size_per_class and max_total_size must be positive")
    if boxes.shape[2] not in (1, classes):
        raise InvalidArgumentError(f"third dimension of boxes must be either 1 or num classes, not {boxes.shape[2]}")
    total = min(total, each * classes) if pad_per_class else total
    batch = len(boxes)
    places, values, kinds = (np.zeros((batch, total, *more), np.float32) for more in ((4,), (), ()))
    valid = np.zeros(batch, np.int32)
    for image in range(batch):
        found: list[tuple[float, int, HostArray]] = []
        for kind in range(classes):
            own = boxes[image, :, kind if boxes.shape[2] > 1 else 0]

            def overlap(best: int, others: HostArray, own: HostArray = own) -> HostArray:
                return _overlap(own[best], own[others])

            chosen = _suppressed(scores[image, :, kind], each, share, least, overlap)
            found += [(float(scores[image, at, kind]), kind, own[at]) for at in chosen]
        best = sorted(found, key=lambda one: -one[0])[:total]
        valid[image] = len(best)
        for place, (score, kind, box) in enumerate(best):
            places[image, place] = np.clip(box, 0, 1) if clip_boxes else box
            values[image, place], kinds[image, place] = score, kind
    return places, values, kinds, valid


@host(
    "NonMaxSuppressionV4",
    infer=lambda inference: [
        Spec(int32, (constant_int(inference, 2) if inference.attrs.get("pad_to_max_output_size") else None,)),
        Spec(int32, ()),
    ],
    inputs="boxes:T|floating=float32, scores:T, max_output_size:int32, "
    "iou_threshold:T_threshold=float32, score_threshold:T_threshold",
)
def non_max_suppression_padded(
    boxes: HostArray,
    scores: HostArray,
    max_output_size: HostArray,
    iou_threshold: HostArray,
    score_threshold: HostArray,
    *,
    pad_to_max_output_size: bool = False,
) -> Sequence[HostArray]:
    """Like `non_max_suppression`, optionally padded with zeros to the maximum number, and the number of boxes."""
    found = non_max_suppression(boxes, scores, max_output_size, iou_threshold, score_threshold)
    room = int(max_output_size) - len(found) if pad_to_max_output_size else 0
    return np.pad(found, (0, room)), np.array(len(found), np.int32)


@host(
    "NonMaxSuppressionV5",
    infer=lambda inference: [
        *_chosen_spec(inference),
        Spec(inference.inputs[0].dtype.base_dtype, (None,)),
        Spec(int32, ()),
    ],
    inputs="boxes:T|floating=float32, scores:T, max_output_size:int32, iou_threshold:T, score_threshold:T, "
    "soft_nms_sigma:T",
)
def soft_non_max_suppression(
    boxes: HostArray,
    scores: HostArray,
    max_output_size: HostArray,
    iou_threshold: HostArray,
    score_threshold: HostArray,
    soft_nms_sigma: HostArray,
    *,
    pad_to_max_output_size: bool = False,
) -> Sequence[HostArray]:
    """Like `non_max_suppression`, but overlaps multiply a score by exp(-overlap² / (2 sigma)); also returns the scores.

    Bodla et al., Soft-NMS, 2017. With ``soft_nms_sigma`` 0, no score is lowered.
    """
    share, least, sigma = _check_share(iou_threshold, "iou_threshold"), float(score_threshold), float(soft_nms_sigma)
    if sigma < 0:
        raise InvalidArgumentError(f"soft_nms_sigma must not be negative, not {sigma}")
    current = scores.astype(np.float64)
    kept: list[int] = []
    values: list[float] = []
    while len(kept) < int(max_output_size) and current.size:
        best = int(np.argmax(current))
        if not current[best] > least:
            break
        kept.append(best)
        values.append(float(current[best]))
        overlaps = _overlap(boxes[best], boxes)
        lowered = current * np.exp(-(overlaps**2) / (2 * sigma)) if sigma else current
        current = np.where(overlaps <= share, lowered, -np.inf)
        current[kept] = -np.inf
    room = int(max_output_size) - len(kept) if pad_to_max_output_size else 0
    padded = np.pad(np.array(values, boxes.dtype), (0, room))
    return np.pad(np.array(kept, np.int32), (0, room)), padded, np.array(len(kept), np.int32)


def _square_spec(inference: Inference) -> Sequence[Spec]:
    overlaps, scores = inference.inputs[0].dims, inference.inputs[1].dims
    if overlaps is not None and len(overlaps) != 2:
        raise ValueError(f"Shape must be rank 2 but is rank {len(overlaps)}")
    if len({*(overlaps or ()), *(scores or ())} - {None}) > 1:
        raise ValueError(f"overlaps must be a square matrix for all scores, not of shape {overlaps}")
    return [Spec(int32, (None,))]


@host(
    "NonMaxSuppressionWithOverlaps",
    infer=_square_spec,
    inputs="overlaps:float32, scores:float32, max_output_size:int32, overlap_threshold:float32, "
    "score_threshold:float32",
)
def non_max_suppression_overlaps(
    overlaps: HostArray,
    scores: HostArray,
    max_output_size: HostArray,
    overlap_threshold: HostArray,
    score_threshold: HostArray,
) -> HostArray:
    """Like `non_max_suppression`, with a matrix of pairwise overlaps."""
    if overlaps.ndim != 2 or overlaps.shape != (len(scores),) * 2:
        raise InvalidArgumentError(
            f"overlaps must be a square matrix for {len(scores)} scores, not of shape {overlaps.shape}"
        )
    return _suppressed(
        scores,
        int(max_output_size),
        float(overlap_threshold),
        float(score_threshold),
        lambda best, others: overlaps[others, best],
    )


# Cut out ----------------------------------------------------------------------------------------------------------


def _crops_spec(inference: Inference) -> Sequence[Spec]:
    for spec, rank in zip(inference.inputs, (4, 2, 1, 1), strict=True):
        if spec.dims is not None and len(spec.dims) != rank:
            raise ValueError(f"Shape must be rank {rank} but is rank {len(spec.dims)}")
    image, boxes, places = (spec.dims for spec in inference.inputs[:3])
    if boxes is not None and boxes[1] not in (None, 4):
        raise ValueError(f"Dimension must be 4 but is {boxes[1]}")
    counts = {dims[0] for dims in (boxes, places) if dims is not None} - {None}
    if len(counts) > 1:
        raise ValueError(f"Dimensions must be equal, but are {sorted(filter(None, counts))}")
    size = constant_ints(inference, 3) or (None, None)
    if len(size) != 2:
        raise ValueError(f"Dimension must be 2 but is {len(size)}")
    return [Spec(float32, (next(iter(counts), None), *size, None if image is None else image[3]))]


@pure(
    "CropAndResize",
    infer=_crops_spec,
    static=(3,),
    inputs="image:T|real, boxes:float32, box_ind:int32, crop_size:int32",
)
def crop_and_resize(
    image: jax.Array,
    boxes: jax.Array,
    box_ind: jax.Array,
    crop_size: HostArray,
    *,
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
) -> jax.Array:
    """Crops each box from image ``box_ind``, resized to ``crop_size``; float32.

    Points outside of the image, or in a missing image, get ``extrapolation_value``.
    """
    image = jnp.asarray(image).astype(np.float32)
    _, height, width, _ = image.shape
    rows, columns = as_ints(crop_size)
    if min(rows, columns) < 1:
        raise ValueError("crop dimensions must be positive")

    def along(low: jax.Array, high: jax.Array, size: int, count: int) -> jax.Array:
        if count > 1:
            step = (high - low) * ((size - 1) / (count - 1))
            return low[:, None] * (size - 1) + jnp.arange(count, dtype=np.float32) * step[:, None]
        return (0.5 * (low + high) * (size - 1))[:, None]

    y = along(boxes[:, 0], boxes[:, 2], height, rows)[:, :, None]
    x = along(boxes[:, 1], boxes[:, 3], width, columns)[:, None, :]
    there = ((box_ind >= 0) & (box_ind < image.shape[0]))[:, None, None]
    inside = (y >= 0) & (y <= height - 1) & (x >= 0) & (x <= width - 1) & there
    picture = jnp.clip(box_ind, 0, image.shape[0] - 1)[:, None, None]

    def at(row: jax.Array, column: jax.Array) -> jax.Array:
        row = jnp.clip(row, 0, height - 1).astype(np.int32)
        return image[picture, row, jnp.clip(column, 0, width - 1).astype(np.int32)]

    if method == "nearest":
        result = at(jnp.sign(y) * jnp.floor(abs(y) + 0.5), jnp.sign(x) * jnp.floor(abs(x) + 0.5))
    else:
        top, left = jnp.floor(y), jnp.floor(x)
        down, right = (y - top)[..., None], (x - left)[..., None]
        upper = at(top, left) + (at(top, jnp.ceil(x)) - at(top, left)) * right
        lower = at(jnp.ceil(y), left) + (at(jnp.ceil(y), jnp.ceil(x)) - at(jnp.ceil(y), left)) * right
        result = upper + (lower - upper) * down
    return jnp.where(inside[..., None], result, np.float32(extrapolation_value))


# Drawn ------------------------------------------------------------------------------------------------------------

_COLOURS = np.array(
    [
        [1, 1, 0, 1],
        [0, 0, 1, 1],
        [1, 0, 0, 1],
        [0, 1, 0, 1],
        [0.5, 0, 0.5, 1],
        [0.5, 0.5, 0, 1],
        [0.5, 0, 0, 1],
        [0, 0, 0.5, 1],
        [0, 1, 1, 1],
        [1, 0, 1, 1],
    ],
    np.float32,
)
"""Red, green, blue and opacity of the first box, the second …; then the first again."""


def _like_images(inference: Inference) -> Sequence[Spec]:
    images, boxes = inference.inputs[0], inference.inputs[1].dims
    for dims, rank in ((images.dims, 4), (boxes, 3)):
        if dims is not None and len(dims) != rank:
            raise ValueError(f"Shape must be rank {rank} but is rank {len(dims)}")
    if images.dims is not None and images.dims[3] not in (1, 3, 4, None):
        raise ValueError(f"Channel depth should be 1, 3 or 4, not {images.dims[3]}")
    return [Spec(images.dtype.base_dtype, images.dims)]


def _drawn(images: HostArray, boxes: HostArray, colours: HostArray) -> HostArray:
    result = images.copy()
    _, height, width, channels = images.shape
    if channels not in (1, 3, 4):
        raise InvalidArgumentError(f"Channel depth should be 1, 3 or 4, not {channels}")
    palette = colours if len(colours) else _COLOURS
    if channels == 1 and not len(colours):
        palette = np.ones_like(_COLOURS)
    for image, own in zip(result, boxes, strict=True):
        for number, box in enumerate(own):
            colour = palette[number % len(palette), :channels].astype(images.dtype)
            top, left, bottom, right = (
                int(edge * (size - 1)) for edge, size in zip(box.tolist(), (height, width) * 2, strict=True)
            )
            if top > bottom or left > right or top >= height or bottom < 0 or left >= width or right < 0:
                continue
            rows = slice(max(top, 0), min(bottom, height - 1) + 1)
            columns = slice(max(left, 0), min(right, width - 1) + 1)
            for row in (top, bottom):
                if 0 <= row < height:
                    image[row, columns] = colour
            for column in (left, right):
                if 0 <= column < width:
                    image[rows, column] = colour
    return result


@host("DrawBoundingBoxesV2", infer=_like_images, inputs="images:T|floating=float32, boxes:float32, colors:float32")
def draw_bounding_boxes(images: HostArray, boxes: HostArray, colors: HostArray) -> HostArray:
    """The images with the outlines of boxes, in the colours of the rows of ``colors`` in turn."""
    return _drawn(images, boxes, colors)


@host("DrawBoundingBoxes", infer=_like_images, inputs="images:T|floating=float32, boxes:float32")
def draw_bounding_boxes_in_own_colours(images: HostArray, boxes: HostArray) -> HostArray:
    """Like `draw_bounding_boxes`, with other colours."""
    return _drawn(images, boxes, np.zeros((0, 4), np.float32))


# Drawn at random --------------------------------------------------------------------------------------------------


def _sample_spec(inference: Inference) -> Sequence[Spec]:
    sizes, boxes = inference.inputs[0], inference.inputs[1].dims
    if boxes is not None and len(boxes) != 3:
        raise ValueError(f"Shape must be rank 3 but is rank {len(boxes)}")
    own = sizes.dtype.base_dtype
    return [Spec(own, (3,)), Spec(own, (3,)), Spec(float32, (1, 1, 4))]


@random(
    "SampleDistortedBoundingBoxV2",
    infer=_sample_spec,
    static=(),
    inputs="image_size:T|integer, bounding_boxes:float32, min_object_covered:float32",
)
def sample_distorted_bounding_box(
    key: jax.Array,
    image_size: jax.Array,
    bounding_boxes: jax.Array,
    min_object_covered: jax.Array,
    *,
    aspect_ratio_range: Sequence[float] = (0.75, 1.33),
    area_range: Sequence[float] = (0.05, 1.0),
    max_attempts: int = 100,
    use_image_if_no_bounding_boxes: bool = False,
    seed: int = 0,
    seed2: int = 0,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Draws a random part of an image; returns its start and size for a slice, and its box.

    The part's aspect ratio and its share of the image are within the given ranges, and it covers at least
    ``min_object_covered`` of one of the boxes. After ``max_attempts`` failures the whole image is returned.
    """
    del seed, seed2
    boxes = jnp.reshape(bounding_boxes, (-1, 4))
    if boxes.shape[0] == 0:
        if not use_image_if_no_bounding_boxes:
            raise InvalidArgumentError(
                "No bounding boxes provided; use_image_if_no_bounding_boxes=True takes the whole image"
            )
        boxes = jnp.array([[0.0, 0.0, 1.0, 1.0]], np.float32)
    sizes = jnp.asarray(image_size)
    height, width = sizes[0].astype(np.float32), sizes[1].astype(np.float32)
    area = height * width

    def attempt(state: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        turn, _, _ = state
        ratio, tall, above, beside = jax.random.uniform(jax.random.fold_in(key, turn), (4,), np.float32)
        proportion = aspect_ratio_range[0] + ratio * (aspect_ratio_range[1] - aspect_ratio_range[0])
        least = jnp.round(jnp.sqrt(area_range[0] * area / proportion))
        most = jnp.round(jnp.sqrt(area_range[1] * area / proportion))
        most = jnp.where(jnp.round(most * proportion) > width, jnp.floor((width + 0.5 - 1e-7) / proportion), most)
        most = jnp.minimum(most, height)
        least = jnp.minimum(least, most)
        rows = least + jnp.floor(tall * (most - least + 1))
        columns = jnp.round(rows * proportion)
        share = rows * columns
        fits = (columns <= width) & (rows <= height) & (rows > 0) & (columns > 0)
        fits &= (share >= area_range[0] * area) & (share <= area_range[1] * area)
        top, left = jnp.floor(above * (height - rows + 1)), jnp.floor(beside * (width - columns + 1))
        part = jnp.stack([top, left, top + rows, left + columns])
        scale = jnp.stack([height, width, height, width])
        edges = jnp.round(boxes * scale)
        low, high = jnp.maximum(edges[:, :2], part[:2]), jnp.minimum(edges[:, 2:], part[2:])
        shared = jnp.prod(jnp.maximum(high - low, 0), -1)
        whole = jnp.prod(edges[:, 2:] - edges[:, :2], -1)
        covered = jnp.any((whole > 0) & (shared >= min_object_covered * whole))
        return turn + 1, fits & covered, part

    none = (jnp.asarray(0), jnp.asarray(False), jnp.stack([jnp.zeros_like(height)] * 2 + [height, width]))
    _, found, part = lax.while_loop(lambda state: (state[0] < max_attempts) & ~state[1], attempt, none)
    part = jnp.where(found, part, none[2])
    own = sizes.dtype
    begin = jnp.concatenate([part[:2].astype(own), jnp.zeros(1, own)])
    size = jnp.concatenate([(part[2:] - part[:2]).astype(own), jnp.full(1, -1, own)])
    return begin, size, (part / jnp.stack([height, width, height, width])).astype(np.float32)[None, None]
