"""All private names of diastatic-malt (``malt``) that Headwater uses, in one file, because a release may move them.

`docs/dependencies.md` names the tested release.
"""

from __future__ import annotations

from malt.core import converter as converter
from malt.core.converter import Feature as Feature
from malt.impl import api as api
from malt.impl.api import autograph_artifact as autograph_artifact
from malt.lang.directives import set_loop_options as set_loop_options
from malt.operators import function_wrappers as function_wrappers
from malt.operators import py_builtins as py_builtins
from malt.operators import variables as variables
from malt.operators.variables import Undefined as Undefined
from malt.operators.variables import UndefinedReturnValue as UndefinedReturnValue
from malt.pyct import errors as errors
from malt.pyct import inspect_utils as inspect_utils
from malt.pyct import origin_info as origin_info
from malt.utils import ag_logging as ag_logging
