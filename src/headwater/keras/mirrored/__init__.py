"""Mirrored training: every replica holds all variables, and each step adds up what the replicas found.

- `group`: all processes of the job, each with a channel to each other.
- `collective`: sums, broadcasts and gathers over those channels.
- `cores`: each process its share of the machine.
- `replicas`: all replicas as one process sees them.
- `lockstep`: the replicas of one process at the same time, for loops of a program's own.
- `layout`: everything that a step exchanges, as one vector.
- `steps`: the step functions of a model: compute, exchange, apply.
- `shards`: which rows of the program's data are whose.
- `inputs`: the same for loops of a program's own.
- `model`: what becomes of a model in the scope: its ``fit``, ``evaluate``, ``predict`` and ``save``.
- `callbacks`: what each process does with the program's callbacks.
- `strategy`: the strategies themselves, `settings`: what programs give them.
"""
