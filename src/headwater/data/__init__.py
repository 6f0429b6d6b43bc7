"""Input pipelines: sequences of elements, each a tuple or dictionary of NumPy arrays, read, changed, shuffled, batched.

`headwater.data.dataset.Dataset` is what programs see. A dataset is a tree of nodes (`headwater.data.node.Node`), which
know how to go over their elements, singly or in blocks of many. Nothing here knows of graphs or of JAX: functions are
Python functions of arrays; those of graphs come from the layers above.
"""
