"""Parts of a set of parameters that move between ``ps`` tasks while training goes on.

With ``shards=8`` a set is divided into eight parts, however many ``ps`` there are, and each ``ps`` has some of them. A
part moves as a whole: values, the optimizer's state, and what it knows of workers' requests. Who has which is in
`headwater.ps.shards.places`; a ``ps`` gives and takes in `headwater.ps.shards.holder`; a worker finds
them with `headwater.ps.shards.links`; who asks for moves is in `headwater.ps.shards.moves`.
"""
