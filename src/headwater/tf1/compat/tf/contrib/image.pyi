# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.contrib.image.transforms import angles_to_projective_transforms as angles_to_projective_transforms
from headwater.tf1.contrib.image.transforms import compose_transforms as compose_transforms
from headwater.tf1.contrib.image.transforms import flat_transforms_to_matrices as flat_transforms_to_matrices
from headwater.tf1.contrib.image.transforms import matrices_to_flat_transforms as matrices_to_flat_transforms
from headwater.tf1.contrib.image.transforms import rotate as rotate
from headwater.tf1.contrib.image.transforms import transform as transform
from headwater.tf1.contrib.image.transforms import translate as translate
from headwater.tf1.contrib.image.transforms import translations_to_projective_transforms as translations_to_projective_transforms

__all__ = [
    "angles_to_projective_transforms",
    "compose_transforms",
    "flat_transforms_to_matrices",
    "matrices_to_flat_transforms",
    "rotate",
    "transform",
    "translate",
    "translations_to_projective_transforms",
]
