"""Sessions: structures of fetches, feeds, their errors, default sessions."""

import collections

import numpy as np

Pair = collections.namedtuple("Pair", ["first", "second"])


class Tree(dict):
    """A mapping of another class than dict."""


FETCHES = """
x | [x] | (x,) | [x, [y, (x, y)]] | {'a': x, 'b': [y]} | Pair(x, y) | [op] | op | [x, op, y] | {'op': op} | [] | {}
() | [[]] | 'x:0' | 'n' | ['x:0', 'n'] | b'x:0' | x.op | [x, x] | {'a': [x], 'b': (op, {'c': x})}
OrderedDict([('b', x)]) | Pair([x], {'y': y}) | Tree(a=x) | defaultdict(list, a=x) | v | [v, v.op] | v.value() | 'v'
'v:0' | slices | [slices] | dense_slices | None | [None] | 1 | 1.5 | [x, 1] | object() | 'q' | 'q:0' | 'x' | 'x:1'
{'a': None} | foreign | foreign.op | [x, foreign] | x.shape | set([x]) | iter([x]) | np.array([1]) | True
v.initializer | [v.initializer, x] | text | [text] | f | fed | p | [p]
"""

FEEDS = """
{p: [1, 2]} | {p: np.array([1, 2])} | {p: [1.5, 2.5]} | {p: (1, 2)} | {p: [1, 2, 3]} | {p: [[1, 2]]} | {p: 1}
{p: 'a'} | {p: None} | {p: [None, 1]} | {p: x} | {'p:0': [1, 2]} | {'p': [1, 2]} | {'q:0': [1, 2]} | {p.op: [1, 2]}
{op: 1} | {1: 2} | {None: 1} | {foreign: 1} | [] | {} | None | 5 | 'a' | {p: []} | {p: [[1], 2]} | {p: {}}
{p: [1, 2], x: 10.0} | {p: [1, 2], 'x:0': 10.0} | {p: np.array([1, 2], np.float64)} | {p: [True, False]}
{p: [1j, 2]} | {p: np.array([1, 2], '>f4')} | {p: range(2)} | {p: np.float32(1)} | {p: [np.nan, np.inf]}
{p: [1, 2], p.op.name + ':0': [3, 4]} | {p: [1e300, 0]} | {p: np.ma.array([1, 2])}
{v: 7.0, p: [1, 2]} | {p: np.zeros([2], object)} | {p: b'ab'} | {p: [1, 2], i: 2.5} | {p: [1, 2], i: 3}
{p: [1, 2], i: 2 ** 40} | {p: [1, 2], i: True} | {p: [1, 2], i: -1} | {p: [1, 2], i: np.int64(5)}
{p: [1, 2], i: [1]} | {p: [1, 2], i: '5'} | {p: [1, 2], i: np.float64(2.5)} | {p: [1, 2], s: 'abc'}
{p: [1, 2], s: b'abc'} | {p: [1, 2], s: 5} | {p: [1, 2], s: ['a', 'b']} | {p: [1, 2], s: np.array('abc')}
{p: [1, 2], b: True} | {p: [1, 2], b: 1} | {p: [1, 2], b: 'a'} | {p: [1, 2], b: 0.0} | {p: [1, 2], u: 300}
{p: [1, 2], u: -1} | {p: [1, 2], any: [[1]]} | {p: [1, 2], any: 'a'} | {p: [1, 2], slices: ([[5.0]], [1])}
{p: [1, 2], hidden: 1.0} | {(p, x): (np.array([1, 2]), np.array(3.0))} | {(p, x): (np.array([1, 2]),)}
"""

CALLS = """
session.run(x, None) | session.run(fetches=x) | session.run([x], feed_dict=None) | session.run(p, {p: [3, 4]})
session.run([p, x], {p: [3, 4]}) | session.run(p + 1.0, {p: [3, 4]}) | session.run(total, {p: [3, 4], total: 5.0})
session.run(total, {total: 5.0}) | session.run([total, x], {total: 5.0}) | session.run(chain, {mid: 7.0})
session.run(p) | session.run(total) | session.run(op, {p: [1, 2]}) | session.run(total, {p: [1, 2], y: 3.0})
session.run(x, {x: 4.0}) | session.make_callable(x)() | session.make_callable([x, op])()
session.make_callable(total, [p])([3, 4]) | session.make_callable({'a': total, 'b': op}, feed_list=[p])([3, 4])
session.make_callable(total, [p])([1, 2, 3]) | session.make_callable(total, [p])('a')
session.make_callable(chain, [mid, p])(1.0, [3, 4]) | session.make_callable(x)(1)
session.make_callable(total, ['p:0'])([3, 4]) | session.make_callable(total, p) | session.make_callable(None)
session.make_callable(op)() | x.eval(session=session) | op.run(session=session) | total.eval({p: [3, 4]}, session)
total.eval({p: [3]}, session) | session.graph is tf.get_default_graph() | session.run(v)
session.run([v.initializer, op]) | session.run(text) | session.run(f) | session.run(type_of_zero)
session.run(empty) | session.run(tf.Graph()) | tf.Session(graph=5) | tf.Session(5) | tf.Session(config=5)
tf.Session('grpc:nowhere') | tf.Session(b'') | session.run(x, options=tf.RunOptions(timeout_in_ms=10000))
[d.name for d in session.list_devices()][:1] | x.eval() | session.run({'a': x}, {})['a']
session.run(Pair(x, op)).second
"""


