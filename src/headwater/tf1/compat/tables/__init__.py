"""The names of the namespace ``tf``: for each, where it lives."""
