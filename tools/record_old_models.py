"""Writes a model with Keras 2, with its predictions and the losses of two further steps.

python record_old_models.py tensorflow tf1        # with TensorFlow 1.15
python record_old_models.py tf_keras tf_keras     # with tf_keras and TensorFlow 2
"""

import importlib
import json
import sys

import numpy as np

module, name = sys.argv[1:]
keras = importlib.import_module(module)
keras = getattr(keras, "keras", keras)
layers = keras.layers
rng = np.random.RandomState(0)
words, values = rng.randint(1, 9, (8, 4)), rng.normal(size=(8, 4, 4, 1)).astype("float32")
labels = np.eye(2)[rng.randint(0, 2, 8)]

text, image = keras.Input((4,), name="text"), keras.Input((4, 4, 1), name="image")
read = layers.Embedding(9, 3, mask_zero=True, name="table")(text)
read = layers.TimeDistributed(layers.Dense(3, activation="tanh"), name="each")(read)
read = layers.Bidirectional(layers.LSTM(2, recurrent_activation="hard_sigmoid", return_sequences=True), name="both")(
    read
)
read, *state = layers.LSTM(2, return_state=True, name="last")(read)
further = layers.LSTM(2, name="further")(layers.RepeatVector(2, name="twice")(read), initial_state=state)
seen = keras.Sequential(
    [
        layers.SeparableConv2D(2, 2, padding="same", input_shape=(4, 4, 1), name="separable"),
        layers.BatchNormalization(name="normal"),
        layers.Conv2DTranspose(1, 2, name="transposed"),
        layers.Flatten(name="flat"),
    ],
    name="seen",
)(image)
chosen = layers.Dense(2, activation="softmax", kernel_regularizer=keras.regularizers.l2(0.01), name="chosen")(
    layers.concatenate([further, read, seen], name="all")
)
amount = layers.Dense(1, name="amount")(read)
model = keras.Model([text, image], [chosen, amount], name="whole")
model.compile(
    keras.optimizers.Adam(0.01),
    {"chosen": "categorical_crossentropy", "amount": "mse"},
    {"chosen": ["accuracy"], "amount": ["mae"]},
    {"chosen": 1.0, "amount": 0.5},
)
data = [words, values], [labels, labels[:, :1]]
settings = {"batch_size": 8, "epochs": 2, "shuffle": False, "verbose": 0}
model.fit(*data, **settings)
model.save(name + ".h5")
with open(name + ".json", "w") as file:
    file.write(model.to_json())
predicted = [part.tolist() for part in model.predict(data[0], verbose=0)]
losses = [float(loss) for loss in model.fit(*data, **settings).history["loss"]]
found = {
    "text": words.tolist(),
    "image": values.tolist(),
    "labels": labels.tolist(),
    "predicted": predicted,
    "losses": losses,
}
with open(name + ".expected.json", "w") as file:
    json.dump(found, file)
