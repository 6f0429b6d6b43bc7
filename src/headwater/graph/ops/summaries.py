"""Summaries for TensorBoard, as serialized messages."""

from __future__ import annotations

from typing import Any

import numpy as np

from headwater.data.io import summary_protos
from headwater.dtypes import string
from headwater.graph.ops.define import fixed, host
from headwater.graph.registry import HostArray

_message = fixed(string, ())


def _packed(summary: Any) -> HostArray:
    array = np.empty((), object)
    array[()] = summary.SerializeToString()
    return array


@host("ScalarSummary", inputs="tags:string, values:T|real", infer=_message)
def scalar(tags: HostArray, values: HostArray) -> HostArray:
    """Returns a summary with one number for each tag."""
    return _packed(summary_protos.scalar(tags, values))


@host("HistogramSummary", inputs="tag:string, values:T|real=float32", infer=_message)
def histogram(tag: HostArray, values: HostArray) -> HostArray:
    """Returns a histogram of the values."""
    return _packed(summary_protos.histogram(tag.item(), values))


@host("ImageSummary", inputs="tag:string, tensor:T|real=float32", infer=_message)
def image(tag: HostArray, tensor: HostArray, *, max_images: int = 3, bad_color: Any = summary_protos.RED) -> HostArray:
    """Returns the first images of a batch."""
    return _packed(summary_protos.image(tag.item(), tensor, max_images, bad_color))


@host("AudioSummaryV2", inputs="tag:string, tensor:float32, sample_rate:float32", infer=_message)
def audio(tag: HostArray, tensor: HostArray, sample_rate: HostArray, *, max_outputs: int = 3) -> HostArray:
    """Returns the first audio clips of a batch."""
    return _packed(summary_protos.audio(tag.item(), tensor, float(sample_rate), max_outputs))


@host("TensorSummaryV2", inputs="tag:string, tensor:T, serialized_summary_metadata:string", infer=_message)
def tensor(tag: HostArray, tensor: HostArray, serialized_summary_metadata: HostArray) -> HostArray:
    """Returns a whole tensor, for a plugin of TensorBoard."""
    return _packed(summary_protos.tensor(tag.item(), tensor, serialized_summary_metadata[()]))


@host("MergeSummary", inputs="inputs:string*", infer=_message)
def merge(*inputs: HostArray) -> HostArray:
    """Merges several summaries into one."""
    return _packed(summary_protos.merge(item for packed in inputs for item in packed.ravel()))
