"""Trains an adversarial pair of models step by step, then fits a third model, and prints the results.

    several_models.py CONSISTENCY

CONSISTENCY is the consistency of a `ParameterServerStrategy`, or ``none`` for Keras in one process.
"""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any

import numpy as np

from headwater.keras import ParameterServerStrategy

import keras  # isort: skip - the package before it chooses the backend

strategy: Any = None if sys.argv[1] == "none" else ParameterServerStrategy(consistency=sys.argv[1])
layers: Any = keras.layers


def network(inputs: int, outputs: int, name: str) -> Any:
    hidden = [layers.Dense(8, activation="relu"), layers.BatchNormalization()]
    return keras.Sequential([keras.Input((inputs,)), *hidden, layers.Dense(outputs)], name=name)


def loss() -> Any:
    return keras.losses.BinaryCrossentropy(from_logits=True)


with strategy.scope() if strategy else contextlib.nullcontext():
    keras.utils.set_random_seed(3)
    generator, critic = network(3, 2, "generator"), network(2, 1, "critic")
    critic.compile(keras.optimizers.Adam(0.01), loss())
    noise = keras.Input((3,))
    both = keras.Model(noise, critic(generator(noise)), name="both")
    both.compile(keras.optimizers.Adam(0.01), loss())
random = np.random.default_rng(0)
losses: list[float] = []
for _ in range(8):
    drawn = random.normal(size=(16, 3)).astype("float32")
    real = (random.normal(size=(16, 2)) * 0.3 + 1).astype("float32")
    examples = np.concatenate([real, generator.predict(drawn, verbose=0)])
    critic.trainable = True
    losses.append(critic.train_on_batch(examples, np.repeat([[1.0], [0.0]], 16, axis=0).astype("float32")))
    critic.trainable = False
    losses.append(both.train_on_batch(drawn, np.ones((16, 1), np.float32)))
with strategy.scope() if strategy else contextlib.nullcontext():
    keras.utils.set_random_seed(4)
    # This model has the name of another model. It has no normalization: in `fit`, the statistics would be of one
    # worker's rows.
    third = keras.Sequential([keras.Input((2,)), layers.Dense(8, "tanh"), layers.Dense(1)], name="critic")
    third.compile(keras.optimizers.AdamW(0.01, global_clipnorm=0.1), "mse")
history = third.fit(examples, examples[:, :1], batch_size=8, epochs=3, shuffle=False, verbose=0).history
weights = [np.abs(weight).sum().item() for model in (generator, critic, third) for weight in model.get_weights()]
print("result", json.dumps([*map(float, losses), *history["loss"], *weights]), flush=True)
