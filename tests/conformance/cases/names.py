"""Names of operations and of name scopes."""

ODD_NAMES = [
    "_a",
    "-a",
    "/a",
    "a b",
    "a:0",
    ".a",
    "a>b",
    "a\\b",
    "a.b",
    "a-b",
    "a/",
    "a/b/",
    "1",
    "",
    "\u00e9",
    "a//b",
    "a^b",
    "a_",
    "a+b",
]


def cases(tf):
    found = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    for odd in ODD_NAMES:
        found[f"operation {odd!r}"] = lambda tf, odd=odd: op(tf, odd)
        found[f"operation {odd!r} in a scope"] = lambda tf, odd=odd: in_scope(tf, "s", lambda: op(tf, odd))
        found[f"scope {odd!r}"] = lambda tf, odd=odd: in_scope(tf, odd, lambda: op(tf, "x"))
        found[f"scope {odd!r} in a scope"] = lambda tf, odd=odd: in_scope(
            tf, "o", lambda: in_scope(tf, odd, lambda: op(tf, "x"))
        )
    return found


def op(tf, name=None):
    return tf.no_op(name=name).name


def in_scope(tf, name, make):
    with tf.name_scope(name) as scope:
        return [scope, make()]


def case_taken_names_get_numbers(tf):
    return [op(tf, name) for name in ["a", "a", "A", "a_1", "a", "b/a", "b/a", "b", "b_1", "b", "c_1", "c", "c", "c"]]


def case_scopes(tf):
    found = []
    with tf.name_scope("s") as s:
        found += [s, op(tf, "x"), op(tf, "x")]
        for name in ["t", "t", None, "", "s/", "q/", "s/q/"]:
            found += in_scope(tf, name, lambda: op(tf, "x"))
    for name in ["s", "S", "x", "new/sub", "new"]:
        found += in_scope(tf, name, lambda: op(tf, "x"))
    return [*found, op(tf, "new/sub/x")]


def case_a_scope_again(tf):
    with tf.name_scope("a") as scope:
        found = [op(tf, "x")]
    with tf.name_scope(scope):
        found.append(op(tf, "x"))
    with tf.name_scope("b"):
        with tf.name_scope(scope):
            found.append(op(tf, "x"))
        with tf.name_scope("a") as inner:
            found.append(inner)
    return found


def case_a_scope_ends_with_an_error(tf):
    try:
        with tf.name_scope("a"):
            raise RuntimeError
    except RuntimeError:
        return op(tf, "x")


def case_a_full_name_twice(tf):
    x = tf.constant(1)
    return [tf.identity(x, name="a/").name, tf.identity(x, name="a/").name]


def case_the_name_of_a_scope(tf):
    with tf.name_scope("s") as scope:
        found = [tf.identity(tf.constant(1), name=scope).name]
    return [*found, op(tf, "s")]


def case_unique_name(tf):
    graph = tf.get_default_graph()
    found = [graph.unique_name("a", False), graph.unique_name("a"), graph.unique_name("a", False)]
    found += [graph.unique_name("a"), graph.unique_name("a/b"), op(tf, "a"), graph.get_name_scope()]
    with tf.name_scope("s"):
        found += [graph.unique_name("a"), graph.unique_name("a")]
    return found


def case_current_scope(tf):
    graph = tf.get_default_graph()
    with tf.name_scope("x"), tf.name_scope("y"):
        found = [graph.get_name_scope()]
    found += [op(tf, "x"), op(tf, "x/y")]
    with tf.name_scope("x/y/"):
        found += [op(tf, "z"), graph.get_name_scope()]
    return found


def case_default_names(tf):
    x = tf.placeholder("float32", [2], name="x")
    y = tf.identity(x)
    z = tf.identity(x, name="foo/")
    return [x.name, y.name, z.name, tf.constant(1).name, tf.constant(2).name, tf.identity(z).name]


def case_name_scope_with_default(tf):
    found = []
    for name in ["w", None, None, ""]:
        with tf.name_scope(name, "d", [1]) as scope:
            found.append(scope)
    return found


def case_name_scope_without_any_name(tf):
    with tf.name_scope(None, None, [1]) as scope:
        return scope


def case_name_scope_of_another_graph(tf):
    other = tf.Graph()
    with other.as_default():
        x = tf.constant(1)
    with tf.name_scope("foo", values=[x]) as scope:
        return [scope, tf.get_default_graph() is other]


def case_name_scope_of_two_graphs(tf):
    with tf.Graph().as_default():
        x = tf.constant(1)
    with tf.name_scope("foo", values=[x, tf.constant(2)]) as scope:
        return scope
