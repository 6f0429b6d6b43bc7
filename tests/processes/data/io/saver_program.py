"""Saves one checkpoint after the other until it is killed. Arguments: folder, names (``same`` or ``numbered``).

Prints a line before each save. All values of a checkpoint are its number, in two shards that are merged.
"""

import sys

import numpy as np

from headwater.data.io.bundle_writer import BundleWriter, merge_bundles
from headwater.tf1.training.checkpoint_reader import load_variable
from headwater.tf1.training.checkpoint_state import latest_checkpoint, remove_checkpoint, update_checkpoint_state

folder, names = sys.argv[1:]
newest = latest_checkpoint(folder)
number = int(load_variable(newest, "a")[0]) if newest else 0
kept = [newest] if newest else []
while True:
    number += 1
    print(number, flush=True)
    shards = [f"{folder}/temporary/part-{shard}" for shard in range(2)]
    for name, shard in zip("ab", shards, strict=True):
        with BundleWriter(shard) as writer:
            writer.add(name, np.full(300_000, number))
    prefix = f"{folder}/model" if names == "same" else f"{folder}/model-{number}"
    merge_bundles(shards, prefix)
    if prefix not in kept:
        kept.append(prefix)
    update_checkpoint_state(folder, prefix, kept[-2:])
    while len(kept) > 2:
        remove_checkpoint(kept.pop(0))
