"""Short functions composed of others: windows, crossed features, means of losses, JPEG artefacts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from headwater import dtypes
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import Ints, TensorLike
from headwater.tf1.functional import arrays, higher_order, image_files, images, math, nest, reductions, space_to_batch
from headwater.tf1.functional.apply import apply, one
from headwater.tf1.functional.ragged_tensor import RaggedTensor, as_ragged_or_tensor
from headwater.tf1.functional.random import random_uniform
from headwater.tf1.functional.sparse import SparseTensor

if TYPE_CHECKING:
    from headwater.graph.types import Structure


_HASH_KEY = 0xDECAFCAFFE


def vectorized_map(fn: Callable[[Tensor], Tensor], elems: TensorLike) -> Structure:
    """Applies ``fn`` to every slice of ``elems`` along the first dimension, and stacks the results.

    Args:
      fn: a function of a slice, or of a structure of slices like ``elems``; returns a tensor or a structure.
      elems: a tensor, or a structure of tensors with equal first dimensions.
    """
    with name_scope(None, "vectorized_map"):
        # Call fn once more, to learn the types of its results.
        first = fn(nest.map_structure(_first_slice, elems))
        kinds = nest.map_structure(_type_of, first)
        return higher_order.map_fn(fn, elems, dtype=kinds)


def _first_slice(value: Tensor) -> Tensor:
    return convert_to_tensor(value)[0]


def _type_of(value: TensorLike) -> dtypes.DType:
    return convert_to_tensor(value).dtype


def extract_volume_patches(
    input: TensorLike, ksizes: Sequence[int], strides: Sequence[int], padding: str, name: str | None = None
) -> Tensor:
    """The window around every place of volumes, flattened into the channels.

    Args:
      input: (batch, planes, rows, columns, channels).
      ksizes: the window, [1, planes, rows, columns, 1].
      strides: the distance between windows, [1, planes, rows, columns, 1].
      padding: ``SAME`` or ``VALID``.

    Raises:
      ValueError: ``padding`` is unknown, or windows extend over examples or channels.
    """
    if padding not in ("SAME", "VALID"):
        raise ValueError(f"padding must be SAME or VALID, not {padding!r}")
    for what, sizes in (("ksizes", ksizes), ("strides", strides)):
        if len(sizes) != 5 or sizes[0] != 1 or sizes[-1] != 1:
            raise ValueError(f"{what} must be five numbers of which the first and the last are 1, not {list(sizes)}")
    with name_scope(name, "ExtractVolumePatches", [input]):
        volumes = convert_to_tensor(input, name="input")
        dims = volumes.shape.with_rank(5).as_list()
        window, steps = list(ksizes)[1:4], list(strides)[1:4]
        counts: list[int] = []
        edges: list[list[int]] = []
        for size, width, step in zip(dims[1:4], window, steps, strict=True):
            if size is None:
                raise ValueError("the sizes of volumes must be known")
            count = -(-size // step) if padding == "SAME" else (size - width) // step + 1
            missing = max(0, (count - 1) * step + width - size) if padding == "SAME" else 0
            counts.append(count)
            edges.append([missing // 2, missing - missing // 2])
        padded = arrays.pad(volumes, [[0, 0], *edges, [0, 0]])
        parts: list[Tensor] = []
        for begin in itertools.product(*map(range, window)):
            cut = [slice(at, at + (n - 1) * step + 1, step) for at, n, step in zip(begin, counts, steps, strict=True)]
            parts.append(padded[(slice(None), *cut, slice(None))])
        return arrays.concat(parts, 4)


def sparse_cross(inputs: Sequence[TensorLike | SparseTensor], name: str | None = None) -> SparseTensor:
    """Returns, for each row, all combinations of one value of every input, as text.

    Args:
      inputs: matrices, sparse or not, of text or integers.
    """
    return _crossed(inputs, False, 0, _HASH_KEY, name)


def sparse_cross_hashed(
    inputs: Sequence[TensorLike | SparseTensor],
    num_buckets: int = 0,
    hash_key: int | None = None,
    name: str | None = None,
) -> SparseTensor:
    """Returns, for each row, the fingerprints of all combinations of one value of every input.

    Args:
      inputs: matrices, sparse or not, of text or integers.
      num_buckets: exclusive upper bound of the fingerprints; any int64 when 0.
      hash_key: initial value of the fingerprints.
    """
    return _crossed(inputs, True, num_buckets, _HASH_KEY if hash_key is None else hash_key, name)


def ragged_cross(inputs: Sequence[TensorLike], name: str | None = None) -> RaggedTensor:
    """`sparse_cross` of matrices that may also be ragged; the rows of the result are ragged."""
    with name_scope(name, "RaggedCross", list(inputs)):
        return _ragged_rows(sparse_cross(_as_sparse(inputs)))


def ragged_cross_hashed(
    inputs: Sequence[TensorLike], num_buckets: int = 0, hash_key: int | None = None, name: str | None = None
) -> RaggedTensor:
    """`sparse_cross_hashed` of matrices that may also be ragged; the rows of the result are ragged."""
    with name_scope(name, "RaggedCross", list(inputs)):
        return _ragged_rows(sparse_cross_hashed(_as_sparse(inputs), num_buckets, hash_key))


def _as_sparse(inputs: Sequence[TensorLike]) -> list[SparseTensor]:
    """Converts matrices to sparse ones, because sparse and other inputs of an operation do not keep their order."""
    if not isinstance(inputs, list):
        raise TypeError("Inputs must be a list")
    made: list[SparseTensor] = []
    for number, given in enumerate(cast("list[Any]", inputs)):
        part: Any = given if isinstance(given, SparseTensor) else as_ragged_or_tensor(given)
        if part.dtype.base_dtype != dtypes.string and not part.dtype.is_integer:
            raise ValueError(f"Unexpected dtype for inputs[{number}]: {part.dtype}")
        if part.shape.ndims not in (None, 2):
            raise ValueError("tf.ragged.cross only supports inputs with rank=2")
        if isinstance(part, Tensor):
            part = RaggedTensor.from_tensor(part)
        made.append(part.to_sparse() if isinstance(part, RaggedTensor) else part)
    return made


def _ragged_rows(crossed: SparseTensor) -> RaggedTensor:
    return RaggedTensor.from_value_rowids(crossed.values, crossed.indices[:, 0], crossed.dense_shape[0])


def _crossed(inputs: object, hashed: bool, buckets: int, key: int, name: str | None) -> SparseTensor:
    if not isinstance(inputs, list):
        raise TypeError("Inputs must be a list")
    listed = cast("list[Any]", inputs)
    sparse = [_whole(part) for part in listed if isinstance(part, SparseTensor)]
    dense = [_integers(convert_to_tensor(part)) for part in listed if not isinstance(part, SparseTensor)]
    attrs = {
        "N": len(sparse),
        "hashed_output": hashed,
        "num_buckets": buckets,
        "hash_key": key,
        "out_type": dtypes.int64 if hashed else dtypes.string,
        "internal_type": dtypes.string,
        "sparse_types": tuple(part.dtype for part in sparse),
        "dense_types": tuple(part.dtype for part in dense),
    }
    parts = [p.indices for p in sparse] + [p.values for p in sparse] + [p.dense_shape for p in sparse] + dense
    outputs = get_default_graph().create_op("SparseCross", parts, attrs, name or "SparseCross").outputs
    return SparseTensor(outputs[0], outputs[1], outputs[2])


def _whole(sparse: SparseTensor) -> SparseTensor:
    return sparse.with_values(_integers(sparse.values))


def _integers(tensor: Tensor) -> Tensor:
    return tensor if tensor.dtype.base_dtype == dtypes.string else math.cast(tensor, dtypes.int64)


def adjust_jpeg_quality(image: TensorLike, jpeg_quality: TensorLike, name: str | None = None) -> Tensor:
    """Encodes an image as JPEG and decodes it, to reproduce compression artefacts.

    Args:
      image: (height, width, 1 or 3), uint8 or numbers from 0 to 1.
      jpeg_quality: from 0 to 100, a Python number.
    """
    with name_scope(name, "adjust_jpeg_quality", [image]):
        image = convert_to_tensor(image, name="image")
        kind = image.dtype
        pixels = images.convert_image_dtype(image, dtypes.uint8, saturate=True)
        written = one("EncodeJpegVariableQuality", pixels, math.cast(jpeg_quality, dtypes.int32))
        read = image_files.decode_jpeg(written, channels=image.shape.as_list()[2] or 0)
        read.set_shape(image.shape)
        return images.convert_image_dtype(read, kind, saturate=True)


def random_jpeg_quality(
    image: TensorLike, min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None
) -> Tensor:
    """`adjust_jpeg_quality` with a quality that each run draws.

    Raises:
      ValueError: the bounds are not from 0 to 100, or the first is not the smaller one.
    """
    if min_jpeg_quality < 0 or max_jpeg_quality < 0 or min_jpeg_quality > 100 or max_jpeg_quality > 100:
        raise ValueError("jpeg encoding range must be between 0 and 100.")
    if min_jpeg_quality >= max_jpeg_quality:
        raise ValueError("`min_jpeg_quality` must be less than `max_jpeg_quality`.")
    quality = random_uniform([], min_jpeg_quality, max_jpeg_quality, dtypes.int32, seed=seed)
    return adjust_jpeg_quality(image, quality)


def decode_json_example(json_examples: TensorLike, name: str | None = None) -> Tensor:
    """Converts ``Example`` messages from JSON to their serialised form."""
    return one("DecodeJSONExample", json_examples, name=name)


def ctc_unique_labels(labels: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Returns the distinct labels of each row, in order of appearance, and the index of each label among them.

    Args:
      labels: (batch, length), integers.

    Returns:
      Both of the shape of ``labels``; rows of distinct labels are filled up with 0.
    """
    with name_scope(name, "ctc_unique_labels", [labels]):
        labels = convert_to_tensor(labels, name="labels")
        distinct, places = apply("CTCUniqueLabels", labels).outputs
        return distinct, places


