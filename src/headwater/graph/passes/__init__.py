"""From a graph and a request to one plan per task: prune, place, partition, schedule.

Each pass is a pure function from one value to the next, with a ``verify_*`` beside it that says what well-formed
output is. `headwater.graph.master` applies them one after the other.
"""
