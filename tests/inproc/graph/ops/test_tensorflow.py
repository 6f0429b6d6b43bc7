"""Graphs, values and gradients of the operations, compared with recorded ones of TensorFlow 1.15."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater import tf
from tests.inproc.graph.ops import cases, evaluate, families

DATA = Path(__file__).parents[3] / "data" / "tf1"
STORED = {
    table: json.loads((DATA / name).read_text()) for table, name in ((cases, "ops.json"), (families, "families.json"))
}

# Expressions for which Headwater adds other operations, mostly fewer, with the same result; their names differ.
OTHER_NAMES = {
    "tf.nn.swish(x)",
    "tf.einsum('ij,jk->ik', x, c)",
    "tf.einsum('bij,bjk->bik', s, r)",
    "tf.repeat([1, 2, 3], 2)",
    "tf.repeat(y, [1, 2, 0], axis=1)",
    "tf.batch_gather(y, [[0, 1], [2, 0]])",
    "tf.sequence_mask(k, 2, tf.float32)",
    "tf.sort(y)",
    "tf.sort(x, 1, 'DESCENDING')",
    "tf.argsort(w)",
    "tf.nn.softmax_cross_entropy_with_logits(labels=o, logits=l)",
    "tf.nn.softmax_cross_entropy_with_logits_v2(labels=o, logits=l)",
    "tf.nn.softmax_cross_entropy_with_logits_v2(labels=c, logits=o, axis=0)",
    "tf.nn.sparse_softmax_cross_entropy_with_logits(labels=k, logits=o)",
    "tf.nn.depthwise_conv2d(e, h, [1, 1, 1, 1], 'SAME')",
    "tf.nn.embedding_lookup([c, o], [0, 5, 3, 0])",
    "tf.nn.embedding_lookup([c, o], [[0, 5], [3, 0]], 'div')",
    "tf.nn.atrous_conv2d(e, h, 2, 'VALID')",
    "tf.nn.pool(e, [2, 2], 'MAX', 'SAME')",
    "tf.nn.pool(e, [2, 2], 'AVG', 'VALID', strides=[2, 2])",
    "tf.confusion_matrix([1, 2, 1], [1, 0, 1])",
    "tf.confusion_matrix(k, n, 4, weights=[1., 2., 3.], dtype=tf.float32)",
    "tf.linalg.expm(q)",
    "tf.sparse_tensor_dense_matmul(tf.SparseTensor([[0, 1], [1, 0]], w[:2], [2, 2]), x)",
}
# Expressions whose static shape is known more precisely than TensorFlow's.
OTHER_SHAPES = {
    "tf.segment_min(c, [0, 0, 1])",
    "tf.repeat(y, [1, 2, 0], axis=1)",
    "tf.nn.embedding_lookup_sparse(c, tf.SparseTensor([[0, 0], [0, 1], [1, 0]], k, [2, 2]), "
    "tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [2., 1., 3.], [2, 2]), combiner='sqrtn')",
}
# Expressions whose values differ: other bytes for the same picture, sums in another order.
OTHER_VALUES = {
    "tf.summary.histogram('h', x)",
    "tf.summary.image('i', tf.reshape(p, [1, 2, 3, 1]))",
    "tf.summary.image('i', tf.cast(e[..., :1] * 9, tf.uint8), 1)",
}
# Expressions whose gradients differ.
OTHER_GRADIENTS = {
    "tf.math.reduce_euclidean_norm(x, 1)",  # TensorFlow has no gradient
    "tf.self_adjoint_eigvals(q)",  # TensorFlow's gradient is for the lower triangle alone
    "tf.dynamic_stitch([k, [2]], [c, c[:1]])",  # rows that are replaced by others get no gradient
}


def _decode(encoded: list[Any]) -> np.ndarray[Any, Any]:
    dtype, shape, flat = encoded
    if dtype == "string":
        array = np.empty(len(flat), object)
        array[:] = [item.encode("latin1") for item in flat]
        return array.reshape(shape)
    if dtype.startswith("complex"):
        flat = [complex(*pair) for pair in flat]
    return np.array(flat, dtype).reshape(shape)


def _as_known(ours: list[int | None] | None, theirs: list[int | None] | None) -> bool:
    """Returns whether a static shape is at least as precise as the other one."""
    if ours is None or theirs is None:
        return theirs is None
    return len(ours) == len(theirs) and all(b in (None, a) for a, b in zip(ours, theirs, strict=True))


def _close(ours: list[Any], theirs: list[Any], what: str) -> None:
    assert ours[:2] == theirs[:2], what
    mine, other = _decode(ours), _decode(theirs)
    if mine.dtype.kind in "fc":
        tolerance = {"float16": 2e-3, "float32": 2e-5, "complex64": 2e-5}.get(ours[0], 1e-10)
        np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance, err_msg=what)
    else:
        np.testing.assert_array_equal(mine, other, err_msg=what)


@pytest.mark.parametrize(("table", "expression"), [(table, e) for table in STORED for e in table.CASES])
def test_graph_values_and_gradients(table: Any, expression: str) -> None:
    theirs = STORED[table]["values"][expression]
    ours: dict[str, Any] = evaluate.record(tf, expression, table)
    assert "error" not in ours, ours
    assert ours.get("run_error") == theirs.get("run_error")
    found = [(name, dtype) for name, dtype, _ in ours["outputs"]]
    wanted = [(name, dtype) for name, dtype, _ in theirs["outputs"]]
    single = sum(op != "Const" for _, op, _ in theirs["nodes"]) == 1
    # The composed functions of these families consist of other operations than TensorFlow's, which has single
    # operations for some.
    composed = table is families and (not single or any(op.startswith("Sparse") for _, op, _ in theirs["nodes"]))
    names_differ = expression in OTHER_NAMES or composed
    if names_differ:
        found, wanted = [dtype for _, dtype in found], [dtype for _, dtype in wanted]
    assert found == wanted
    shapes = [[shape for _, _, shape in outputs["outputs"]] for outputs in (ours, theirs)]
    if table is families:
        assert all(map(_as_known, *shapes)), shapes
    elif expression not in OTHER_SHAPES:
        assert shapes[0] == shapes[1]
    if not names_differ and single:
        assert sorted(ours["nodes"]) == sorted(theirs["nodes"])
    if expression not in OTHER_VALUES:
        for index, (mine, other) in enumerate(zip(ours.get("values", ()), theirs.get("values", ()), strict=True)):
            _close(mine, other, f"output {index}")
    if "gradient_error" not in theirs and expression not in OTHER_GRADIENTS:
        mine, other = ours.get("gradients", {}), theirs.get("gradients", {})
        assert sorted(mine) == sorted(other)
        for name, value in other.items():
            _close(mine[name], value, f"gradient of {name}")


@pytest.mark.parametrize(("table", "expression"), [(table, e) for table in STORED for e in table.ERRORS])
def test_errors(table: Any, expression: str) -> None:
    assert evaluate.record(tf, expression, table).get("error") == STORED[table]["errors"][expression]["error"]
