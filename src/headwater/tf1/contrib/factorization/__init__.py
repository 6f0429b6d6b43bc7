"""``tf.contrib.factorization``: clusters of points by k-means, whole or in mini-batches, with shared centers."""
