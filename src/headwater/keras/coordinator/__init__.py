"""One task says what all workers do: `coordinator` at its end, `calls` at a worker's, `values` on the way."""
