"""Headwater under the names that the cases of this folder use, from the layers below `headwater.compat`."""

from __future__ import annotations

from types import SimpleNamespace

from headwater.build import arrays, indexing, linalg, math, reductions, variable_lists, variables
from headwater.graph.graph import Graph
from headwater.session import Session
from headwater.training import optimizers

tf = SimpleNamespace(
    Graph=Graph,
    Session=Session,
    Variable=variables.Variable,
    placeholder=arrays.placeholder,
    square=math.square,
    matmul=linalg.matmul,
    gather=indexing.gather,
    reduce_mean=reductions.reduce_mean,
    reduce_sum=reductions.reduce_sum,
    global_variables=variable_lists.global_variables,
    global_variables_initializer=variable_lists.global_variables_initializer,
    train=optimizers,
)
