"""Graphs written by TensorFlow 1.15, with its conditions, loops, functions, datasets and gradients, have its values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater import tf
from headwater.tensorboard_protos import graph_pb2, node_def_pb2

FOLDER = Path(__file__).parents[3] / "data" / "tf1" / "meta_graphs"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())


def _array(stored: list[Any]) -> np.ndarray[Any, Any]:
    dtype, shape, flat = stored
    return np.array(flat, dtype).reshape(shape)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_values(name: str) -> None:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        tf.train.import_meta_graph(str(FOLDER / f"{name}.meta"))
        session.run(EXPECTED[name]["init"])
        for step, (fetches, feeds, values) in enumerate(EXPECTED[name]["steps"]):
            fed = {key: _array(value) for key, value in feeds.items()}
            if isinstance(values, str):
                with pytest.raises(getattr(tf.errors, values)):
                    session.run(fetches, fed)
                continue
            for fetch, found, stored in zip(fetches, session.run(fetches, fed), values, strict=True):
                if stored is not None:
                    wanted = _array(stored)
                    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), f"step {step}: {fetch}"
                    np.testing.assert_allclose(found, wanted, 2e-4, 2e-5, err_msg=f"step {step}: {fetch}")


def _node(name: str, op: str, *inputs: str, **types: int) -> Any:
    node = node_def_pb2.NodeDef(name=name, op=op, input=inputs)
    for key, value in types.items():
        node.attr[key].type = value
    return node


def test_the_end_of_a_condition_waits_for_effects_of_a_branch() -> None:
    """TensorFlow 2 lowers conditions in this way if their branches have effects."""
    with tf.Graph().as_default(), tf.Session() as session:
        holds, count = tf.placeholder(tf.bool, [], "holds"), tf.get_variable("count", initializer=1.0)
        nodes = [
            _node("holds", "Placeholder", dtype=tf.bool.as_datatype_enum),
            _node("count", "Placeholder", dtype=tf.float32.as_datatype_enum),
            _node("switch", "Switch", "holds", "holds"),
            _node("handle", "RefSwitch", "count", "holds"),
            _node("yes", "Identity", "switch:1"),
            _node("no", "Identity", "switch"),
            _node("change", "AssignAdd", "handle:1", "handle:1", "^yes"),
            _node("end", "Merge", "no", "yes", "^change"),
        ]
        mapping: Any = {"holds:0": holds, "count:0": count._ref()}
        found = tf.import_graph_def(graph_pb2.GraphDef(node=nodes), mapping, ["end"])
        assert found is not None
        session.run(tf.global_variables_initializer())
        for value, wanted in ((False, 1.0), (True, 2.0)):
            session.run(found[0], {holds: value})
            assert session.run(count) == wanted
