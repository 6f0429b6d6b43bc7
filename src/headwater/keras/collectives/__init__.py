"""All-reduce, all-gather and broadcast of arrays among processes, for mirrored training.

`group` connects the processes, `collective` moves the arrays, `pulse` detects processes without heartbeats.
"""
