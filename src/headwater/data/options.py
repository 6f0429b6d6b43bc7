"""Options of a whole pipeline."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike


class AutoShardPolicy(enum.IntEnum):
    """Policy for dividing a dataset between the workers of a distributed `fit`.

    Attributes:
      OFF: not divided; every worker iterates over the whole dataset.
      AUTO: by file where possible, otherwise by element.
      FILE: each worker gets some of the input files.
      DATA: each worker gets every n-th element.
      HINT: at the program's ``shard(SHARD_HINT, SHARD_HINT)``.
    """

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class ExternalStatePolicy(enum.IntEnum):
    """Treatment of state outside a pipeline when it is saved; has no effect, since pipelines are not saved."""

    WARN = 0
    IGNORE = 1
    FAIL = 2


class _Settings:
    """Settings with fixed names. Other names are rejected, so that typing errors are noticed."""

    _defaults: dict[str, Any] = {}

    def __init__(self) -> None:
        for name, value in self._defaults.items():
            object.__setattr__(self, name, value() if isinstance(value, type) else value)

    def __setattr__(self, name: str, value: TensorLike) -> None:
        if name not in self._defaults:
            raise AttributeError(f"Cannot set the property {name} on {type(self).__name__}.")
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(self) == vars(other)

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    def merged(self, other: object) -> Any:
        """Returns these settings, overridden by settings of ``other`` that differ from their default."""
        result = type(self)()
        for name, default in self._defaults.items():
            mine, theirs = getattr(self, name), getattr(other, name)
            if isinstance(mine, _Settings):
                chosen = mine.merged(theirs)
            else:
                chosen = mine if theirs == default else theirs
            object.__setattr__(result, name, chosen)
        return result


class DistributeOptions(_Settings):
    """Options for the distribution of a pipeline over several workers.

    Attributes:
      auto_shard: False for `AutoShardPolicy.OFF`, as TensorFlow 1.15 spells it.
      auto_shard_policy: see `AutoShardPolicy`.
      num_devices: not used.
    """

    auto_shard: bool
    auto_shard_policy: AutoShardPolicy
    num_devices: int | None
    _defaults = {"auto_shard": True, "auto_shard_policy": AutoShardPolicy.AUTO, "num_devices": None}

    @property
    def policy(self) -> AutoShardPolicy:
        """The policy that follows from both settings."""
        return AutoShardPolicy(self.auto_shard_policy) if self.auto_shard else AutoShardPolicy.OFF


class MapVectorizationOptions(_Settings):
    """Options for turning functions of elements into functions of batches. They can be set, and have no effect."""

    _defaults = dict.fromkeys(("enabled", "use_choose_fastest"))


class OptimizationOptions(_Settings):
    """Options for rewriting a pipeline. They can be set, and have no effect: blocks make such rewrites unnecessary."""

    _defaults = dict.fromkeys(
        (
            "apply_default_optimizations",
            "autotune",
            "autotune_buffers",
            "autotune_cpu_budget",
            "autotune_ram_budget",
            "filter_fusion",
            "filter_with_random_uniform_fusion",
            "hoist_random_uniform",
            "inject_prefetch",
            "map_and_batch_fusion",
            "map_and_filter_fusion",
            "map_fusion",
            "map_parallelization",
            "map_vectorization",
            "noop_elimination",
            "parallel_batch",
            "shuffle_and_repeat_fusion",
        )
    )


class ThreadingOptions(_Settings):
    """Options for the number of threads of a pipeline. They can be set, and have no effect."""

    _defaults = dict.fromkeys(("max_intra_op_parallelism", "private_threadpool_size"))


class Options(_Settings):
    """Options for `Dataset.with_options`.

    Attributes:
      experimental_deterministic: not used: elements are in order, except after a sloppy `parallel_interleave`.
      experimental_distribute: see `DistributeOptions`.
    """

    experimental_distribute: DistributeOptions
    _defaults = {
        "autotune": OptimizationOptions,
        "dataset_name": None,
        "deterministic": None,
        "experimental_deterministic": None,
        "experimental_distribute": DistributeOptions,
        "experimental_external_state_policy": None,
        "experimental_optimization": OptimizationOptions,
        "experimental_slack": None,
        "experimental_stateful_whitelist": None,
        "experimental_stats": None,
        "experimental_threading": ThreadingOptions,
        "threading": ThreadingOptions,
    }

    def merge(self, options: Options) -> Options:
        """Returns these options, overridden by options that are set in ``options``."""
        return self.merged(options)