def cases(tf):
    found = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    for text in _texts(FETCHES):
        found[f"fetch {text}"] = lambda tf, text=text: _evaluated(tf, f"session.run({text}, {{p: [1, 2]}})")
    for text in _texts(FEEDS):
        found[f"feed {text}"] = lambda tf, text=text: _evaluated(tf, f"session.run(everything, {text})")
    for text in _texts(CALLS):
        found[text] = lambda tf, text=text: _evaluated(tf, text)
    return found


def _texts(table):
    return [text.strip() for line in table.strip().splitlines() for text in line.split(" | ")]


def _evaluated(tf, text):
    with tf.Graph().as_default():
        foreign = tf.constant(1)
    graph = tf.get_default_graph()
    x, y = tf.constant(2.0, name="x"), tf.constant(3.0, name="y")
    p = tf.placeholder(tf.float32, [2], name="p")
    names = {
        "tf": tf,
        "np": np,
        "Pair": Pair,
        "Tree": Tree,
        "OrderedDict": collections.OrderedDict,
        "defaultdict": collections.defaultdict,
        "foreign": foreign,
        "x": x,
        "y": y,
        "p": p,
        "op": tf.no_op(name="n"),
        "f": tf.constant([1.5, 2.5], tf.float64),
        "text": tf.constant(["a", "\u00e9"]),
        "fed": p * x,
        "p_op": p.op,
        "type_of_zero": tf.constant(0, tf.int16),
        "empty": tf.zeros([0, 3]),
        "slices": tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([0])),
        "dense_slices": tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([0]), tf.constant([3, 1])),
        "i": tf.placeholder_with_default(tf.constant(1, tf.int32), []),
        "s": tf.placeholder_with_default(tf.constant("z"), None),
        "b": tf.placeholder_with_default(tf.constant(False), []),
        "u": tf.placeholder_with_default(tf.constant(1, tf.uint8), []),
        "any": tf.placeholder_with_default(tf.constant(1.0), None),
        "total": tf.reduce_sum(p) + y,
        "mid": tf.identity(x),
        "hidden": tf.constant(9.0),
    }
    names["chain"] = names["mid"] * tf.constant(10.0)
    names["everything"] = [names[key] for key in ("x", "p", "total", "i", "s", "b", "u", "any")]
    names["v"] = tf.Variable(5.0, name="v")
    graph.prevent_feeding(names["hidden"])
    graph.prevent_fetching(names["hidden"].op)
    with tf.Session() as session:
        session.run(names["v"].initializer)
        names["session"] = session
        return _described(eval(text, names))


def _described(value):
    """Values with the types of what holds them."""
    if isinstance(value, dict):
        return [type(value).__name__, {key: _described(item) for key, item in value.items()}]
    if hasattr(value, "_fields"):
        return [type(value).__name__, [_described(item) for item in value]]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, [_described(item) for item in value]]
    if isinstance(value, (np.ndarray, np.generic, bytes)):
        array = np.asarray(value, object) if isinstance(value, bytes) else np.asarray(value)
        items = array.ravel().tolist()
        return [str(array.dtype), array.shape, [repr(item) if isinstance(item, float) else item for item in items]]
    return value if value is None or isinstance(value, (bool, int, str, bytes)) else type(value).__name__


def case_closed_session(tf):
    session, x = tf.Session(), tf.constant(1)
    session.run(x)
    session.close()
    session.close()
    return session.run(x)


def case_session_left(tf):
    x = tf.constant(1)
    with tf.Session() as session:
        session.run(x)
    return session.run(x)


def case_empty_graph(tf):
    with tf.Session() as session:
        return session.run([])


