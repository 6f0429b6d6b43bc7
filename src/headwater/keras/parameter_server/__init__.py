"""Parameter servers: values live on tasks of job ``ps``, which apply the gradients that workers compute.

`layout` says which ``ps`` has what; `protocol`, how both ends talk; `host` is the end that has the values, with an
`Updater` that applies an optimizer; `client` is a worker's end. On them stand `pytrees` (JAX and optax) and `strategy`
(Keras).
"""
