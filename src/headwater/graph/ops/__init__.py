"""The operations: a JAX function for each, registered with `headwater.graph.registry`.

Importing this package enables 64-bit types of JAX for the process, since graphs use int64 and float64 tensors. JAX
itself is imported when an operation is first compiled, or when its static shape is first evaluated.
"""

# Importing a module registers its operations.
# pyright: reportUnusedImport=false

from __future__ import annotations

from typing import Any

from headwater.import_hooks import on_import


def _enable_64_bits(jax: Any) -> None:
    jax.config.update("jax_enable_x64", True)


on_import("jax", _enable_64_bits)

from headwater.graph.ops import (
    accumulators,
    arrays,
    audio,
    backward,
    bag_routes,
    bags,
    batching,
    beams,
    bessel,
    boxes,
    candidates,
    checkpoint,
    consistency,
    control_flow,
    convolution,
    core,
    ctc,
    datasets,
    debugging,
    elementwise,
    examples,
    fake_quantization,
    fourier,
    image_files,
    images,
    indexing,
    jax_functions,
    joining,
    kept_tensors,
    linalg,
    messages,
    mutex,
    nn,
    optimizers,
    parsing,
    philox,
    quantized,
    queues,
    ragged,
    ragged_broadcast,
    random,
    readers,
    reductions,
    regular_expressions,
    resizing,
    routing,
    scans,
    searching,
    segments,
    serialised,
    sets,
    slices,
    space_to_batch,
    sparse,
    sparse_products,
    stand_ins,
    state,
    stateless,
    step_arrays,
    step_barrier,
    strings,
    summaries,
    tables,
    tensor_arrays,
    tensor_lists,
    training_seal,
    unicode,
    windows,
)
