"""Masters: they turn requests into plans, give them to their tasks, and run steps over them.

A master belongs to a task (its server's process) or, for a session without a server, to the process alone.
"""
