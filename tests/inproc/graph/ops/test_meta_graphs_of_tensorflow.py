"""Graphs that TensorFlow 1.15 wrote, with its conditions, loops, functions, datasets and gradients, give its values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater import tf

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
