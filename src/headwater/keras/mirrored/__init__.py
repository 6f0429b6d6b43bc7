"""Mirrored training: every replica has all variables, and each step applies the sum of the replicas' gradients.

The processes and their channels are in `headwater.keras.collectives`.

- `cores`: divides a machine's cores among its processes.
- `replicas`: all replicas, as seen by one process.
- `lockstep`: runs the replicas of one process in turn, for custom training loops.
- `step_vector`: all values that a step exchanges, as one vector.
- `steps`: the step functions of a model: compute, exchange, apply.
- `shards`: divides the program's data among the processes.
- `inputs`: divides data for custom training loops.
- `model`: ``fit``, ``evaluate``, ``predict`` and ``save`` of a model in the scope.
- `callbacks`: adapts the program's callbacks for each process.
- `strategy`: the strategies; `settings`: their options.
"""
