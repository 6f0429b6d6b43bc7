"""Optimizers of optax on a ``ps``: kinds of states and of parameters' leaves, and errors while it answers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import headwater
from headwater.errors import InternalError
from headwater.ps.consistency import from_text
from headwater.ps.layout import make_layout
from headwater.ps.local_servers import LocalServers
from headwater.ps.optax_updates import OptaxUpdater, leaf_specs

PARAMS = {"b": jnp.float32(1.5), "w": jnp.array([1.0, 2.0, 3.0])}


def noisy() -> Any:
    return optax.chain(optax.add_noise(0.1, 0.5, 3), optax.adam(0.1))


def alone(optimizer: Any, steps: int) -> Any:
    """Returns the parameters after ``steps`` updates by optax alone, with their own values as gradients."""
    params, state = PARAMS, optimizer.init(PARAMS)
    for _ in range(steps):
        updates, state = optimizer.update(params, state, params)
        params = optax.apply_updates(params, updates)
    return params


def test_a_random_key_in_the_optimizers_state_is_read_with_it() -> None:
    ps = headwater.ParameterServer(PARAMS, noisy(), snapshot_steps=2)
    for _ in range(5):
        assert ps.push(ps.params)
    jax.tree.map(
        lambda got, expected: np.testing.assert_allclose(got, expected, rtol=1e-6), ps.finish(), alone(noisy(), 5)
    )


def test_an_update_uses_the_saved_key() -> None:
    specs, structure = leaf_specs(PARAMS), jax.tree.structure(PARAMS)
    layout = make_layout(specs, 1)
    first, second = (OptaxUpdater(layout, 0, structure, noisy()) for _ in range(2))
    assert first.state_sizes() == []
    first.fill([np.asarray(leaf) for leaf in jax.tree.leaves(PARAMS)], None)
    for _ in range(3):
        first.apply(first.values(None), {}, (), ())
    saved = first.state()
    assert [(name, array.shape, str(array.dtype)) for name, array in saved.items()] == first.state_sizes()
    second.fill(first.values(None), list(saved.values()))
    for _ in range(2):
        second.apply(second.values(None), {}, (), ())
    for got, expected in zip(second.values(None), jax.tree.leaves(alone(noisy(), 5)), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6)


@pytest.mark.parametrize("leaf", [1.5, np.float64(1.5), np.array(1.5), jnp.float32(1.5)])
def test_a_leaf_may_be_a_number_of_python_or_numpy(leaf: Any) -> None:
    ps = headwater.ParameterServer({"b": leaf, "w": jnp.ones(2)}, optax.sgd(0.5))
    ps.push({"b": 1.0, "w": np.ones(2)})
    assert (float(ps.params["b"]), ps.params["b"].dtype) == (1.0, jnp.asarray(leaf).dtype)
    ps.assign({"b": 4.0, "w": np.zeros(2)})
    assert float(ps.pull()["b"]) == 4.0


@pytest.mark.parametrize(
    ("leaf", "message"),
    [
        (jax.random.key(0), r"params\['k'\] is of type key<fry>, which has no gradient"),
        (3, r"params\['k'\] is of type int(32|64), which has no gradient"),
        ("text", r"params\['k'\] is of type str, which is not an array of numbers"),
    ],
)
def test_a_leaf_without_a_gradient_is_named(leaf: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        headwater.ParameterServer({"k": leaf, "w": jnp.ones(2)}, optax.sgd(0.5))


@pytest.mark.parametrize(
    ("optimizer", "message"),
    [
        (optax.chain(optax.sgd(0.1), optax.contrib.reduce_on_plateau()), "reduce_on_plateau requires .* 'value'"),
        (optax.polyak_sgd(0.1), "scale_by_polyak requires .* 'value'"),
        (optax.lbfgs(), "'value', 'grad', and 'value_fn'"),
    ],
)
def test_an_optimizer_that_takes_more_than_gradients_is_refused(optimizer: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"cannot run on parameter servers: .*{message}"):
        headwater.ParameterServer(PARAMS, optimizer)


@pytest.mark.parametrize("failing", ["values", "state", "apply"])
def test_an_error_while_a_ps_answers_reaches_the_client_once(failing: str, caplog: pytest.LogCaptureFixture) -> None:
    calls: list[object] = []

    class Failing(OptaxUpdater):
        broken = False

        def __getattribute__(self, name: str) -> Any:
            if name == failing and object.__getattribute__(self, "broken"):
                calls.append(name)
                raise TypeError("not understood")
            return super().__getattribute__(name)

    specs, leaves = leaf_specs(PARAMS), [np.asarray(leaf) for leaf in jax.tree.leaves(PARAMS)]
    layout, structure = make_layout(specs, 1), jax.tree.structure(PARAMS)
    servers = LocalServers(
        "params", layout, lambda index: Failing(layout, index, structure, optax.sgd(0.1)), from_text("async", 1)
    )
    client = servers.client(leaves)
    client.connect()
    client.pull()
    Failing.broken = True
    with pytest.raises(InternalError, match=r"TypeError on /job:ps/task:0: not understood"):
        if failing == "apply":
            client.push(leaves)
        else:
            client.snapshot()
    assert calls == [failing]
    assert "/job:ps/task:0 could not answer" in caplog.text
    Failing.broken = False
    client.pull()
    np.testing.assert_array_equal(client.values()[1], leaves[1])
    servers.stop()
