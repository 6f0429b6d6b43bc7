"""What `device`, `colocate_with` and `control_dependencies` do to operations; collections; default graphs."""

from contextlib import ExitStack


def gpu_1(op):
    return "/device:GPU:1"


def task_3(op):
    return "/job:w/task:3"


def nothing(op):
    return ""


def as_it_is(op):
    return op.device


DEVICES = [
    ("/job:ps",),
    ("/job:ps/task:1", "/gpu:0"),
    ("/gpu:0", "/job:ps/task:1"),
    ("/job:ps", "/job:worker/task:1"),
    ("/job:ps/task:1", "/job:worker"),
    ("/cpu:0", "/gpu:1"),
    ("/device:CPU:0",),
    ("/cpu",),
    ("/gpu",),
    ("/cpu:*",),
    ("/device:GPU",),
    ("/job:ps/task:1/gpu:0", None),
    ("/job:ps", None, "/cpu:0"),
    (None,),
    ("",),
    ("/job:ps", ""),
    ("bad",),
    ("/job",),
    ("/task:x",),
    ("/job:a/job:b",),
    ("/cpu:0/gpu:0",),
    ("cpu:0",),
    ("/CPU:0",),
    ("/GPU:0",),
    ("/Gpu:0",),
    ("/device:gpu:0",),
    ("/device:tpu:0",),
    ("/device:XLA_CPU:0",),
    ("/replica:0/job:ps/task:0",),
    ("/job:ps/replica:0/task:*",),
    ("/job:*",),
    ("/job:w/cpu:0", gpu_1),
    (gpu_1, "/job:w/cpu:0"),
    (gpu_1,),
    (nothing, "/job:w"),
    ("/job:w", nothing),
    ("/job:w", as_it_is),
    (as_it_is, "/job:w"),
    ("/gpu:0", task_3),
    (task_3, "/gpu:0"),
    (task_3, "/job:q/gpu:0"),
    (task_3, gpu_1),
    (gpu_1, task_3),
    ("/job:a", None, gpu_1),
    (gpu_1, None, "/job:a"),
    ("/job:a", task_3, "/cpu:1"),
    ("/task:3", "/job:a"),
    ("//job:a",),
    ("/job:a/",),
    (" /job:a",),
    ("/job:a ",),
    ("/job:a/task:01",),
    ("/device:CPU:x",),
    ("/job:localhost/replica:0/task:0/device:CPU:0",),
]


def cases(tf):
    found = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    for scopes in DEVICES:
        names = [getattr(scope, "__name__", scope) for scope in scopes]
        found[f"device {names}"] = lambda tf, scopes=scopes: _device(tf, *scopes)
    return found


def _device(tf, *scopes):
    with ExitStack() as stack:
        for scope in scopes:
            stack.enter_context(tf.device(scope))
        return tf.no_op().device


def _described(*ops):
    return [[op.name, op.device, op.colocation_groups()] for op in ops]


def _controls(*elements):
    ops = [getattr(element, "op", element) for element in elements]
    return {op.name: [control.name for control in op.control_inputs] for op in ops}


def case_device_spec(tf):
    return _device(tf, tf.DeviceSpec(job="ps", task=1), tf.DeviceSpec(device_type="gpu", device_index=0))


def case_device_is_called_with_the_operation(tf):
    seen = []

    def choose(op):
        seen.append([op.type, op.device, len(op.inputs)])
        return "/device:GPU:0"

    return [_device(tf, "/job:a", choose, "/task:1"), seen]


def case_device_ends_with_an_error(tf):
    try:
        with tf.device("/job:a"):
            raise RuntimeError
    except RuntimeError:
        return tf.no_op().device


