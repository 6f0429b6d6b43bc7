"""Two copies of what a ``ps`` of graphs holds; see `headwater.state`."""
