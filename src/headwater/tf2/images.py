"""Image functions that differ in TensorFlow 2."""

from __future__ import annotations

from headwater.tf1.functional.ragged_dispatch import dispatching
from headwater.tf1.functional.resizing import resize_images_v2
from headwater.tf2.at_once import at_once

resize = at_once(dispatching(resize_images_v2, resize_images_v2.__module__, "resize_images_v2"), "image.resize")
