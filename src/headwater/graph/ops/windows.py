"""Host operations: windows of images, distinct labels, JPEG encoding with a given quality, examples from JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from google.protobuf import json_format

from headwater.data.io.example import Example
from headwater.dtypes import int64, string
from headwater.errors import InvalidArgumentError
from headwater.graph.ops.define import fixed, host
from headwater.graph.ops.image_files import encode_jpeg
from headwater.graph.registry import HostArray, Inference, Spec


def _glimpses(inference: Inference) -> Sequence[Spec]:
    dims = inference.inputs[0].dims or (None,) * 4
    many = (inference.inputs[2].dims or (None, 2))[0]
    if None not in (many, dims[0]) and many != dims[0]:
        raise ValueError(f"offsets must be one pair for each of {dims[0]} images, not {many}")
    size = inference.constant(1)
    height, width = (None, None) if size is None else (int(size[0]), int(size[1]))
    return [Spec(inference.inputs[0].dtype, (dims[0], height, width, dims[3]))]


@host("ExtractGlimpse", inputs="input:float32, size:int32, offsets:float32", infer=_glimpses)
def extract_glimpse(
    input: HostArray,
    size: HostArray,
    offsets: HostArray,
    *,
    centered: bool = True,
    normalized: bool = True,
    uniform_noise: bool = True,
) -> HostArray:
    """Returns a window of each image; parts outside of the image are filled with noise."""
    batch, rows, columns, channels = input.shape
    height, width = int(size[0]), int(size[1])
    draw = np.random.default_rng()
    shape = (batch, height, width, channels)
    found = draw.random(shape) if uniform_noise else draw.normal(size=shape)
    found = found.astype(input.dtype)
    for index, (y, x) in enumerate(offsets.astype(np.float64)):
        if normalized:
            y, x = y * rows, x * columns
        if centered:
            y, x = y / 2.0 + rows / 2.0, x / 2.0 + columns / 2.0
        top, left = int(y - height / 2.0), int(x - width / 2.0)
        inside_y = slice(max(0, top), min(rows, top + height))
        inside_x = slice(max(0, left), min(columns, left + width))
        if inside_y.start < inside_y.stop and inside_x.start < inside_x.stop:
            part = input[index, inside_y, inside_x]
            found[index, inside_y.start - top : inside_y.stop - top, inside_x.start - left : inside_x.stop - left] = (
                part
            )
    return found


def _same_twice(inference: Inference) -> Sequence[Spec]:
    return [inference.inputs[0], Spec(int64, inference.inputs[0].dims)]


@host("CTCUniqueLabels", inputs="labels:T|index", infer=_same_twice)
def unique_labels(labels: HostArray) -> tuple[HostArray, HostArray]:
    """Returns the distinct labels of each row, and the index of each label among them."""
    distinct, places = np.zeros_like(labels), np.zeros(labels.shape, np.int64)
    for index, row in enumerate(labels):
        found, first, inverse = np.unique(row, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.argsort(order)
        distinct[index, : len(found)] = found[order]
        places[index] = rank[inverse]
    return distinct, places


@host("EncodeJpegVariableQuality", inputs="images:uint8, quality:int32", infer=fixed(string, ()))
def encode_with_quality(images: HostArray, quality: HostArray) -> HostArray:
    """Encodes an image as JPEG with a quality from 0 to 100."""
    if not 0 <= int(quality) <= 100:
        raise InvalidArgumentError(f"quality must be in [0,100], got {int(quality)}")
    return encode_jpeg(images, quality=int(quality))


@host("DecodeJSONExample", inputs="json_examples:string", infer=lambda inference: [inference.inputs[0]])
def decode_json_example(json_examples: HostArray) -> HostArray:
    """Converts JSON to ``Example`` messages."""
    found = np.empty(json_examples.shape, object)
    for index, text in np.ndenumerate(json_examples):
        try:
            found[index] = json_format.Parse(bytes(text), Example()).SerializeToString(deterministic=True)
        except json_format.ParseError as error:
            raise InvalidArgumentError(f"Error while parsing JSON: {error}") from None
    return found


def boundaries(size: int, ratio: float, pseudo: bool, draw: Any) -> HostArray:
    """Divides ``size`` into windows by ``ratio``; returns the starts of the windows and the end of the last window.

    Source: Graham, *Fractional Max-Pooling*, 2014.
    """
    count = int(size / ratio)
    if count * ratio == size and float(ratio).is_integer():
        return np.arange(count + 1, dtype=np.int64) * int(ratio)
    alpha = size / count
    low = int(alpha)
    if pseudo:
        # The first boundary is 0, the last is the size, and there are only two different sizes of windows.
        shift = draw.random() * ((low + 2) / alpha - 1 if count == 1 else 1 / alpha)
        places = np.ceil(alpha * (np.arange(count + 1) + shift)).astype(np.int64)
        places = places - places[0]
        places[-1] = size
        return np.minimum(places, size)
    larger = size - low * count
    widths = np.array([low + 1] * larger + [low] * (count - larger), np.int64)
    draw.shuffle(widths)
    return np.concatenate([[0], np.cumsum(widths)])


def _pooled(inference: Inference) -> Sequence[Spec]:
    dims = inference.inputs[0].dims or (None,) * 4
    ratios = inference.attrs["pooling_ratio"]
    sizes = [None if dim is None else int(dim / ratio) for dim, ratio in zip(dims, ratios, strict=True)]
    more = [Spec(int64, (None if size is None else size + 1,)) for size in sizes[1:3]]
    return [Spec(inference.inputs[0].dtype, tuple(sizes)), *more]


def _define(op_type: str, pool: Any) -> None:
    @host(op_type, inputs="value:T|numeric", infer=_pooled)
    def pooled(  # pyright: ignore[reportUnusedFunction]
        value: HostArray,
        *,
        pooling_ratio: Sequence[float],
        pseudo_random: bool = False,
        overlapping: bool = False,
        deterministic: bool = False,
        seed: int = 0,
        seed2: int = 0,
    ) -> tuple[HostArray, HostArray, HostArray]:
        draw = np.random.default_rng([seed, seed2] if deterministic or seed or seed2 else None)
        rows, columns = (boundaries(value.shape[axis], pooling_ratio[axis], pseudo_random, draw) for axis in (1, 2))
        blocks = [
            [value[:, top : bottom + overlapping, left : right + overlapping] for left, right in _pairs(columns)]
            for top, bottom in _pairs(rows)
        ]
        values = np.stack([np.stack([pool(block) for block in row], 1) for row in blocks], 1)
        return values.astype(value.dtype), rows, columns


def _pairs(places: HostArray) -> list[tuple[int, int]]:
    return list(zip(places[:-1].tolist(), places[1:].tolist(), strict=True))


_define("FractionalMaxPool", lambda block: block.max((1, 2)))
_define("FractionalAvgPool", lambda block: block.mean((1, 2)))
