"""Linear operators: what each computes, as a matrix and through its own ways."""

import numpy as np

F = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]], "float32")
G = np.array([[1.0, 2.0, 0.0], [0.5, -1.0, 3.0], [2.0, 1.0, 1.0]], "float32")
X = np.array([[1.0, -2.0], [0.5, 3.0], [2.0, 1.0]], "float32")


def made(tf):
    L = tf.linalg
    diag = L.LinearOperatorDiag([1.0, 2.0, -4.0])
    full = L.LinearOperatorFullMatrix(G)
    positive = L.LinearOperatorFullMatrix(F, is_self_adjoint=True, is_positive_definite=True)
    small = L.LinearOperatorFullMatrix([[2.0, 1.0], [0.0, 3.0]])
    return {
        "diag": diag,
        "full": full,
        "positive": positive,
        "positive diag": L.LinearOperatorDiag([1.0, 2.0, 4.0], is_positive_definite=True),
        "batch": L.LinearOperatorFullMatrix(np.stack([F, G])),
        "batch diag": L.LinearOperatorDiag([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        "triangular": L.LinearOperatorLowerTriangular(G + 2 * np.eye(3, dtype="float32")),
        "identity": L.LinearOperatorIdentity(3),
        "identities": L.LinearOperatorIdentity(3, batch_shape=[2]),
        "scaled": L.LinearOperatorScaledIdentity(3, [2.0, -3.0]),
        "householder": L.LinearOperatorHouseholder([1.0, 2.0, 2.0]),
        "toeplitz": L.LinearOperatorToeplitz([4.0, 1.0, 2.0], [4.0, 3.0, 5.0]),
        "circulant": L.LinearOperatorCirculant([4.0, 1.0, 1.0], input_output_dtype=tf.float32),
        "adjoint": L.LinearOperatorAdjoint(full),
        "inversion": L.LinearOperatorInversion(positive),
        "composition": L.LinearOperatorComposition([diag, full]),
        "update": L.LinearOperatorLowRankUpdate(positive, X),
        "update of three": L.LinearOperatorLowRankUpdate(diag, X, [2.0, 3.0], X + 1.0),
        "blocks": L.LinearOperatorBlockDiag([small, L.LinearOperatorIdentity(1)]),
        "kronecker": L.LinearOperatorKronecker([L.LinearOperatorDiag([3.0]), full]),
    }


NAMES = """diag|full|positive|positive diag|batch|batch diag|triangular|identity|identities|scaled|householder|toeplitz|
circulant|adjoint|inversion|composition|update|update of three|blocks|kronecker"""


def cases(tf):
    found = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    for name in NAMES.replace("\n", "").split("|"):
        found["all of " + name] = lambda tf, name=name: everything(tf, made(tf)[name])
    return found


def run(tf, values):
    with tf.Session() as session:
        return session.run(values)


def everything(tf, op):
    x = tf.constant(X)
    tensors = [
        op.to_dense(),
        op.matmul(x),
        op.matmul(x, adjoint=True),
        op.matmul(tf.transpose(x), adjoint_arg=True),
        op.matvec(X[:, 0]),
        op.solve(x),
        op.solve(x, adjoint=True),
        op.solvevec(X[:, 1]),
        op.determinant(),
        op.log_abs_determinant(),
        op.diag_part(),
        op.trace(),
        op.add_to_tensor(F) if op.tensor_rank == 2 else op.trace(),
        op.H.to_dense(),
        op.inverse().to_dense(),
        op.shape_tensor(),
        op.batch_shape_tensor(),
        op.domain_dimension_tensor(),
        op.range_dimension_tensor(),
        op.tensor_rank_tensor(),
    ]
    facts = [
        op.name,
        op.dtype.name,
        str(op.shape),
        str(op.batch_shape),
        op.tensor_rank,
        op.is_square,
        op.is_self_adjoint,
        op.is_positive_definite,
        op.is_non_singular,
    ]
    values = run(tf, tensors)
    return facts + [[str(t.shape), values[index]] for index, t in enumerate(tensors)]


def tried(*calls):
    found = []
    for call in calls:
        try:
            found.append(str(call()))
        except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
            found.append(type(error).__name__)
    return found


def case_roots(tf):
    ops = made(tf)
    chosen = [ops[name].cholesky() for name in ("positive", "positive diag", "identity", "update")]
    return [run(tf, [op.to_dense() for op in chosen]), [type(op).__name__ for op in chosen]]


def case_products_of_operators(tf):
    ops = made(tf)
    found = [
        ops["diag"].matmul(ops["diag"]),
        ops["diag"].matmul(ops["identity"]),
        ops["full"].matmul(ops["diag"], adjoint=True),
        ops["full"].matmul(ops["triangular"], adjoint_arg=True),
        ops["full"].solve(ops["diag"]),
        ops["positive"].matmul(ops["batch"]),
    ]
    return [
        run(tf, [op.to_dense() for op in found]),
        type(found[0]).__name__,
        type(found[1]).__name__,
        type(found[2]).__name__,
    ]


def case_zeros(tf):
    Z = tf.linalg.LinearOperatorZeros
    square, other = Z(2), Z(2, 3, batch_shape=[4], is_square=False, is_self_adjoint=False)
    return [
        run(
            tf,
            [square.to_dense(), square.matmul([[1.0], [2.0]]), square.determinant(), other.to_dense(), square.trace()],
        ),
        str(other.shape),
        *tried(
            lambda: square.inverse(),
            lambda: other.determinant(),
            lambda: Z(2, is_non_singular=True),
            lambda: Z(2, is_positive_definite=True),
        ),
    ]


def case_several_dimensions(tf):
    L = tf.linalg
    two = L.LinearOperatorCirculant2D([[4.0, 1.0], [2.0, 3.0]], input_output_dtype=tf.float32)
    three = L.LinearOperatorCirculant3D(
        np.arange(1.0, 9.0).reshape(2, 2, 2).astype("float32"), input_output_dtype=tf.float32
    )
    one = L.LinearOperatorCirculant(np.array([1.0, 2.0 + 1j, 3.0], "complex64"))
    x, y = np.ones((4, 1), "float32"), np.arange(8.0).reshape(8, 1).astype("float32")
    values = run(
        tf,
        [
            two.to_dense(),
            two.matmul(x),
            two.solve(x),
            two.determinant(),
            three.matmul(y),
            three.solve(y),
            two.trace(),
            tf.real(one.to_dense()),
            tf.imag(one.to_dense()),
            tf.real(one.convolution_kernel()),
        ],
    )
    return [values, two.block_depth, str(two.block_shape), str(three.shape), one.dtype.name, one.is_self_adjoint]


def case_hints(tf):
    L = tf.linalg
    diag, full = (
        L.LinearOperatorDiag([1.0, 2.0], is_positive_definite=True),
        L.LinearOperatorFullMatrix([[1.0, 2.0], [3.0, 4.0]]),
    )
    ops = (
        L.LinearOperatorKronecker([diag, diag]),
        L.LinearOperatorBlockDiag([diag, diag]),
        L.LinearOperatorComposition([diag, diag]),
        L.LinearOperatorLowRankUpdate(diag, [[1.0], [2.0]]),
        L.LinearOperatorLowRankUpdate(full, [[1.0], [2.0]]),
        L.LinearOperatorAdjoint(full),
        L.LinearOperatorInversion(diag),
        L.LinearOperatorScaledIdentity(2, 3.0),
        L.LinearOperatorZeros(2),
        L.LinearOperatorToeplitz([1.0, 2.0], [1.0, 3.0]),
        L.LinearOperatorBlockDiag([diag, full]),
        L.LinearOperatorKronecker([diag, full]),
    )
    return [[op.name, op.is_square, op.is_self_adjoint, op.is_positive_definite, op.is_non_singular] for op in ops]


def case_refused(tf):
    L = tf.linalg
    diag, full = L.LinearOperatorDiag([1.0, 2.0]), L.LinearOperatorFullMatrix([[1.0, 2.0], [3.0, 4.0]])
    wide = L.LinearOperatorFullMatrix([[1.0, 2.0]])
    return tried(
        lambda: L.LinearOperatorDiag([1.0], is_square=False),
        lambda: L.LinearOperatorFullMatrix([1.0]),
        lambda: diag.matmul([1.0, 2.0]),
        lambda: diag.matmul([[1.0]]),
        lambda: full.cholesky(),
        lambda: L.LinearOperatorFullMatrix(F, is_non_singular=False, is_positive_definite=True),
        lambda: wide.solve([[1.0]]),
        lambda: wide.determinant(),
        lambda: wide.inverse(),
        lambda: L.LinearOperatorComposition([]),
        lambda: L.LinearOperatorComposition([diag, L.LinearOperatorIdentity(3)]).shape,
        lambda: L.LinearOperatorBlockDiag([]),
        lambda: L.LinearOperatorKronecker([]),
        lambda: L.LinearOperatorInversion(L.LinearOperatorZeros(2)),
        lambda: L.LinearOperatorIdentity(2, is_square=False),
        lambda: L.LinearOperatorHouseholder([1.0], is_positive_definite=True),
        lambda: L.LinearOperatorToeplitz([1.0], [1.0], is_square=False),
        lambda: L.LinearOperatorCirculant([1.0], is_square=False),
        lambda: L.LinearOperatorBlockDiag([wide]),
        lambda: L.LinearOperatorLowRankUpdate(diag, [[1.0]]),
        lambda: L.LinearOperatorDiag([1.0], is_self_adjoint=False),
        lambda: L.LinearOperatorLowerTriangular([1.0]),
        lambda: L.LinearOperatorComposition([diag, L.LinearOperatorIdentity(2, dtype=tf.float64)]),
    )


def case_unknown_sizes(tf):
    matrix, diag = tf.placeholder(tf.float32, [None, None]), tf.placeholder(tf.float32, [None])
    L = tf.linalg
    ops = [
        L.LinearOperatorFullMatrix(matrix),
        L.LinearOperatorDiag(diag),
        L.LinearOperatorToeplitz(diag, diag),
        L.LinearOperatorScaledIdentity(tf.size(diag), 2.0),
    ]
    with tf.Session() as session:
        values = session.run(
            [[op.to_dense(), op.matmul(X), op.shape_tensor()] for op in ops], {matrix: F, diag: [1.0, 2.0, 3.0]}
        )
    return [values, [str(op.shape) for op in ops]]


def case_assertions(tf):
    ops = made(tf)
    singular = tf.linalg.LinearOperatorFullMatrix([[1.0, 1.0], [1.0, 1.0]])
    found = []
    for make in (
        ops["positive"].assert_non_singular,
        ops["positive"].assert_positive_definite,
        ops["positive"].assert_self_adjoint,
        ops["full"].assert_self_adjoint,
        ops["diag"].assert_non_singular,
        ops["full"].assert_non_singular,
        singular.assert_non_singular,
    ):
        found += tried(lambda make=make: run(tf, make()))
    return found
