"""TensorFlow's names for what Headwater does: spellings, argument orders and defaults, no behaviour."""
