"""TensorFlow's names for Headwater's functions: spellings, argument orders and defaults, but no behaviour."""
