"""``headwater run``: a cluster of tasks on this machine.

- `plan`: what to start, with which addresses and environment.
- `job`: what to do next, as a function of what has happened; starts and reads nothing.
- `shell`: does it: processes, pipes, signals.
- `output`: lines of the tasks, on a terminal or not.
- `status`: how far the tasks are.

What deals with processes of this machine for the platform, too, is in `headwater.platform.host`.
"""