def case_default_sessions(tf):
    x = tf.constant(1)
    found = [tf.get_default_session() is None]
    with tf.Session() as outer:
        found.append(tf.get_default_session() is outer)
        inner = tf.Session()
        with inner.as_default() as entered:
            found += [entered is inner, tf.get_default_session() is inner, int(x.eval())]
        found += [tf.get_default_session() is outer, int(inner.run(x))]
        inner.close()
    return [*found, tf.get_default_session() is None]


def case_session_makes_its_graph_the_default(tf):
    graph = tf.Graph()
    with tf.Session(graph=graph) as session:
        found = [tf.get_default_graph() is graph, session.graph is graph]
    with tf.Session(graph=graph).as_default():
        found.append(tf.get_default_graph() is graph)
    return [*found, tf.get_default_graph() is graph]


def case_default_session_of_another_graph(tf):
    x = tf.constant(1)
    with tf.Session(graph=tf.Graph()):
        return x.eval()


def case_session_ends_with_an_error(tf):
    try:
        with tf.Session():
            raise KeyError
    except KeyError:
        return tf.get_default_session() is None


def case_session_entered_twice(tf):
    x = tf.constant(1)
    session = tf.Session()
    with session:
        session.run(x)
    with session:
        return session.run(x)


def case_interactive_session(tf):
    session = tf.InteractiveSession()
    x = tf.constant(3)
    found = [int(x.eval()), tf.get_default_session() is session]
    session.close()
    return [*found, tf.get_default_session() is None]


def case_interactive_session_of_a_graph(tf):
    graph = tf.Graph()
    session = tf.InteractiveSession(graph=graph)
    x = tf.constant(3)
    found = [int(x.eval()), x.graph is graph]
    session.close()
    return [*found, tf.get_default_graph() is graph]


def case_graph_grows_between_steps(tf):
    x = tf.constant(1)
    with tf.Session() as session:
        found = [int(session.run(x))]
        y = x + 1
        found += [int(session.run(y)), int(session.run([x, y])[1])]
    return found


def case_uninitialized_variable(tf):
    v = tf.Variable(1.0, name="v")
    with tf.Session() as session:
        return session.run(v)


def case_uninitialized_variable_updated(tf):
    v = tf.Variable(1.0, name="v")
    with tf.Session() as session:
        return session.run(v.assign_add(1.0))


def case_variables_last_as_long_as_the_session(tf):
    v = tf.Variable(1.0, name="v")
    with tf.Session() as first:
        first.run(v.initializer)
        found = [float(first.run(v.assign_add(2.0))), float(first.run(v))]
        with tf.Session() as second:
            second.run(v.initializer)
            found.append(float(second.run(v)))
        found.append(float(first.run(v)))
    return found


def case_placeholder_without_shape(tf):
    p = tf.placeholder(tf.float32)
    with tf.Session() as session:
        return [session.run(p * 2.0, {p: value}).tolist() for value in (1.0, [1.0], [[1.0, 2.0]])]


def case_placeholder_of_partial_shape(tf):
    p = tf.placeholder(tf.float32, [None, 2])
    with tf.Session() as session:
        found = [session.run(tf.shape(p), {p: np.zeros([n, 2])}).tolist() for n in (0, 1, 3)]
        session.run(p, {p: np.zeros([2, 3])})
    return found


def case_shapes_that_do_not_fit_in_a_step(tf):
    p, q = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    total = p + q
    with tf.Session() as session:
        return session.run(total, {p: [1.0, 2.0], q: [1.0, 2.0, 3.0]})


def case_device_that_is_not_there(tf):
    with tf.device("/job:worker/task:7"):
        x = tf.constant(1) + 1
    with tf.Session() as session:
        return session.run(x)


def case_device_that_is_not_there_softly(tf):
    with tf.device("/device:GPU:7"):
        x = tf.constant(1) + 1
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        return int(session.run(x))


def case_results_may_be_changed(tf):
    x = tf.constant([1.0, 2.0])
    v = tf.Variable([1.0, 2.0])
    with tf.Session() as session:
        session.run(v.initializer)
        for fetch in (x, v, x + 1.0):
            session.run(fetch)[0] = 7.0
        return [session.run(fetch).tolist() for fetch in (x, v, x + 1.0)]


def case_feeds_may_be_changed(tf):
    p = tf.placeholder(tf.float32, [2])
    v = tf.Variable([0.0, 0.0])
    assign = v.assign(p)
    with tf.Session() as session:
        fed = np.array([1.0, 2.0], np.float32)
        result = session.run([assign, p], {p: fed})
        fed[:] = 9.0
        return [part.tolist() for part in [*result, session.run(v)]]
