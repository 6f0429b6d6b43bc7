"""The namespace ``tf`` of programs written for TensorFlow 0.x and 1.x.

Each area is a module (`headwater.tf1.compat.tf.nn` is ``tf.nn``), made of a table in `headwater.tf1.compat.tables`. A
name is loaded at its first use; a missing name raises an AttributeError that refers to the list of names. `make stubs`
writes the ``.pyi`` files beside this one, for editors and type checkers, from the same tables.
"""

from __future__ import annotations

from headwater.tf1.compat.names import add_module, namespace
from headwater.tf1.compat.tables.areas import AREAS
from headwater.tf1.compat.tables.contrib import CONTRIB
from headwater.tf1.compat.tables.core import CORE

__version__ = VERSION = "1.15.0"
__git_version__ = GIT_VERSION = "v1.15.0-headwater"
__compiler_version__ = COMPILER_VERSION = ""
__cxx11_abi_flag__ = CXX11_ABI_FLAG = 1
__monolithic_build__ = MONOLITHIC_BUILD = 0
GRAPH_DEF_VERSION = 134
GRAPH_DEF_VERSION_MIN_CONSUMER = 0
GRAPH_DEF_VERSION_MIN_PRODUCER = 0

for _area, _names in {**AREAS, **CONTRIB}.items():
    add_module(f"headwater.tf1.compat.{_area}", _names)

__getattr__, __dir__ = namespace(__name__, CORE)
