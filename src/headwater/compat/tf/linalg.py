"""``tf.linalg``: matrices."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.functional.factorisations": """
        cholesky cholesky_solve det=matrix_determinant eigh=self_adjoint_eig eigvalsh=self_adjoint_eigvals expm
        inv=matrix_inverse logdet lstsq=matrix_solve_ls qr slogdet solve=matrix_solve sqrtm=matrix_square_root svd
        triangular_solve=matrix_triangular_solve""",
    "headwater.functional.linalg": """
        adjoint band_part=matrix_band_part cross diag=matrix_diag diag_part=matrix_diag_part einsum eye matmul matvec
        norm set_diag=matrix_set_diag tensor_diag=diag tensor_diag_part=diag_part tensordot trace""",
    "headwater.functional.arrays": "matrix_transpose transpose=matrix_transpose",
    "headwater.functional.nn": "l2_normalize",
    "headwater.functional.clip": "global_norm",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
