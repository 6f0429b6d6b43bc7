"""Passes from a graph and a request to one plan per task: prune, place, partition, schedule.

`headwater.graph.master` applies them in this order. Three further passes make the plans cheaper: `merge`, `bags` and
`lookups`. Each pass is a pure function from one value to the next; functions ``verify_*`` check the values in tests.
"""
