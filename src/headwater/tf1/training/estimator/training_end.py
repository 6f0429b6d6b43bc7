"""A file in an estimator's folder that tells its evaluator that training has ended.

An evaluator has no connection to other tasks. Otherwise it could recognise the last checkpoint only by ``max_steps``,
which a training does not reach if its data end earlier or a hook stops it. So the chief writes the file when training
has ended, and removes the file of an earlier training when it starts.
"""

from __future__ import annotations

import json
import os
import time

from headwater.data.io import files

_NAME = "training-ended.json"
# A note that is older than the evaluator may be of an earlier training, until this training's chief begins.
_OLD_AFTER_S = 60.0


class TrainingEnd:
    """The file in one folder.

    Args:
      model_dir: the estimator's.
    """

    def __init__(self, model_dir: str) -> None:
        self._folder = model_dir
        self._path = os.path.join(model_dir, _NAME)
        self._began = time.time()

    def clear(self) -> None:
        """Removes the file of an earlier training; called when training begins."""
        if files.exists(self._path):
            files.remove(self._path)

    def write(self, checkpoint: str | None) -> None:
        """Writes the file; called when training has ended, with its last checkpoint."""
        files.makedirs(self._folder)
        with files.atomic_write(self._path) as file:
            file.write(json.dumps({"at": time.time(), "checkpoint": checkpoint}).encode())

    def read(self) -> bool:
        """Returns whether training has ended.

        A file written before this evaluator started may be of an earlier training that the chief is about to replace:
        it counts only once this evaluator has been running for a while.
        """
        if not files.exists(self._path):
            return False
        with files.open_file(self._path, "rb") as file:
            at = float(json.loads(file.read())["at"])
        return at >= self._began or time.time() >= self._began + _OLD_AFTER_S
