"""Which examples were applied: so that each of an epoch counts once, whatever becomes of the workers.

`ledger` hands out ranges of an epoch and knows what became of each; `journal` writes that to a file; `audit` reads such
files and says whether every epoch was whole. `order` is the order in which an epoch has its examples.
"""
