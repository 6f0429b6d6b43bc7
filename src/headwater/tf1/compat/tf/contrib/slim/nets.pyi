# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.contrib.slim.nets import resnet_utils as resnet_utils
from headwater.tf1.contrib.slim.nets import resnet_v1 as resnet_v1
from headwater.tf1.contrib.slim.nets import resnet_v2 as resnet_v2
from headwater.tf1.contrib.slim.nets import vgg as vgg

__all__ = [
    "resnet_utils",
    "resnet_v1",
    "resnet_v2",
    "vgg",
]
