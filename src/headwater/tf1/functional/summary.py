"""Summaries for TensorBoard, as tensors of serialized messages."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater import dtypes
from headwater.data.io import summary_protos
from headwater.graph.collections import GraphKeys
from headwater.graph.convert import constant, convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional.apply import one
from headwater.tf1.functional.default_graph import add_to_collections, get_collection

if TYPE_CHECKING:
    from headwater.tensorboard_protos import SummaryMetadata


_ILLEGAL = re.compile(r"[^-/\w\.]")


def clean_name(name: str) -> str:
    """Converts ``name`` to a valid operation name: replaces invalid characters by ``_``, and removes leading
    slashes."""
    return _ILLEGAL.sub("_", name).lstrip("/")


@contextmanager
def _scope(name: str, family: str | None, values: Sequence[TensorLike]) -> Generator[tuple[str, str]]:
    """Yields the tag and the scope of a summary, both prefixed by the family's name, so that it groups the tags."""
    name = clean_name(name)
    family = clean_name(family) if family is not None else None
    with name_scope(f"{family}/{name}" if family else name, None, values) as scope:
        tag = scope.rstrip("/")
        yield (f"{family}/{tag}" if family else tag), scope


def _collect(summary: Tensor, collections: Sequence[object] | None) -> Tensor:
    add_to_collections([GraphKeys.SUMMARIES] if collections is None else collections, summary)
    return summary


def scalar(
    name: str, tensor: TensorLike, collections: Sequence[object] | None = None, family: str | None = None
) -> Tensor:
    """One number.

    Args:
      name: the tag, with the current name scope before it.
      collections: where the summary is added; `GraphKeys.SUMMARIES` if None.
      family: a group of tags in TensorBoard.
    """
    with _scope(name, family, [tensor]) as (tag, scope):
        return _collect(one("ScalarSummary", constant(tag, name="tags"), tensor, name=scope), collections)


def histogram(
    name: str, values: TensorLike, collections: Sequence[object] | None = None, family: str | None = None
) -> Tensor:
    """Returns a summary with the distribution of values. See `scalar` for the arguments."""
    with _scope(name, family, [values]) as (tag, scope):
        return _collect(one("HistogramSummary", constant(tag, name="tag"), values, name=scope), collections)


def image(
    name: str,
    tensor: TensorLike,
    max_outputs: int = 3,
    collections: Sequence[object] | None = None,
    family: str | None = None,
) -> Tensor:
    """The first ``max_outputs`` pictures of a batch [pictures, height, width, channels]; 1, 3 or 4 channels.

    Bytes are shown unchanged, other numbers are scaled for each image.
    """
    with _scope(name, family, [tensor]) as (tag, scope):
        red = np.array(summary_protos.RED, np.uint8)
        summary = one(
            "ImageSummary", constant(tag, name="tag"), tensor, max_images=max_outputs, bad_color=red, name=scope
        )
        return _collect(summary, collections)


def audio(
    name: str,
    tensor: TensorLike,
    sample_rate: TensorLike,
    max_outputs: int = 3,
    collections: Sequence[object] | None = None,
    family: str | None = None,
) -> Tensor:
    """The first ``max_outputs`` sounds of a batch [sounds, frames(, channels)] of numbers from -1 to 1.

    Args:
      sample_rate: frames a second.
    """
    with _scope(name, family, [tensor]) as (tag, scope):
        rate = convert_to_tensor(sample_rate, dtypes.float32, name="sample_rate")
        summary = one("AudioSummaryV2", constant(tag, name="tag"), tensor, rate, max_outputs=max_outputs, name=scope)
        return _collect(summary, collections)


def tensor_summary(
    name: str,
    tensor: TensorLike,
    summary_description: Any = None,
    collections: Sequence[object] | None = None,
    summary_metadata: SummaryMetadata | None = None,
    family: str | None = None,
    display_name: str | None = None,
) -> Tensor:
    """A whole tensor, for a plugin of TensorBoard.

    Args:
      summary_description: description in TensorBoard.
      summary_metadata: a ``SummaryMetadata`` message, which names the plugin.
      display_name: name in TensorBoard.
    """
    metadata = summary_protos.metadata(summary_metadata, display_name, summary_description)
    with _scope(name, family, [tensor]) as (tag, scope):
        packed = constant(metadata, dtypes.string, name="serialized_summary_metadata")
        return _collect(one("TensorSummaryV2", constant(tag, name="tag"), tensor, packed, name=scope), collections)


def text(name: str, tensor: TensorLike, collections: Sequence[object] | None = None) -> Tensor:
    """Text, or a table of strings.

    Raises:
      ValueError: ``tensor`` is not of type string.
    """
    tensor = convert_to_tensor(tensor)
    if tensor.dtype.base_dtype != dtypes.string:
        raise ValueError(f"Expected tensor {tensor.name} to have dtype string, got {tensor.dtype.name}")
    return tensor_summary(name, tensor, summary_metadata=summary_protos.text_metadata(), collections=collections)


def merge(inputs: Sequence[TensorLike], collections: Sequence[object] | None = None, name: str | None = None) -> Tensor:
    """Merges several summaries, which must have different tags.

    Args:
      collections: the collections to which the merged summary is added, if any.
    """
    name = None if name is None else clean_name(name)
    with name_scope(name, "Merge", inputs):
        summary = one("MergeSummary", list(inputs), name=name)
        add_to_collections(collections or [], summary)
        return summary


def merge_all(key: object = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None) -> Tensor | None:
    """All summaries of a collection as one; None if there are none.

    Args:
      scope: a regular expression; only summaries with names that begin with a match are merged.
    """
    summaries = get_collection(key, scope=scope)
    return merge(summaries, name=name) if summaries else None
