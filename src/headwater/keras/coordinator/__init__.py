"""Remote function calls by a coordinator: `coordinator` on the chief, `calls` on workers, `values` for the encoding."""