def case_colocation(tf):
    with tf.device("/job:a/task:1"):
        x = tf.constant(1, name="x")
    n = tf.no_op(name="n")
    ops = [x.op, n]
    with tf.device("/job:b"):
        with tf.colocate_with(x):
            ops.append(tf.no_op(name="device_of_x"))
            with tf.device("/gpu:0"):
                ops.append(tf.no_op(name="despite_device"))
        w = tf.no_op(name="w")
        with tf.colocate_with(x):
            for other in [ops[2], w, n]:
                with tf.colocate_with(other):
                    ops.append(tf.no_op(name="both"))
                with tf.colocate_with(other, True):
                    ops.append(tf.no_op(name="only_inner"))
            ops.append(tf.no_op(name="outer_again"))
            with tf.colocate_with(None, True):
                ops.append(tf.no_op(name="neither"))
        with tf.colocate_with(n):
            ops.append(tf.no_op(name="of_no_device"))
            with tf.device("/gpu:3"):
                ops.append(tf.no_op(name="of_no_device_in_device"))
            with tf.colocate_with(x):
                ops.append(tf.no_op(name="outer_of_no_device"))
        with tf.colocate_with(None, True):
            ops.append(tf.no_op(name="no_device_either"))
            with tf.device("/cpu:0"):
                ops.append(tf.no_op(name="device_inside"))
        ops.append(tf.no_op(name="device_again"))
    return _described(*ops)


def case_colocation_with_functions_and_none(tf):
    with tf.device("/job:a"):
        x = tf.constant(1, name="x")
    with tf.colocate_with(x.op):
        with tf.device(lambda op: "/job:c"):
            first = tf.no_op(name="first")
        with tf.device(None):
            second = tf.no_op(name="second")
    with tf.device("/job:d"), tf.device(lambda op: "/task:7"), tf.colocate_with(x):
        third = tf.no_op(name="third")
    return _described(first, second, third, tf.no_op(name="after"))


def case_colocation_with_a_chain(tf):
    with tf.device("/job:a"):
        x = tf.constant(1, name="x")
    with tf.colocate_with(x):
        y = tf.no_op(name="y")
    with tf.colocate_with(y):
        return _described(tf.no_op(name="z"))


def case_colocation_with_none(tf):
    with tf.colocate_with(None):
        return 1


def case_colocation_of_variables_and_slices(tf):
    with tf.device("/job:z"):
        slices = tf.IndexedSlices(tf.constant(1.0, name="values"), tf.constant(1, name="indices"))
    with tf.colocate_with(slices):
        return _described(tf.no_op())


def case_control_dependencies(tf):
    a, b, c = tf.no_op(name="a"), tf.no_op(name="b"), tf.constant(1, name="c")
    with tf.control_dependencies([a]):
        found = [tf.no_op(name="after_a")]
        with tf.control_dependencies([b, c]):
            found.append(tf.no_op(name="after_all"))
            with tf.control_dependencies(None):
                cleared = tf.identity(c, name="cleared")
                found += [tf.no_op(name="after_nothing"), cleared]
                with tf.control_dependencies([b]):
                    found.append(tf.no_op(name="after_b"))
            i = tf.identity(c, name="of_c")
            j = tf.identity(i, name="of_after_all")
            found += [tf.no_op(name="after_all_again"), i, j, tf.identity(cleared, name="of_cleared")]
        found += [tf.identity(j, name="of_inner"), tf.identity(i, name="of_inner_too")]
        for controls in [[found[1]], [a], [a, a, b], []]:
            with tf.control_dependencies(controls):
                found.append(tf.no_op(name="again"))
    return _controls(*found, tf.no_op(name="after"))


def case_control_dependencies_of_members(tf):
    a = tf.no_op(name="a")
    with tf.control_dependencies([a]):
        x = tf.constant(1, name="x")
        with tf.control_dependencies([x]):
            y, z = tf.no_op(name="y"), tf.identity(x, name="z")
        with tf.control_dependencies([z]):
            w = tf.identity(x, name="w")
    return _controls(x, y, z, w)


