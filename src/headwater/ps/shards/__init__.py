"""Parts of a set of parameters that move between ``ps`` tasks while training continues.

With ``shards=8`` a set is divided into eight shards, however many ``ps`` there are. Each ``ps`` owns some of them.
A shard moves as a whole: values, the optimizer's state, and the record of workers' requests.

- `headwater.ps.shards.places` represents the places of shards and plans moves;
- `headwater.ps.shards.holder` serves, sends and receives shards on a ``ps``;
- `headwater.ps.shards.links` routes a worker to the owner of a shard;
- `headwater.ps.shards.moves` requests the moves.
"""
