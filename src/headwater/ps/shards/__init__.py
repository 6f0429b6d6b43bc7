"""Parts of a set of parameters that move between ``ps`` tasks while training continues.

With ``shards=8`` a set is divided into eight parts, however many ``ps`` there are, and each ``ps`` has some of them. A
part moves as a whole: values, the optimizer's state, and the record of workers' requests. `headwater.ps.shards.places`
has the placement; `headwater.ps.shards.holder` sends and receives shards on a ``ps``; a worker finds them with
`headwater.ps.shards.links`; `headwater.ps.shards.moves` decides on moves.
"""
