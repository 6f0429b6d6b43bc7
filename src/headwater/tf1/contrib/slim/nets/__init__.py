"""``tf.contrib.slim.nets``: networks for images, with the variables of their published checkpoints."""
