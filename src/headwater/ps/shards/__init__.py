"""Parts of a set of parameters that move between ``ps`` tasks while training continues.

With ``shards=8`` a set is divided into eight shards, however many ``ps`` there are. Each ``ps`` owns some of them.
A shard moves as a whole: values, the optimizer's state, and the record of workers' requests.

- `headwater.ps.shards.places` represents the places of shards, `headwater.ps.replicas.places` plans moves;
- `headwater.ps.replicas.holder` sets the placement of a ``ps``'s replicas, which move by a change of views;
- `headwater.ps.shards.links` routes a worker to the owner of a shard;
- `headwater.ps.shards.moves` requests the moves.
"""
