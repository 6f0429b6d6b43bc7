"""Graphs written by TensorFlow: control flow with `Switch` and `Merge`, resource variables, rules of older versions."""
