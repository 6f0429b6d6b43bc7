"""Parameters on tasks of job ``ps``: workers bring gradients, an optimizer on the ``ps`` applies them.

`layout` says which ``ps`` has what; `protocol`, how both ends talk; `host` is the end that has the values, with an
`Updater` that applies an optimizer; `client` is a worker's end. `pytrees` is what JAX programs use; Keras's strategies
stand on the same parts. Importing this package loads neither Keras nor graphs.
"""
