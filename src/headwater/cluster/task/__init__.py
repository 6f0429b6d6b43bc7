"""A task of a cluster, whatever it does: where it listens, which frames it takes, and what it tells of itself.

Nothing in here imports JAX: what a task computes with is for its services to say.
"""
