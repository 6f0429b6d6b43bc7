"""Keeps all parameters that it reads while it pushes gradients; prints whether the kept parameters are unchanged."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax

from headwater import ParameterServer

#: Large enough to be sent through shared memory; a channel has less of it than the program keeps.
SHAPE = (300, 1000)
PUSHES = 12

ps = ParameterServer({"w": jnp.zeros(SHAPE)}, optax.sgd(1.0))
add = jax.jit(jnp.add, donate_argnums=0)
kept = [ps.params["w"]]
in_place: list[bool] = []
for _ in range(PUSHES):
    ps.push({"w": -jnp.ones(SHAPE)})
    kept.append(ps.params["w"])
    (value,) = ps._client.values()  # pyright: ignore[reportPrivateUsage]
    in_place.append(value.__array_interface__["data"][0] == kept[-1].unsafe_buffer_pointer())
unchanged = [bool((np.asarray(one) == count).all()) for count, one in enumerate(kept)]
given_away = add(kept.pop(), 1.0)
value = float(np.asarray(given_away).min())
ps.push({"w": -jnp.ones(SHAPE)})
print(f"in place: {sum(in_place)} of {PUSHES}; unchanged: {sum(unchanged)} of {PUSHES + 1}; given away: {value:g}")
print(f"last: {float(np.asarray(ps.finish()['w']).max()):g}")
