"""Graphs: operations, tensors, scopes, collections, gradients, and their serialised form."""
