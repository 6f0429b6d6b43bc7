"""Python's control flow and generators in datasets of TensorFlow 1.4 and later."""

import tensorflow as tf


def made():
    for i in range(6):
        yield {"x": i, "name": "n%d" % i}


def changed(row):
    if row["x"] % 2 < 1:
        value = row["x"] * 10
    else:
        value = -row["x"]
    return value, tf.string_join([row["name"], "!"])


dataset = tf.data.Dataset.from_generator(made, {"x": tf.int64, "name": tf.string}, {"x": [], "name": []})
dataset = dataset.map(changed).filter(lambda value, name: value > -4).batch(2)
value, name = dataset.make_one_shot_iterator().get_next()
with tf.train.SingularMonitoredSession() as session:
    found = []
    while not session.should_stop():
        values, names = session.run([value, name])
        found.append((values.tolist(), [one.decode() for one in names.tolist()]))
        if len(found) == 3:
            break
print("1.4: %s" % found)
