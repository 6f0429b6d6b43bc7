"""Parameter servers for any pytree: server, client, membership, rounds, consistency, exactly-once accounting.

Graphs and Keras do not belong here; both stand on these parts, and importing this package loads neither. Start with
`layout` (which ``ps`` holds which leaf), then `host` (the server with its `Updater`), `client` (a worker's end), and
`pytrees`, the API of JAX programs.
"""
