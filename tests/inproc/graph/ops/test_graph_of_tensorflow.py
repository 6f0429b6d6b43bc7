"""A graph built by TensorFlow 1.15, with its own gradient operations, has TensorFlow's values; so has the same graph of
Headwater.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater import tf
from tests.inproc.graph.ops import network

STORED = json.loads((Path(__file__).parents[3] / "data" / "tf1" / "network.json").read_text())


def _compare(found: dict[str, Any]) -> None:
    assert sorted(found) == sorted(STORED["values"])
    for name, (dtype, shape, flat) in STORED["values"].items():
        assert str(found[name].dtype) == dtype
        np.testing.assert_allclose(found[name], np.reshape(flat, shape), rtol=2e-3, atol=2e-4, err_msg=name)


@pytest.mark.slow
def test_its_own_gradient_operations_run() -> None:
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(tf.GraphDef.FromString(base64.b64decode(STORED["graph"])), name="")
        feeds = {f"{name}:0": value for name, value in network.INPUTS.items()}
        with tf.Session(graph=graph) as session:
            _compare(session.run(STORED["fetches"], feeds))


@pytest.mark.slow
def test_our_gradients_of_the_same_network() -> None:
    with tf.Graph().as_default() as graph:
        fetches = network.build(tf)
        feeds = {f"{name}:0": value for name, value in network.INPUTS.items()}
        with tf.Session(graph=graph) as session:
            _compare(session.run(fetches, feeds))
