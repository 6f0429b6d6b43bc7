"""A click model, from records to a served model: a wide-and-deep estimator, and a Keras model of the same bags.

    python examples/click_model.py estimator --folder build/clicks
    python examples/click_model.py keras --folder build/clicks
    headwater run --ps 1 --workers 2 examples/click_model.py keras --folder build/clicks

The records are synthetic, in the format of a public click log: 13 numbers, 20 categories and 6 bags of 0 to 20 ids,
with a few very frequent ids. Both variants read the same TFRecords of `Example`s, train, evaluate on held-out
records, export a model and query the exported model. ``--folder`` then contains a plot of loss and AUC of all
variants that were run.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import numpy as np

NUMBERS = [f"number_{index}" for index in range(13)]
CATEGORIES = [f"category_{index}" for index in range(20)]
BAGS = [f"bag_{index}" for index in range(6)]
LONGEST, BATCH, DIM = 20, 512, 8


def noise(keys, salt):
    """Returns a pseudorandom number between -1 and 1 for each key, determined by the key."""
    with np.errstate(over="ignore"):
        mixed = keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return (mixed ^ (mixed >> np.uint64(27))) / 2.0**63 - 1


def write_records(tf, path, count, seed):
    """Writes records unless they exist. Clicks depend on the numbers, the categories and the mean of the bags."""
    if path.exists():
        return
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(count, len(NUMBERS)))
    categories = (5000 ** rng.random((count, len(CATEGORIES)))).astype(np.int64)
    score = numbers @ np.linspace(-0.3, 0.3, len(NUMBERS)) + 0.7 * noise(categories, 1).sum(1)
    part = path.with_suffix(f".{os.getpid()}")
    with tf.python_io.TFRecordWriter(str(part)) as writer:
        for row in range(count):
            features = tf.train.Example()
            feature = features.features.feature
            for name, number in zip(NUMBERS, numbers[row], strict=True):
                feature[name].float_list.value.append(number)
            for name, category in zip(CATEGORIES, categories[row], strict=True):
                feature[name].int64_list.value.append(category)
            planted = score[row]
            for name in BAGS:
                ids = (5000 ** rng.random(rng.integers(0, LONGEST + 1))).astype(np.int64)
                feature[name].int64_list.value.extend(ids)
                planted += 2 * noise(ids, 2).mean() if len(ids) else 0
            feature["clicked"].int64_list.value.append(int(rng.random() < 1 / (1 + np.exp(1 - planted))))
            writer.write(features.SerializeToString())
    part.rename(path)


def features_of(tf):
    """Returns the features to parse from a record; bags have any number of ids."""
    found = {name: tf.io.FixedLenFeature([1], tf.float32) for name in NUMBERS}
    found |= {name: tf.io.VarLenFeature(tf.int64) for name in (*CATEGORIES, *BAGS)}
    return found


def batches(tf, path, epochs, shuffle=True):
    """Returns batches of records: dictionaries of tensors and sparse tensors, and clicks as labels."""
    features = {**features_of(tf), "clicked": tf.io.FixedLenFeature([], tf.int64)}
    return tf.data.experimental.make_batched_features_dataset(
        str(path), BATCH, features, label_key="clicked", num_epochs=epochs, shuffle=shuffle, shuffle_seed=1
    )


def by_estimator(given):
    """Trains a wide-and-deep estimator; returns its metrics after each round of steps."""
    from headwater import tf  # noqa: PLC0415  Keras's way chooses its backend first

    train, test = records(tf, given)
    column = tf.feature_column
    ids = [column.categorical_column_with_hash_bucket(name, 10_000, tf.int64) for name in (*CATEGORIES, *BAGS)]
    numbers = [column.numeric_column(name) for name in NUMBERS]
    estimator = tf.estimator.DNNLinearCombinedClassifier(
        model_dir=str(given.folder / "estimator"),
        linear_feature_columns=ids,
        linear_optimizer=tf.train.FtrlOptimizer(0.05),
        dnn_feature_columns=[*numbers, *(column.embedding_column(each, DIM, combiner="mean") for each in ids)],
        dnn_hidden_units=[64, 32],
        dnn_optimizer=tf.train.AdagradOptimizer(0.05),
        config=tf.estimator.RunConfig(tf_random_seed=1),
    )
    points = []
    for _ in range(given.rounds):
        estimator.train(lambda: batches(tf, train, None), steps=given.steps)
        found = estimator.evaluate(lambda: batches(tf, test, 1, shuffle=False))
        points.append((int(found["global_step"]), float(found["average_loss"]), float(found["auc"])))
        print(f"step {points[-1][0]}: loss {points[-1][1]:.4f}, AUC {points[-1][2]:.4f}", flush=True)
    receiver = tf.estimator.export.build_parsing_serving_input_receiver_fn(features_of(tf))
    exported = estimator.export_saved_model(str(given.folder / "served"), receiver)
    examples = list(tf.python_io.tf_record_iterator(str(test)))[:5]
    with tf.Graph().as_default(), tf.Session() as session:
        signature = tf.saved_model.load(session, ["serve"], exported.decode()).signature_def["predict"]
        clicks = session.run(signature.outputs["logistic"].name, {signature.inputs["examples"].name: examples})
    print(f"served from {exported.decode()}: {listed(clicks)}", flush=True)
    return points


def by_keras(given):
    """Trains the deep part with Keras, with rows that are created when an id is first used; returns its metrics."""
    from headwater.keras import ParameterServerStrategy  # noqa: PLC0415  before keras: it chooses the backend

    import keras  # noqa: PLC0415  # isort: skip

    from headwater import tf  # noqa: PLC0415
    from headwater.keras.layers import DynamicEmbedding  # noqa: PLC0415

    train, test = records(tf, given)

    def inputs(features, clicked):
        """Joins the numbers to one input; bags stay sparse tensors."""
        numbers = tf.concat([features[name] for name in NUMBERS], 1)
        return {"numbers": numbers, **{name: features[name] for name in (*CATEGORIES, *BAGS)}}, clicked[:, None]

    strategy = ParameterServerStrategy()
    with strategy.scope():
        keras.utils.set_random_seed(1)
        numbers = keras.Input((len(NUMBERS),), name="numbers")
        ids = {name: keras.Input((None,), dtype="int64", name=name) for name in (*CATEGORIES, *BAGS)}
        categories, bags = (keras.ops.stack([ids[name] for name in names], 1) for names in (CATEGORIES, BAGS))
        one = DynamicEmbedding(DIM, combiner="sum", name="of_categories")(categories)
        several = DynamicEmbedding(DIM, combiner="mean", name="of_bags")(bags)
        every = [numbers, keras.layers.Flatten()(one), keras.layers.Flatten()(several)]
        hidden = keras.layers.Dense(64, "relu")(keras.layers.Concatenate()(every))
        score = keras.layers.Dense(1, "sigmoid")(keras.layers.Dense(32, "relu")(hidden))
        model = keras.Model({"numbers": numbers, **ids}, score, name="clicks")
        model.compile(keras.optimizers.Adagrad(0.05), "binary_crossentropy", metrics=[keras.metrics.AUC(name="auc")])
    points = []
    for turn in range(given.rounds):
        model.fit(batches(tf, train, None).map(inputs), steps_per_epoch=given.steps, epochs=1, verbose=0)
        if strategy.is_chief:
            loss, reached = model.evaluate(batches(tf, test, 1, shuffle=False).map(inputs), verbose=0)
            points.append(((turn + 1) * given.steps, loss, reached))
            print(f"step {points[-1][0]}: loss {loss:.4f}, AUC {reached:.4f}", flush=True)
    if strategy.is_chief:
        path = given.folder / "clicks.keras"
        model.save(path)
        first = batches(tf, test, 1, shuffle=False).map(inputs).take(1)
        clicks = keras.models.load_model(path).predict(first, verbose=0)[:5]
        print(f"served from {path}: {listed(clicks)}", flush=True)
    return points


def records(tf, given):
    """Returns the files of training records and of held-out records."""
    paths = given.folder / "train.tfrecord", given.folder / "test.tfrecord"
    for path, count, seed in zip(paths, (given.records, given.records // 5), (1, 2), strict=True):
        write_records(tf, path, count, seed)
    return paths


def listed(numbers):
    """Returns the numbers as text with three decimals."""
    return ", ".join(f"{number:.3f}" for number in numbers.ravel())


def draw(folder, picture):
    """Saves a plot of loss and AUC on held-out records by step, of all variants that were run."""
    import matplotlib  # noqa: PLC0415  only for the picture

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for path in sorted(folder.glob("*.json")):
        steps, losses, reached = zip(*json.loads(path.read_text()), strict=True)
        left.plot(steps, losses, marker="o", label=path.stem)
        right.plot(steps, reached, marker="o", label=path.stem)
    left.set(xlabel="step", ylabel="loss on held-out records")
    right.set(xlabel="step", ylabel="AUC on held-out records")
    left.legend()
    figure.savefig(picture, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("way", choices=["estimator", "keras"])
    parser.add_argument("--folder", type=Path, default=Path("build/clicks"), help="for records, models and the picture")
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5, help="how often to evaluate")
    parser.add_argument("--steps", type=int, default=100, help="steps before each evaluation")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    points = by_estimator(given) if given.way == "estimator" else by_keras(given)
    if points:
        (given.folder / f"{given.way}.json").write_text(json.dumps(points))
        draw(given.folder, given.folder / "clicks.png")
        print(f"see {given.folder / 'clicks.png'}", flush=True)


if __name__ == "__main__":
    main()
