"""Draws shapes, arrays and arguments of random programs. Runs on Python 3.7 too."""

import random

FLOATS = ("float32", "float64")
INTEGERS = ("int32", "int64")
SPECIAL = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-30, 1e30, 300.0, 7.0]
ORDINARY = [-3.0, -1.5, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 1.0, 2.0, 3.0, 4.5]
WHOLE = [0, 1, -1, 2, -3, 7, 127, 255, 2**31 - 1, -(2**31)]
TEXTS = ["", "a", "b", "ab", " a b ", "1", "-2.5", "1e3", "nan", "x1", "é", "A,B", "0x1f", "  7", "a--b"]

UNARY = [
    "abs",
    "negative",
    "square",
    "sign",
    "exp",
    "expm1",
    "log",
    "log1p",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "sigmoid",
    "floor",
    "ceil",
    "rint",
    "round",
    "lgamma",
    "digamma",
    "erf",
    "erfc",
    "is_nan",
    "is_inf",
    "is_finite",
    "log_sigmoid",
    "nn.relu",
    "nn.relu6",
    "nn.elu",
    "nn.selu",
    "nn.softplus",
    "nn.softsign",
    "nn.softmax",
    "nn.log_softmax",
    "nn.leaky_relu",
    "nn.l2_loss",
    "zeros_like",
    "ones_like",
    "rank",
    "size",
    "shape",
    "identity",
    "stop_gradient",
]
FOR_INTEGERS = {
    "abs",
    "negative",
    "square",
    "sign",
    "round",
    "zeros_like",
    "ones_like",
    "rank",
    "size",
    "shape",
    "identity",
}
BINARY = [
    "add",
    "subtract",
    "multiply",
    "div",
    "truediv",
    "floordiv",
    "mod",
    "floormod",
    "pow",
    "maximum",
    "minimum",
    "squared_difference",
    "div_no_nan",
    "atan2",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "equal",
    "not_equal",
    "truncatediv",
    "truncatemod",
]
REDUCTIONS = [
    "reduce_sum",
    "reduce_mean",
    "reduce_prod",
    "reduce_max",
    "reduce_min",
    "reduce_logsumexp",
    "reduce_all",
    "reduce_any",
    "math.reduce_euclidean_norm",
    "math.reduce_std",
    "math.reduce_variance",
    "count_nonzero",
]


class Dice(random.Random):
    """Draws shapes, arrays and arguments; collects the input of a program."""

    def __init__(self, seed):
        super().__init__(seed)
        self.inputs = []

    def shape(self, least=0, most=3):
        return [self.choice((0, 1, 2, 2, 3, 3, 4)) for _ in range(self.randint(least, most))]

    def array(self, dtype, shape, pool=None):
        """Adds an input; returns its name."""
        count = 1
        for size in shape:
            count *= size
        if pool is None:
            pool = WHOLE if dtype in INTEGERS else self.choice((SPECIAL, ORDINARY, ORDINARY))
        known = self.choice(("constant", "fed", "rank", "unknown"))
        self.inputs.append([dtype, shape, [self.choice(pool) for _ in range(count)], known])
        return "abcdefgh"[len(self.inputs) - 1]

    def floats(self, shape, pool=ORDINARY):
        return self.array("float32", shape, pool)

    def ints(self, shape, low, high, dtype="int32"):
        return self.array(dtype, shape, list(range(low, high + 1)))

    def text(self, shape):
        return self.array("string", shape, TEXTS)

    def axis(self, rank):
        return self.randint(-rank - (self.random() < 0.1), max(rank - (self.random() < 0.9), 0))

    def axes(self, rank):
        return self.choice(("None", str(self.axis(rank)), str([self.axis(rank) for _ in range(self.randint(0, rank))])))

    def flag(self):
        return self.choice(("True", "False"))

    def whole(self, low=-1, high=4):
        return self.randint(low, high)