def compute_average_loss(
    per_example_loss: TensorLike, sample_weight: TensorLike | None = None, global_batch_size: TensorLike | None = None
) -> Tensor:
    """Returns the sum of examples' losses divided by the number of examples.

    Args:
      per_example_loss: one for each example.
      sample_weight: factors of the losses.
      global_batch_size: the number of examples of all replicas; the number of losses if None.
    """
    with name_scope(None, "compute_average_loss"):
        losses = convert_to_tensor(per_example_loss)
        kind = losses.dtype
        if sample_weight is not None:
            weights = math.cast(convert_to_tensor(sample_weight), kind)
            missing = (losses.shape.ndims or 0) - (weights.shape.ndims or 0)
            for _ in range(max(0, missing)):
                weights = arrays.expand_dims(weights, -1)
            losses = losses * weights
        count = arrays.shape(losses)[0] if global_batch_size is None else global_batch_size
        return reductions.reduce_sum(losses) / math.cast(count, kind)


def scale_regularization_loss(regularization_loss: object) -> Tensor:
    """Returns the sum of losses. A graph has one replica, so the sum is not divided by a number of replicas."""
    with name_scope(None, "scale_regularization_loss"):
        return reductions.reduce_sum(regularization_loss)


def with_space_to_batch(
    input: TensorLike,
    dilation_rate: Ints,
    padding: str,
    op: Callable[..., Structure],
    filter_shape: object = None,
    spatial_dims: Sequence[int] | None = None,
    data_format: str | None = None,
) -> Tensor:
    """Applies ``op`` to every ``dilation_rate``-th element, by moving blocks of space to the batch and back.

    Args:
      input: a tensor of known rank.
      dilation_rate: for each spatial dimension, Python numbers.
      padding: ``SAME`` or ``VALID``.
      op: takes the changed input, the number of spatial dimensions and "VALID", and returns a tensor.
      filter_shape: sizes of the window, for ``SAME``.
      spatial_dims: indices of the spatial dimensions, ascending; the dimensions after the first if None.
      data_format: "NC..." if channels are first.

    Raises:
      ValueError: arguments are invalid or do not match.
    """
    value = convert_to_tensor(input, name="input")
    rates = np.asarray(dilation_rate)
    if rates.ndim != 1 or (rates < 1).any():
        raise ValueError("rate must be rank 1" if rates.ndim != 1 else "dilation_rate must be positive")
    first = 2 if data_format is not None and data_format.startswith("NC") else 1
    places = list(range(first, first + len(rates))) if spatial_dims is None else sorted(set(spatial_dims))
    if any(place < 1 for place in places):
        raise ValueError("spatial_dims must be a montonically increasing sequence of positive integers")
    rank = value.shape.ndims
    if rank is None or rank < places[-1] + 1:
        raise ValueError(f"input tensor must have rank {places[-1] + 1} at least")
    if (rates == 1).all():
        return op(value, len(rates), padding)
    if padding not in ("SAME", "VALID"):
        raise ValueError(f"Invalid padding method {padding!r}")
    edges = np.zeros((len(rates), 2), np.int64)
    if padding == "SAME":
        if filter_shape is None:
            raise ValueError("filter_shape must be specified for SAME padding")
        sizes = np.asarray(filter_shape)[: len(rates)]
        whole = sizes + (sizes - 1) * (rates - 1) - 1
        edges = np.stack([whole // 2, whole - whole // 2], 1)
    # All dimensions from the first to the last spatial one take part; those in between with a rate of 1.
    every = range(1, places[-1] + 1)
    all_rates = [int(rates[places.index(place)]) if place in places else 1 for place in every]
    paddings: list[list[Any]] = []
    crops: list[list[Any]] = []
    dims = value.shape.as_list()
    for place, rate in zip(every, all_rates, strict=True):
        size = dims[place]
        if size is None:
            raise ValueError("the sizes of spatial dimensions must be known")
        before, after = edges[places.index(place)].tolist() if place in places else (0, 0)
        more = -(size + before + after) % rate
        paddings.append([before, after + more])
        crops.append([0, more])
    changed = space_to_batch.space_to_batch_nd(value, all_rates, paddings)
    return space_to_batch.batch_to_space_nd(op(changed, len(rates), "VALID"), all_rates, crops)


def extract_glimpse(
    input: TensorLike,
    size: TensorLike,
    offsets: TensorLike,
    centered: bool = True,
    normalized: bool = True,
    uniform_noise: bool = True,
    name: str | None = None,
) -> Tensor:
    """Extracts a window of each image; pixels outside the image are noise.

    Args:
      input: (batch, height, width, channels), float32.
      size: height and width of windows.
      offsets: (batch, 2): the windows' centres, rows first.
      centered: offsets count from the image's centre; else from its upper left corner.
      normalized: offsets are fractions of the image's size: of half its size if ``centered``.
      uniform_noise: noise from 0 to 1; else with the mean and deviation of a normal distribution.
    """
    attrs = {"centered": centered, "normalized": normalized, "uniform_noise": uniform_noise}
    return one("ExtractGlimpse", input, size, offsets, name=name, **attrs)


def _pooled(
    op_type: str, value: TensorLike, ratios: Sequence[float], name: str | None, **attrs: object
) -> tuple[Tensor, Tensor, Tensor]:
    if len(ratios) != 4 or ratios[0] != 1 or ratios[3] != 1 or min(ratios) < 1:
        raise ValueError(f"pooling_ratio must be four numbers of 1 or more, the first and last 1, not {list(ratios)}")
    found = apply(op_type, value, pooling_ratio=tuple(map(float, ratios)), name=name, **attrs).outputs
    return found[0], found[1], found[2]


def fractional_max_pool(
    value: TensorLike,
    pooling_ratio: Sequence[float],
    pseudo_random: bool = False,
    overlapping: bool = False,
    deterministic: bool = False,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The largest values of windows of different sizes, so that images become smaller by any ratio.

    Args:
      value: (batch, height, width, channels).
      pooling_ratio: [1, rows, columns, 1]: how much smaller, at least 1.
      pseudo_random: derive the windows' sizes from one random number; else draw them in random order.
      overlapping: windows share their edges.
      deterministic: use the same windows, which the seeds determine, in each run.
      seed, seed2: seeds of the windows.

    Returns:
      The values, and where windows begin in rows and in columns.
    """
    attrs = {"pseudo_random": pseudo_random, "overlapping": overlapping, "deterministic": deterministic}
    return _pooled("FractionalMaxPool", value, pooling_ratio, name, seed=seed, seed2=seed2, **attrs)


def fractional_avg_pool(
    value: TensorLike,
    pooling_ratio: Sequence[float],
    pseudo_random: bool = False,
    overlapping: bool = False,
    deterministic: bool = False,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Like `fractional_max_pool`, but with means."""
    attrs = {"pseudo_random": pseudo_random, "overlapping": overlapping, "deterministic": deterministic}
    return _pooled("FractionalAvgPool", value, pooling_ratio, name, seed=seed, seed2=seed2, **attrs)
