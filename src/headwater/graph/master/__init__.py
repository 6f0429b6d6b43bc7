"""Masters: turn requests into plans, send the plans to the tasks, and run steps on them.

A master belongs to a task (its server's process) or, for a session without a server, to the process alone.
"""
