"""Graphs written by TensorFlow: control flow with `Switch` and `Merge`, resource variables, and conventions of older
versions."""
