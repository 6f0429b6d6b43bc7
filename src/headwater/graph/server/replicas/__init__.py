"""Replication of a graph ``ps`` on two processes; see `headwater.state`."""
