"""Accounting of the applied examples, so that each counts once in an epoch, even if workers are lost.

`ledger` assigns ranges of an epoch and records the outcome of each; `journal` writes that to a file; `audit` reads such
files and checks whether every epoch was complete. `order` is the order of the examples of an epoch.
"""
