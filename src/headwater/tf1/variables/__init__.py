"""Variables of a graph: creation, scopes, partitioning, initial values and updates."""
