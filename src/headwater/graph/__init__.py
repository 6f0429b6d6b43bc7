"""The graph engine: operations, shapes, gradients, passes, plans, the runtime, resources, masters, servers, sessions.

Functions, layers and training code for programs are in `headwater.tf1`. This package never imports `tf1`, `tf2`,
`keras` or `platform`. Start with `headwater.graph.session.session`, where a step begins, then follow the step through
`passes`, `master` and `runtime`.
"""

from __future__ import annotations

import gc

from headwater.graph.context import graphs_are_made_by
from headwater.graph.graph import Graph
from headwater.graph.registry import load_operations_with


def _load_operations() -> object:
    collects = gc.isenabled()
    gc.disable()  # imports make no garbage, and collection takes a sixth of their time
    try:
        from headwater.graph import ops  # noqa: PLC0415  imports JAX
    finally:
        if collects:
            gc.enable()
    return ops


graphs_are_made_by(Graph)
load_operations_with(_load_operations)
