"""Parameter servers for any pytree: server, client, membership, rounds, consistency, exactly-once accounting.

This package does not depend on graphs or Keras, which are built on it. Start with
`layout` (which ``ps`` holds which leaf), then `host` (the server with its `Updater`), `client` (a worker's end), and
`pytrees`, the API of JAX programs.
"""
