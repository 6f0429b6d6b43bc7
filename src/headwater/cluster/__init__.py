"""Clusters and their tasks: specs, device names, transport, the task shell, liveness, telemetry.

Whatever a task serves (graph steps, parameters, tables) belongs to the package of that service; nothing here knows
arrays' meaning. Start with `spec` and `config`, then `task.shell`, on which every service of a task runs.
"""
