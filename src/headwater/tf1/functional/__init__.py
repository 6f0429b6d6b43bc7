"""Functions that add operations to the default graph, with TensorFlow 1.15's names and arguments.

Importing any of them enables Python's operators on tensors, and registers the gradient rules.
"""

from __future__ import annotations

from headwater.tf1.functional import gradients as gradients
from headwater.tf1.functional import operators as operators
from headwater.tf1.functional import ragged_operators as ragged_operators
