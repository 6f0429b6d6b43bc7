"""Passes from a graph and a request to one plan per task: prune, place, partition, schedule.

Each pass is a pure function from one value to the next, with a function ``verify_*`` that checks its output.
`headwater.graph.master` applies them in this order.
"""
