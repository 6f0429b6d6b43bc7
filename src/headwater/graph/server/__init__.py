"""Servers of graphs: the task that runs plans, its services, replication and saved state."""
