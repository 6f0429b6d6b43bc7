"""Trains a model with small tables, and prints its loss and the number of rows that it has read: part of
test_small_tables.py.
"""

import numpy as np

from headwater.keras import ParameterServerStrategy

import keras  # isort: skip - the package before it chooses the backend

SIZES = 3, 400, 10_000
random = np.random.default_rng(0)
x = np.stack([(random.zipf(1.3, 1024) - 1) % size for size in SIZES], axis=1).astype(np.int32)
y = (x[:, 1:2] % 2).astype(np.float32)

keras.utils.set_random_seed(1)
strategy = ParameterServerStrategy(consistency="sync")
with strategy.scope():
    numbers = keras.Input((len(SIZES),), dtype="int32")
    found = [keras.layers.Embedding(size, 8, name=f"t{at}")(numbers[:, at]) for at, size in enumerate(SIZES)]
    model = keras.Model(numbers, keras.layers.Dense(1, "sigmoid")(keras.layers.Concatenate()(found)), name="small")
    model.compile("adam", "binary_crossentropy")
losses = model.fit(x, y, batch_size=128, epochs=2, shuffle=False, verbose=0).history["loss"]
print(f"lost {losses[-1]:.6f}, read {strategy.traffic(model).rows} rows")
