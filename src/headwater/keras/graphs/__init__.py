"""Keras on tensors of graphs: functions, initializers and layers that programs of sessions and estimators call.

Start with `dispatch`: every function of Keras's backend adds operations to a graph if an argument is a tensor of one.
`layers` creates a graph's variables for a layer that is called on such a tensor.
"""