def case_control_dependencies_and_outer_outputs(tf):
    a, b = tf.no_op(name="a"), tf.no_op(name="b")
    with tf.control_dependencies([a]):
        with tf.control_dependencies([b]):
            x = tf.constant(1, name="x")
        y = tf.identity(x, name="y")
        with tf.control_dependencies([b]):
            return _controls(x, y, tf.identity(y, name="z"), tf.identity(x, name="w"))


def case_control_dependencies_on_inputs(tf):
    c, d = tf.constant(1, name="c"), tf.constant(2, name="d")
    with tf.control_dependencies([c.op]):
        return _controls(tf.identity(c, name="x"), tf.identity(d, name="y"))


def case_control_dependencies_by_name(tf):
    tf.no_op(name="a")
    tf.constant(1, name="c")
    with tf.control_dependencies(["a", "c:0"]):
        return _controls(tf.no_op(name="x"))


def case_control_dependencies_on_an_operation_alone(tf):
    with tf.control_dependencies(tf.no_op(name="a")):
        return 1


def case_control_dependencies_on_a_number(tf):
    with tf.control_dependencies([5]):
        return 1


def case_control_dependencies_on_a_name_that_is_not_there(tf):
    with tf.control_dependencies(["q"]):
        return 1


def case_control_dependencies_of_another_graph(tf):
    with tf.Graph().as_default():
        a = tf.no_op()
    with tf.control_dependencies([a]):
        return 1


def case_finalized(tf):
    graph, x = tf.get_default_graph(), tf.constant(1)
    graph.finalize()
    actions = [
        lambda: tf.constant(2),
        lambda: graph.add_to_collection("a", 1),
        lambda: graph.add_to_collections(["a"], 1),
        lambda: graph.clear_collection("a"),
        lambda: graph.get_collection_ref("q"),
        lambda: graph.get_collection("q"),
        lambda: x.set_shape([]),
        lambda: graph.unique_name("x"),
        lambda: graph.prevent_feeding(x),
        graph.finalize,
    ]
    return [graph.finalized] + [_class_of_error(action) for action in actions]


def _class_of_error(action):
    try:
        action()
    except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
        return type(error).__name__


def case_collections(tf):
    graph = tf.get_default_graph()
    for value in [1, 1]:
        graph.add_to_collection("a", value)
    graph.add_to_collections(["a", "b", "a"], 2)
    graph.add_to_collections("c", 3)
    graph.add_to_collections(("d", "d"), 4)
    graph.add_to_collection(("t", 1), 5)
    graph.add_to_collection(None, 6)
    found = [graph.get_collection(name) for name in ["a", "b", "c", "d", "q", ("t", 1), None]]
    graph.get_collection("a").append(9)
    found.append(graph.get_collection("a"))
    for name in ["a", "new"]:
        graph.get_collection_ref(name).append(9)
        found.append(graph.get_collection(name))
    found.append(sorted(graph.get_all_collection_keys()))
    graph.clear_collection("a")
    graph.clear_collection("never")
    return [*found, graph.get_collection("a"), sorted(graph.get_all_collection_keys())]


def case_collections_by_scope(tf):
    graph = tf.get_default_graph()
    with tf.name_scope("foo"):
        ops = [tf.no_op(name="x"), tf.no_op(name="yy")]
    for value in [*ops, tf.no_op(name="foobar"), "no name"]:
        graph.add_to_collection("s", value)
    scopes = ["foo/", "foo", ".*y", "", "q"]
    return [[getattr(item, "name", item) for item in graph.get_collection("s", scope)] for scope in scopes]


def case_default_graphs(tf):
    first, second = tf.Graph(), tf.Graph()
    with first.as_default() as entered:
        found = [entered is first, tf.get_default_graph() is first]
        with second.as_default():
            found.append(tf.get_default_graph() is second)
        found.append(tf.get_default_graph() is first)
    return [*found, tf.get_default_graph() is first]


def case_default_graph_is_not_reset_inside(tf):
    tf.reset_default_graph()
