"""Operations that only initial values of variables need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from headwater.ops.define import pure
from headwater.registry import Inference, Spec


def _basis_spec(inference: Inference) -> Sequence[Spec]:
    matrix = inference.inputs[0]
    dims = matrix.dims
    return [Spec(matrix.dtype.base_dtype, dims[::-1] if dims is not None and inference.attrs["transpose"] else dims)]


@pure("OrthonormalBasis", inputs="input:T|floating", infer=_basis_spec, differentiable=False)
def orthonormal_basis(matrix: Any, *, gain: float = 1.0, transpose: bool = False) -> Any:
    """``gain`` times an orthonormal basis of the columns of a random matrix, uniform over all such.

    The QR decomposition alone prefers some bases; multiplying with the signs of R's diagonal takes that out (Mezzadri,
    "How to generate random matrices from the classical compact groups", 2007).
    """
    q, r = jnp.linalg.qr(matrix.astype(jnp.promote_types(matrix.dtype, jnp.float32)))
    basis = (q * jnp.sign(jnp.diagonal(r))).astype(matrix.dtype)
    return gain * (basis.T if transpose else basis)
