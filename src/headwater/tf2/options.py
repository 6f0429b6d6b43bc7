"""Options of writing and reading saved models and checkpoints.

Options that select a device, threads or information for debuggers are accepted and have no effect, because the task
that calls a function writes or reads the files itself. Others must have their defaults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

_WITHOUT_EFFECT = frozenset(
    {
        "enable_async",
        "experimental_custom_gradients",
        "experimental_enable_async_checkpoint",
        "experimental_io_device",
        "namespace_whitelist",
        "save_debug_info",
    }
)


class _Options:
    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
            if field.name not in _WITHOUT_EFFECT and getattr(self, field.name) != field.default:
                raise NotImplementedError(f"{type(self).__name__}({field.name}=...) is not supported")


@dataclass(frozen=True)
class SaveOptions(_Options):
    """Options of `tf.saved_model.save`.

    Raises:
      NotImplementedError: an option that is not supported differs from its default.
    """

    namespace_whitelist: Sequence[str] | None = None
    save_debug_info: bool = False
    function_aliases: Mapping[str, object] | None = None
    experimental_debug_stripper: bool = False
    experimental_io_device: str | None = None
    experimental_variable_policy: object = None
    experimental_custom_gradients: bool = True
    experimental_image_format: bool = False
    experimental_skip_saver: bool = False
    experimental_sharding_callback: object = None
    extra_tags: Sequence[str] | None = None


@dataclass(frozen=True)
class LoadOptions(_Options):
    """Options of `tf.saved_model.load`.

    Raises:
      NotImplementedError: an option that is not supported differs from its default.
    """

    allow_partial_checkpoint: bool = False
    experimental_io_device: str | None = None
    experimental_skip_checkpoint: bool = False
    experimental_variable_policy: object = None
    experimental_load_function_aliases: bool = False


@dataclass(frozen=True)
class CheckpointOptions(_Options):
    """Options of `tf.train.Checkpoint`'s methods.

    Raises:
      NotImplementedError: an option that is not supported differs from its default.
    """

    experimental_io_device: str | None = None
    experimental_enable_async_checkpoint: bool = False
    experimental_write_callbacks: Sequence[object] | None = None
    enable_async: bool = False
    experimental_skip_slot_variables: bool = False
    experimental_sharding_callback: object = None
