"""The names of the namespace ``tf``, with the modules that define them."""
