"""Functions of ``tf.contrib.framework`` for names, sums, placeholders and devices."""
