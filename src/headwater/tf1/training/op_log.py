"""``tf.profiler.write_op_log``: a file with data for TensorFlow's profiler that a graph does not contain."""

from __future__ import annotations

import linecache
import os
from typing import Any, Final

from headwater.data.io import files
from headwater.data.io.tfprof_protos import OpLogProto
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.graph import Graph
from headwater.graph.operation import Operation
from headwater.tf1.training.model_analysis import float_ops_of, ran
from headwater.tf1.variables.variables import Variable

FILE_NAME: Final = "tfprof_log"
TRAINABLE: Final = "_trainable_variables"


class _Strings:
    """Table of the strings of a log, which stores each string once and refers to it by number."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self._numbers: dict[str, int] = {text: number for number, text in log.id_to_string.items()}
        self.number_of("none")

    def number_of(self, text: str) -> int:
        if text not in self._numbers:
            self._numbers[text] = number = len(self._numbers)
            self._log.id_to_string[number] = text
        return self._numbers[text]


def write_op_log(
    graph: Graph | None, log_dir: str, op_log: Any = None, run_meta: object = None, add_trace: bool = True
) -> None:
    """Writes ``tfprof_log`` into a folder: operations on floats, trainable variables, and where operations were made.

    Args:
      graph: the graph; the default one if None.
      log_dir: the folder, which exists.
      op_log: an `OpLogProto` with further entries, which take precedence over the graph's; it is not changed.
      run_meta: a ``RunMetadata`` of a step: if given, only operations that ran in it are included.
      add_trace: whether to include the line of the program that made each operation.
    """
    graph = get_default_graph() if graph is None else graph
    log = OpLogProto()
    if op_log is not None:
        log.ParseFromString(op_log.SerializeToString())
    strings = _Strings(log)
    entries = {entry.name: entry for entry in log.log_entries}
    trainable = {
        variable.op.name
        for variable in graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)
        if isinstance(variable, Variable)
    }
    took = None if run_meta is None else ran(run_meta)
    for op in graph.get_operations():
        if took is not None and op.name not in took and op.name not in trainable:
            continue
        count = float_ops_of(op)
        if not (count or op.name in trainable or add_trace):
            continue
        if op.name not in entries:
            entries[op.name] = log.log_entries.add(name=op.name)
        entry = entries[op.name]
        entry.float_ops = entry.float_ops or count
        if op.name in trainable and TRAINABLE not in entry.types:
            entry.types.append(TRAINABLE)
        if add_trace:
            _add_trace(entry, op, strings)
    with files.atomic_write(os.path.join(log_dir, FILE_NAME)) as file:
        file.write(log.SerializeToString())


def _add_trace(entry: Any, op: Operation, strings: _Strings) -> None:
    path, _, line = op.source.rpartition(":")
    if path:
        text = linecache.getline(path, int(line)).strip()
        entry.code_def.traces.add(lineno=int(line), file_id=strings.number_of(path), line_id=strings.number_of(text))
