"""A task's runtime: its devices, its state, and the executor of plans."""
