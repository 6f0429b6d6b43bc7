"""Tables on parameter servers: rows by key, distributed over the ``ps`` tasks.

`requests` are the requests of workers and `protocol` their encoding; `client` sends them and `host` answers them.
`cluster` starts the tables of a training.
"""
