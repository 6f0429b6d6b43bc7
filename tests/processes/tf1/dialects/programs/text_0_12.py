"""Lines of text in TensorFlow 0.12: a reader, columns, vocabularies as tables, sparse values."""

import os
import sys

import tensorflow as tf

path = os.path.join(sys.argv[1], "lines.csv")
with open(path, "w") as file:
    file.write(
        "".join("%d,%s,%.1f\n" % (i, word, i / 2.0) for i, word in enumerate(["red", "green", "blue", "red", "pink"]))
    )
names = tf.train.string_input_producer([path], num_epochs=1)
_, line = tf.TextLineReader().read(names)
number, word, value = tf.decode_csv(line, record_defaults=[[0], [""], [0.0]])
with open(os.path.join(sys.argv[1], "vocabulary"), "w") as file:
    file.write("red\ngreen\nblue\n")
table = tf.contrib.lookup.string_to_index_table_from_file(file.name, default_value=-1)
index = table.lookup(word)
words = tf.string_split([word], "e")
numbers, indices, values, parts = tf.train.batch(
    [number, index, value, tf.size(words.values)], 3, allow_smaller_final_batch=True
)
with tf.Session() as session:
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coordinator)
    found = []
    try:
        while not coordinator.should_stop():
            found += zip(*[part.tolist() for part in session.run([numbers, indices, values, parts])])
    except tf.errors.OutOfRangeError:
        coordinator.request_stop()
    coordinator.join(threads)
print("0.12: %s" % found)
