"""``headwater run``: a cluster of tasks on this machine.

- `plan`: the processes to start, with their addresses and environments.
- `job`: the state machine: decides the next actions from events; performs no I/O.
- `shell`: performs the actions: processes, pipes, signals.
- `output`: shows lines of the tasks, on a terminal or elsewhere.
- `status`: the progress of the tasks.

Process handling shared with the platform's backends is in `headwater.platform.host`.
"""
