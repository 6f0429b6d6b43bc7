# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.functional.arrays import matrix_transpose as matrix_transpose
from headwater.tf1.functional.arrays import matrix_transpose as transpose
from headwater.tf1.functional.clip import global_norm as global_norm
from headwater.tf1.functional.factorisations import cholesky as cholesky
from headwater.tf1.functional.factorisations import cholesky_solve as cholesky_solve
from headwater.tf1.functional.factorisations import expm as expm
from headwater.tf1.functional.factorisations import logdet as logdet
from headwater.tf1.functional.factorisations import matrix_determinant as det
from headwater.tf1.functional.factorisations import matrix_inverse as inv
from headwater.tf1.functional.factorisations import matrix_solve as solve
from headwater.tf1.functional.factorisations import matrix_square_root as sqrtm
from headwater.tf1.functional.factorisations import matrix_triangular_solve as triangular_solve
from headwater.tf1.functional.factorisations import qr as qr
from headwater.tf1.functional.factorisations import self_adjoint_eig as eigh
from headwater.tf1.functional.factorisations import self_adjoint_eigvals as eigvalsh
from headwater.tf1.functional.factorisations import slogdet as slogdet
from headwater.tf1.functional.factorisations import svd as svd
from headwater.tf1.functional.linalg import adjoint as adjoint
from headwater.tf1.functional.linalg import cross as cross
from headwater.tf1.functional.linalg import diag as tensor_diag
from headwater.tf1.functional.linalg import diag_part as tensor_diag_part
from headwater.tf1.functional.linalg import einsum as einsum
from headwater.tf1.functional.linalg import eye as eye
from headwater.tf1.functional.linalg import matmul as matmul
from headwater.tf1.functional.linalg import matrix_band_part as band_part
from headwater.tf1.functional.linalg import matrix_diag as diag
from headwater.tf1.functional.linalg import matrix_diag_part as diag_part
from headwater.tf1.functional.linalg import matrix_set_diag as set_diag
from headwater.tf1.functional.linalg import matvec as matvec
from headwater.tf1.functional.linalg import norm as norm
from headwater.tf1.functional.linalg import tensordot as tensordot
from headwater.tf1.functional.linalg import trace as trace
from headwater.tf1.functional.linear_operators import LinearOperator as LinearOperator
from headwater.tf1.functional.linear_operators import LinearOperatorAdjoint as LinearOperatorAdjoint
from headwater.tf1.functional.linear_operators import LinearOperatorBlockDiag as LinearOperatorBlockDiag
from headwater.tf1.functional.linear_operators import LinearOperatorCirculant as LinearOperatorCirculant
from headwater.tf1.functional.linear_operators import LinearOperatorCirculant2D as LinearOperatorCirculant2D
from headwater.tf1.functional.linear_operators import LinearOperatorCirculant3D as LinearOperatorCirculant3D
from headwater.tf1.functional.linear_operators import LinearOperatorComposition as LinearOperatorComposition
from headwater.tf1.functional.linear_operators import LinearOperatorDiag as LinearOperatorDiag
from headwater.tf1.functional.linear_operators import LinearOperatorFullMatrix as LinearOperatorFullMatrix
from headwater.tf1.functional.linear_operators import LinearOperatorHouseholder as LinearOperatorHouseholder
from headwater.tf1.functional.linear_operators import LinearOperatorIdentity as LinearOperatorIdentity
from headwater.tf1.functional.linear_operators import LinearOperatorInversion as LinearOperatorInversion
from headwater.tf1.functional.linear_operators import LinearOperatorKronecker as LinearOperatorKronecker
from headwater.tf1.functional.linear_operators import LinearOperatorLowRankUpdate as LinearOperatorLowRankUpdate
from headwater.tf1.functional.linear_operators import LinearOperatorLowerTriangular as LinearOperatorLowerTriangular
from headwater.tf1.functional.linear_operators import LinearOperatorScaledIdentity as LinearOperatorScaledIdentity
from headwater.tf1.functional.linear_operators import LinearOperatorToeplitz as LinearOperatorToeplitz
from headwater.tf1.functional.linear_operators import LinearOperatorZeros as LinearOperatorZeros
from headwater.tf1.functional.matrices import logm as logm
from headwater.tf1.functional.matrices import lu as lu
from headwater.tf1.functional.matrices import matrix_rank as matrix_rank
from headwater.tf1.functional.matrices import matrix_solve_ls as lstsq
from headwater.tf1.functional.matrices import normalize as normalize
from headwater.tf1.functional.matrices import pinv as pinv
from headwater.tf1.functional.matrices import tridiagonal_matmul as tridiagonal_matmul
from headwater.tf1.functional.matrices import tridiagonal_solve as tridiagonal_solve
from headwater.tf1.functional.nn import l2_normalize as l2_normalize

__all__ = [
    "LinearOperator",
    "LinearOperatorAdjoint",
    "LinearOperatorBlockDiag",
    "LinearOperatorCirculant",
    "LinearOperatorCirculant2D",
    "LinearOperatorCirculant3D",
    "LinearOperatorComposition",
    "LinearOperatorDiag",
    "LinearOperatorFullMatrix",
    "LinearOperatorHouseholder",
    "LinearOperatorIdentity",
    "LinearOperatorInversion",
    "LinearOperatorKronecker",
    "LinearOperatorLowRankUpdate",
    "LinearOperatorLowerTriangular",
    "LinearOperatorScaledIdentity",
    "LinearOperatorToeplitz",
    "LinearOperatorZeros",
    "adjoint",
    "band_part",
    "cholesky",
    "cholesky_solve",
    "cross",
    "det",
    "diag",
    "diag_part",
    "eigh",
    "eigvalsh",
    "einsum",
    "expm",
    "eye",
    "global_norm",
    "inv",
    "l2_normalize",
    "logdet",
    "logm",
    "lstsq",
    "lu",
    "matmul",
    "matrix_rank",
    "matrix_transpose",
    "matvec",
    "norm",
    "normalize",
    "pinv",
    "qr",
    "set_diag",
    "slogdet",
    "solve",
    "sqrtm",
    "svd",
    "tensor_diag",
    "tensor_diag_part",
    "tensordot",
    "trace",
    "transpose",
    "triangular_solve",
    "tridiagonal_matmul",
    "tridiagonal_solve",
]
