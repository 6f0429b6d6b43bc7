"""Placement of leaves whose updates combine rows or leaves."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import optax
import pytest
from optax import contrib

from headwater.ps.layout import FixedShardsPartitioner, Layout
from headwater.ps.leaf_dependencies import make_leaf_layout
from headwater.ps.optax_updates import leaf_specs

PARAMS = {"b": np.zeros(6, np.float32), "w": np.ones((4, 6), np.float32), "z": np.float32(1)}


def placed(optimizer: Any, tasks: int = 2, *, finite: bool = True) -> Layout:
    return make_leaf_layout(optimizer, PARAMS, leaf_specs(PARAMS), tasks, FixedShardsPartitioner(2), finite=finite)


def split(layout: Layout) -> str:
    """Returns the names of the leaves that are split."""
    blocks = [block for task in layout.blocks for block in task]
    return "".join(sorted({layout.variables[block.variable].name[2] for block in blocks if block.stop >= 0}))


def by_name(params: Any) -> Any:
    return {name: "lamb" if name == "w" else "sgd" for name in params}


@pytest.mark.parametrize(
    ("optimizer", "expected"),
    [
        (optax.adamw(0.1, weight_decay=0.1), "bw"),
        (optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.1, momentum=0.9)), "bw"),
        (optax.MultiSteps(optax.adam(0.1), 3), "bw"),
        (optax.apply_if_finite(optax.adam(0.1), 3), "bw"),
        (optax.inject_hyperparams(optax.adam)(optax.linear_schedule(0.1, 0.0, 9)), "bw"),
        (contrib.schedule_free_adamw(0.1), "bw"),
        (contrib.sam(optax.sgd(0.1), optax.sgd(0.01)), "bw"),
        (optax.chain(optax.centralize(), optax.sgd(0.1)), "bw"),
        (optax.lamb(0.1), ""),
        (optax.adafactor(0.1, min_dim_size_to_factor=2), ""),
        (contrib.muon(0.1), "b"),
        (optax.multi_transform({"lamb": optax.lamb(0.1), "sgd": optax.sgd(0.1)}, by_name), "b"),
    ],
)
def test_a_leaf_is_split_if_its_rows_are_updated_separately(optimizer: Any, expected: str) -> None:
    assert split(placed(optimizer)) == expected


@pytest.mark.parametrize(
    ("optimizer", "finite"),
    [
        (contrib.prodigy(1.0), True),
        (contrib.dadapt_adamw(1.0), True),
        (optax.apply_if_finite(optax.adam(0.1), 3), False),
    ],
)
def test_leaves_that_are_updated_together_are_refused_on_several_tasks(optimizer: Any, finite: bool) -> None:
    assert placed(optimizer, 1, finite=finite).blocks[0]
    with pytest.raises(ValueError, match=r"update of params\['b'\] also from params\['w'\], and with 2 ps"):
        placed(optimizer, finite=finite)


def test_a_state_that_combines_leaves_counts_for_later_updates() -> None:
    def init(params: Any) -> Any:
        return np.float32(0)

    def update(updates: Any, state: Any, params: Any = None) -> Any:
        return jax.tree.map(state.__mul__, updates), optax.tree.sum(updates)

    optimizer = optax.GradientTransformation(init, update)
    with pytest.raises(ValueError, match="use a single ps"):
        placed(optimizer)


def test_random_numbers_are_refused_on_several_tasks() -> None:
    optimizer = optax.chain(optax.add_noise(0.1, 0.5, 3), optax.sgd(0.1))
    assert placed(optimizer, 1).blocks[0]
    with pytest.raises(ValueError, match="draws random numbers, which would repeat on each of several ps"):
        placed(optimizer)


def _is_none(leaf: object) -> bool:
    return leaf is None


def test_an_optimizer_that_needs_every_leaf_is_refused_on_several_tasks() -> None:
    def ndim(leaf: Any) -> Any:
        return np.float32(leaf.ndim)

    def init(params: Any) -> Any:
        return jax.tree.map(ndim, params, is_leaf=_is_none)

    def update(updates: Any, state: Any, params: Any = None) -> Any:
        return updates, state

    optimizer = optax.GradientTransformation(init, update)
    assert placed(optimizer, 1).blocks[0]
    with pytest.raises(ValueError, match=r"cannot be divided among 2 ps .*AttributeError: 'NoneType' object"):
        placed(optimizer)
