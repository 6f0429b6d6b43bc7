"""Summaries of TensorFlow before 1.0: the tag is used unchanged, independent of the operation's name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from google.protobuf import json_format
from tensorboard.compat.proto import summary_pb2

from headwater.graph.collections import GraphKeys
from headwater.graph.operation import Tensor
from headwater.tf1.functional import summary
from headwater.tf1.functional.apply import one
from headwater.tf1.functional.default_graph import add_to_collections

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike
    from headwater.tensorboard_protos import NodeDef


_protos: Any = summary_pb2


def _collected(made: Tensor, collections: Sequence[str] | None) -> Tensor:
    add_to_collections([GraphKeys.SUMMARIES] if collections is None else collections, made)
    return made


def scalar_summary(
    tags: Any, values: TensorLike, collections: Sequence[str] | None = None, name: str | None = None
) -> Tensor:
    """A number for each tag."""
    return _collected(one("ScalarSummary", tags, values, name=name), collections)


def histogram_summary(
    tag: TensorLike, values: TensorLike, collections: Sequence[str] | None = None, name: str | None = None
) -> Tensor:
    """Returns a summary with the distribution of values."""
    return _collected(one("HistogramSummary", tag, values, name=name), collections)


def image_summary(
    tag: TensorLike,
    tensor: TensorLike,
    max_images: int = 3,
    collections: Sequence[str] | None = None,
    name: str | None = None,
) -> Tensor:
    """The first pictures of a batch."""
    return _collected(one("ImageSummary", tag, tensor, max_images=max_images, name=name), collections)


def audio_summary(
    tag: TensorLike,
    tensor: TensorLike,
    sample_rate: TensorLike,
    max_outputs: int = 3,
    collections: Sequence[str] | None = None,
    name: str | None = None,
) -> Tensor:
    """The first sounds of a batch."""
    made = one("AudioSummaryV2", tag, tensor, sample_rate, max_outputs=max_outputs, name=name)
    return _collected(made, collections)


def merge_summary(
    inputs: Sequence[TensorLike], collections: Sequence[str] | None = None, name: str | None = None
) -> Tensor:
    """Several summaries as one."""
    return summary.merge(inputs, collections, name)


def merge_all_summaries(key: TensorLike = GraphKeys.SUMMARIES) -> Tensor | None:
    """All summaries of a collection as one; None if there are none."""
    return summary.merge_all(key)


def all_v2_summary_ops() -> list[Tensor]:
    """Returns an empty list: graphs have no summary writers of TensorFlow 2; see ``tf.summary.merge_all``."""
    return []


def get_summary_description(node_def: NodeDef) -> Any:
    """Returns the description of the summary that an operation of the type ``TensorSummary`` computes.

    Raises:
      ValueError: the operation is of another type.
    """
    if node_def.op != "TensorSummary":
        raise ValueError(f"Can't get_summary_description on {node_def.op}")
    return json_format.Parse(node_def.attr["description"].s.decode(), _protos.SummaryDescription())
