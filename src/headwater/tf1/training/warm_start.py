"""Warm start: initialisation of variables with values of a checkpoint."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headwater.data.io.files import Path, as_path
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.convert import constant
from headwater.tf1.functional.arrays import placeholder
from headwater.tf1.functional.control_flow import group
from headwater.tf1.functional.indexing import slice
from headwater.tf1.training.checkpoint_reader import CheckpointReader, load_checkpoint
from headwater.tf1.training.checkpoint_state import latest_checkpoint
from headwater.tf1.training.saver import Saver
from headwater.tf1.training.vocabularies import VocabInfo, remapped
from headwater.tf1.variables.partitioned import PartitionedVariable
from headwater.tf1.variables.scope_settings import VariableScope

if TYPE_CHECKING:
    from headwater.graph.operation import Operation
    from headwater.graph.types import SessionLike
    from headwater.tf1.variables.variables import Variable


def _parts(variable: object) -> list[Any]:
    return list(variable) if isinstance(variable, PartitionedVariable | list | tuple) else [variable]  # pyright: ignore[reportUnknownArgumentType]


def _by_name(name: str) -> Any:
    """The variable of the default graph with this name, in all its parts."""
    listed = get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES)
    found = [item for item in listed if item.op.name == name or item.op.name.startswith(f"{name}/part_")]
    if not found:
        raise ValueError(f"Assignment map with scope or variable name {name} doesn't match any variable of the graph")
    return found


def _checkpoint_path(path: Path) -> str:
    text = as_path(path)
    found = latest_checkpoint(text) if os.path.isdir(text) else text
    if found is None:
        raise ValueError(f"Couldn't find 'checkpoint' file or checkpoints in given directory {text}")
    return found


def init_from_checkpoint(ckpt_dir_or_file: Path, assignment_map: Mapping[str, object]) -> None:
    """Replaces the initializers of some variables by their values in a checkpoint.

    Args:
      ckpt_dir_or_file: a checkpoint, or a folder, of which the newest checkpoint is used.
      assignment_map: from names in the checkpoint to variables, their names, or lists of parts; from a scope that ends
        in ``/`` to another such scope, for all variables in it.

    Raises:
      ValueError: a name is missing in the checkpoint or the graph, or shapes differ.
    """
    path = _checkpoint_path(ckpt_dir_or_file)
    reader = load_checkpoint(path)
    shapes = reader.get_variable_to_shape_map()
    for source, target in assignment_map.items():
        if isinstance(target, VariableScope):
            target = f"{target.name}/" if target.name else "/"
        if isinstance(target, str) and target.endswith("/"):
            _warm_start_scope(path, shapes, source, target)
        elif isinstance(target, str):
            _warm_start_variable(path, shapes, source, _by_name(target))
        else:
            _warm_start_variable(path, shapes, source, _parts(target))


def _warm_start_scope(path: str, shapes: Mapping[str, Sequence[int]], source: str, target: str) -> None:
    prefix = "" if target == "/" else target
    outer = "" if source == "/" else source
    if outer and not outer.endswith("/"):
        raise ValueError(f"Assignment map with scope only name {target} should map to scope only {source}: end it in /")
    whole: dict[str, list[Variable]] = {}
    for variable in get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES):
        name = re.sub(r"/part_\d+$", "", variable.op.name)
        if name.startswith(prefix):
            whole.setdefault(name, []).append(variable)
    for name, parts in whole.items():
        stored = outer + name.removeprefix(prefix)
        if stored not in shapes:
            raise ValueError(f"Tensor {stored} ({outer} in {prefix or '/'}) is not found in {path} checkpoint")
        _warm_start_variable(path, shapes, stored, parts)


def _warm_start_variable(path: str, shapes: Mapping[str, Sequence[int]], name: str, parts: Sequence[Any]) -> None:
    if name not in shapes:
        raise ValueError(f"Tensor {name} is not found in {path} checkpoint {sorted(shapes)}")
    graph = get_default_graph()
    for part in parts:
        info = getattr(part, "_save_slice_info", None)
        wanted = list(info.full_shape) if info is not None else part.shape.as_list()
        if list(shapes[name]) != wanted:
            raise ValueError(
                f"Shape of variable {part.name} ({wanted}) doesn't match with shape of tensor {name} "
                f"({list(shapes[name])}) from checkpoint reader."
            )
        with graph.device("/device:CPU:0"), graph.name_scope(f"checkpoint_initializer/{part.op.name}"):
            inputs = [constant(path), constant([name]), constant([info.spec if info is not None else ""])]
            attrs = {"dtypes": (part.dtype.base_dtype,)}
            value = graph.create_op("RestoreV2", inputs, attrs).outputs[0]
            value.set_shape(part.shape)
        with graph.colocate_with(part.op):
            part.initialize_with(value)


def assign_from_checkpoint(
    model_path: Path, var_list: Sequence[Variable], ignore_missing_vars: bool = False
) -> tuple[Operation, dict[object, object]]:
    """Returns an operation that assigns values of a checkpoint to variables, and the values to feed to it.

    Args:
      model_path: the checkpoint.
      var_list: variables, or a dictionary from names in the checkpoint to variables.
      ignore_missing_vars: omit variables that are missing in the checkpoint.

    Raises:
      ValueError: the checkpoint lacks a variable, or has it with another shape.
    """
    reader = load_checkpoint(model_path)
    feeds: dict[object, object] = {}
    updates: list[Any] = []
    for name, variable in _named(var_list).items():
        if not reader.has_tensor(name):
            if ignore_missing_vars:
                continue
            raise ValueError(f"Checkpoint is missing variable [{name}]")
        value = reader.get_tensor(name)
        if variable.shape.as_list() != list(value.shape):
            raise ValueError(
                f"Total size of new array must be unchanged for {name} lh_shape: [{value.shape}], rh_shape: "
                f"[{variable.shape.as_list()}]"
            )
        fed = placeholder(variable.dtype.base_dtype, value.shape, name=f"placeholder/{variable.op.name}")
        updates.append(variable.assign(fed))
        feeds[fed] = value
    return group(*updates), feeds


def _named(var_list: Sequence[Variable] | Mapping[str, Variable]) -> dict[str, Variable]:
    if isinstance(var_list, Mapping):
        return dict(var_list)  # pyright: ignore[reportUnknownArgumentType]
    return {variable.op.name: variable for variable in var_list}


def assign_from_checkpoint_fn(
    model_path: Path, var_list: Sequence[Variable], ignore_missing_vars: bool = False, reshape_variables: bool = False
) -> Callable[[Any], None] | None:
    """Returns a function of a session that assigns a checkpoint's values to variables; None if there are none.

    Raises:
      ValueError: ``var_list`` is empty.
    """
    if not var_list:
        raise ValueError("var_list cannot be empty")
    wanted = _named(var_list)
    if ignore_missing_vars:
        reader = CheckpointReader(model_path)
        wanted = {name: variable for name, variable in wanted.items() if reader.has_tensor(name)}
    if not wanted:
        return None
    saver = Saver(wanted, reshape=reshape_variables)

    def restore(session: SessionLike) -> None:
        saver.restore(session, as_path(model_path))

    return restore


def warm_start(
    ckpt_to_initialize_from: Path,
    vars_to_warm_start: Any = ".*",
    var_name_to_vocab_info: Mapping[str, VocabInfo] | None = None,
    var_name_to_prev_var_name: Any = None,
) -> None:
    """Applies `init_from_checkpoint` to the variables that match a pattern.

    Args:
      vars_to_warm_start: a regular expression for names of trainable variables, a list of them for all variables, a
        list of variables, or None for no variables.
      var_name_to_vocab_info: from names of variables to the vocabularies of their rows or columns.
      var_name_to_prev_var_name: from names of variables to their names in the checkpoint.

    Raises:
      ValueError: ``vars_to_warm_start`` of another type, or a name that no variable has.
    """
    renamed: Mapping[str, str] = var_name_to_prev_var_name or {}
    graph = get_default_graph()
    if vars_to_warm_start is None:
        return
    if not hasattr(vars_to_warm_start, "__iter__"):
        raise ValueError(f"vars_to_warm_start must be a list or str, not {type(vars_to_warm_start)}")
    if isinstance(vars_to_warm_start, str):
        chosen = graph.get_collection(GraphKeys.TRAINABLE_VARIABLES, vars_to_warm_start)
    else:
        chosen: list[Any] = []
        for item in vars_to_warm_start:
            chosen += graph.get_collection(GraphKeys.GLOBAL_VARIABLES, item) if isinstance(item, str) else [item]
    whole: dict[str, list[Variable]] = {}
    for variable in chosen:
        for part in _parts(variable):
            whole.setdefault(re.sub(r"/part_\d+$", "", part.op.name), []).append(part)
    for what, given in (
        ("var_name_to_vocab_info", var_name_to_vocab_info),
        ("var_name_to_prev_var_name", var_name_to_prev_var_name),
    ):
        unused = sorted(set(given or {}) - whole.keys())
        if unused:
            raise ValueError(
                f"You provided the following variables in {what} that were not used: {unused}. Perhaps they are "
                f"misspelled; there are {sorted(whole)}"
            )
    for name, info in (var_name_to_vocab_info or {}).items():
        _warm_start_remapped(_checkpoint_path(ckpt_to_initialize_from), renamed.get(name, name), info, whole.pop(name))
    init_from_checkpoint(ckpt_to_initialize_from, {renamed.get(name, name): parts for name, parts in whole.items()})


def _warm_start_remapped(path: str, name: str, words: VocabInfo, parts: Sequence[Any]) -> None:
    """Like `_warm_start_variable`, but with rows or columns remapped by vocabularies."""
    for part in parts:
        info = getattr(part, "_save_slice_info", None)
        whole = list(info.full_shape) if info is not None else part.shape.as_list()
        with get_default_graph().name_scope(f"checkpoint_initializer/{part.op.name}"):
            value = remapped(path, name, words, whole, part.dtype.base_dtype)
            if info is not None:
                value = slice(value, list(info.var_offset), list(info.var_shape))
        with get_default_graph().colocate_with(part.op):
            part.initialize_with(value)
