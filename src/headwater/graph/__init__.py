"""Graphs: operations, tensors, scopes, collections, gradients, and their serialised form."""

from headwater.graph.context import graphs_are_made_by
from headwater.graph.graph import Graph

graphs_are_made_by(Graph)
