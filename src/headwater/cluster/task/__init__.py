"""The parts of a task that do not depend on its services: listener, frames, status and lifetime.

No module of this package imports JAX; only services compute.
"""
