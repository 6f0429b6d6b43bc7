"""Conditions, loops and arrays of TensorFlow 0.12."""

import tensorflow as tf

n = tf.placeholder(tf.int32, [])
squares = tf.TensorArray(tf.int32, size=n)
_, squares = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a.write(i, i * i)), [0, squares])
stacked = squares.stack()
total = tf.cond(tf.greater(n, 3), lambda: tf.reduce_sum(stacked), lambda: tf.constant(-1))
size = tf.case([(tf.less(n, 2), lambda: tf.constant("few"))], default=lambda: tf.constant("many"))
scanned = tf.scan(lambda a, x: a + x, stacked)
mapped = tf.map_fn(lambda x: x + 1, stacked)
folded = tf.foldl(lambda a, x: a * 2 + x, stacked)
with tf.Session() as session:
    found = [session.run([total, size, scanned, mapped, folded], {n: count}) for count in (1, 5)]
print("0.12: %s" % [(int(t), s.decode(), a.tolist(), b.tolist(), int(c)) for t, s, a, b, c in found])
