"""Processes that add up, gather and broadcast arrays together, as mirrored training needs it.

`group` finds the processes, `collective` moves the arrays, `pulse` notices a process that gives no sign of life.
"""
