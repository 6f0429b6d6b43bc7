"""The operations: one JAX function each, registered with `headwater.registry`.

Importing this package loads JAX and switches on 64-bit types for the process: graphs say the type of every tensor,
and int64 and float64 are among them.
"""

from __future__ import annotations

import importlib

import jax

jax.config.update("jax_enable_x64", True)

_FAMILIES = (
    "stand_ins",
    "core",
    "elementwise",
    "fake_quantization",
    "reductions",
    "segments",
    "arrays",
    "joining",
    "slices",
    "indexing",
    "routing",
    "bags",
    "linalg",
    "nn",
    "convolution",
    "blocks",
    "fourier",
    "random",
    "candidates",
    "backward",
    "searching",
    "strings",
    "debugging",
    "summaries",
    "state",
    "optimizers",
    "queues",
    "accumulators",
    "step_barrier",
    "mutex",
    "consistency",
    "checkpoint",
    "readers",
    "parsing",
    "serialised",
    "image_files",
    "audio",
    "batching",
    "control_flow",
    "tensor_arrays",
    "scans",
    "tables",
    "sparse",
    "sets",
    "ragged",
    "windows",
    "kept_tensors",
    "unicode",
    "ctc",
    "images",
    "boxes",
    "resizing",
    "datasets",
    "training_seal",
)

for _family in _FAMILIES:
    importlib.import_module(f"headwater.ops.{_family}")
