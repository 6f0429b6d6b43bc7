"""`WarmStartSettings`: variables of an estimator to initialise from a checkpoint."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from headwater.tf1.training.checkpoint_state import latest_checkpoint
from headwater.tf1.training.warm_start import warm_start

if TYPE_CHECKING:
    from headwater.graph.types import Structure


class WarmStartSettings:
    """Variables to initialise from a checkpoint; see `headwater.tf1.training.warm_start.warm_start`."""

    def __init__(
        self,
        ckpt_to_initialize_from: str,
        vars_to_warm_start: Structure = ".*",
        var_name_to_vocab_info: Structure = None,
        var_name_to_prev_var_name: Structure = None,
    ) -> None:
        if not ckpt_to_initialize_from:
            raise ValueError("`ckpt_to_initialize_from` MUST be set in WarmStartSettings")
        self.ckpt_to_initialize_from = ckpt_to_initialize_from
        self.vars_to_warm_start = vars_to_warm_start
        self.var_name_to_vocab_info: Any = var_name_to_vocab_info or {}
        self.var_name_to_prev_var_name: Any = var_name_to_prev_var_name or {}

    def apply(self) -> None:
        """Applies the settings to the variables of the default graph."""
        path = self.ckpt_to_initialize_from
        found = latest_checkpoint(path) if os.path.isdir(path) else path
        if found is None:
            raise ValueError(f"no checkpoint in {path}")
        warm_start(found, self.vars_to_warm_start, self.var_name_to_vocab_info, self.var_name_to_prev_var_name)
