"""Graphs that TensorFlow wrote: control flow by `Switch` and `Merge`, resource variables, rules of older versions."""
