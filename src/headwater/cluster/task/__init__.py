"""A task of a cluster, whichever services it provides: its listener, its frames, its status and its lifetime.

Nothing in here imports JAX: only services compute.
"""
