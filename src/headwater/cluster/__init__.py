"""Clusters and their tasks: specs, device names, transport, the task shell, liveness, telemetry.

Services of a task (graph steps, parameters, tables) belong to their own packages; nothing here depends on the meaning
of arrays. Start with `spec` and `config`, then `task.shell`, on which every service of a task runs.
"""
