"""What a program is told: of a step by its RunMetadata, of wrong uses when the graph is built, of what is cancelled."""

import threading


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def refused(build, *phrases):
    """The class of the error, and which of ``phrases`` it says."""
    try:
        build()
    except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
        return [type(error).__name__] + [phrase in str(error) for phrase in phrases]
    return "builds"


# RunMetadata ----------------------------------------------------------------------------------------------------


def model(tf):
    """A variable times what is fed, times what changes."""
    w = tf.Variable([1.0, 2.0], name="w")
    x = tf.placeholder(tf.float32, [2], name="x")
    return w, x, tf.multiply(w, x, name="y")


def described(tf, metadata):
    """What of a step's metadata does not depend on how it was computed."""
    graphs = list(metadata.partition_graphs)
    named = {node.name: node for graph in graphs for node in graph.node}
    costs = {node.name: node for node in metadata.cost_graph.node}
    product = costs.get("y")
    return [
        sorted(field.name for field, _ in metadata.ListFields()),
        len(graphs),
        [[name, named[name].op] for name in ("w", "y", "_arg_x_0_0", "_retval_y_0_0") if name in named],
        sorted({node.device for node in named.values()}),
        costs["w"].persistent_memory_size if "w" in costs else None,
        [[i.size, [d.size for d in i.shape.dim], i.dtype] for i in product.output_info] if product else None,
        product.device if product else None,
    ]


def case_run_metadata(tf):
    w, x, y = model(tf)
    traced = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    graphs = tf.RunOptions(output_partition_graphs=True)
    both = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
    costs = tf.ConfigProto(graph_options=tf.GraphOptions(build_cost_model=1))
    found = []
    for config in (None, costs):
        with tf.Session(config=config) as session:
            session.run(w.initializer)
            for options in (None, tf.RunOptions(), traced, graphs, both):
                metadata = tf.RunMetadata()
                session.run(y, {x: [3.0, 4.0]}, options=options, run_metadata=metadata)
                found.append(described(tf, metadata))
    return found


def case_run_metadata_of_a_callable(tf):
    w, x, y = model(tf)
    with tf.Session() as session:
        session.run(w.initializer)
        call = session.make_callable(y, [x], accept_options=True)
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
        value = call([3.0, 4.0], options=options, run_metadata=metadata)
        return [value, described(tf, metadata)]


# Loops and cases ------------------------------------------------------------------------------------------------


def kept(tf):
    """A tensor of a loop, which its body has kept."""
    found = []

    def body(i):
        found.append(i * 2)
        return i + 1

    tf.while_loop(lambda i: i < 3, body, [0])
    return found[0]


def case_a_tensor_of_a_loop_outside(tf):
    def in_another_loop():
        tensor = kept(tf)
        tf.while_loop(lambda i: i < 3, lambda i: i + tensor, [0])

    def fetched():
        tensor = kept(tf)
        with tf.Session() as session:
            session.run(tensor)

    def inside(i):
        tf.while_loop(lambda j: j < 2, lambda j: j + i, [0])
        return i + 1

    with tf.Session() as session:
        nested = session.run(tf.while_loop(lambda i: i < 3, inside, [0]))
    return [
        refused(lambda: kept(tf) + 1, "as input to", "is in a while loop"),
        refused(in_another_loop, "as input to"),
        refused(fetched, "has been marked as not fetchable")[1:],
        nested,
    ]


def case_reads_of_arrays_have_whole_gradients(tf):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    array = tf.TensorArray(tf.float32, 2, clear_after_read=False).unstack(x)
    one = tf.gradients(array.read(0) * 3.0, x)[0]
    some = tf.gradients(array.gather([1, 1]) * 2.0, x)[0]
    with tf.Session() as session:
        return [type(one).__name__, type(some).__name__, session.run([one, some])]


def case_refused_when_built(tf):
    p = tf.placeholder
    return [
        refused(lambda: tf.switch_case(p(tf.float32), [lambda: 1]), "branch_index must an integer Tensor"),
        refused(lambda: tf.case([])),
        refused(
            lambda: tf.matrix_solve(p(tf.float32, [2, 2]), p(tf.float32, [3, 1])), "must be equal, but are 2 and 3"
        ),
        refused(lambda: tf.matrix_triangular_solve(p(tf.float32, [2, 2]), p(tf.float32, [3, 1]))),
    ]


def case_indices_of_switch_case(tf):
    index = tf.constant(1, tf.int32)
    with tf.Session() as session:
        return session.run(tf.switch_case(index, [lambda: 1.0, lambda: 2.0]))


# What waits and is cancelled ------------------------------------------------------------------------------------


def waiting(tf, session, op, end):
    """The error of a step that waits for ``op`` while ``end()`` is called, by class and words."""
    said = []

    def wait():
        try:
            session.run(op)
            said.append("ends")
        except tf.errors.OpError as error:
            said.extend([type(error).__name__, "operation was cancelled" in str(error), str(error).split()[0]])

    thread = threading.Thread(target=wait)
    thread.start()
    end()
    thread.join()
    return said


def case_pending_enqueues_are_cancelled(tf):
    q = tf.FIFOQueue(2, tf.int32, shapes=[[]])
    many, close, size = q.enqueue_many([[1, 2, 3]]), q.close(cancel_pending_enqueues=True), q.size()
    with tf.Session() as session:

        def end():
            while session.run(size) < 2:
                pass
            session.run(close)

        return [waiting(tf, session, many, end), session.run(q.dequeue_many(2))]


def case_deadlines(tf):
    q = tf.FIFOQueue(2, tf.int32, shapes=[[]])
    a = tf.ConditionalAccumulator(tf.float32, shape=[])
    short = tf.RunOptions(timeout_in_ms=50)
    with tf.Session() as session:
        return [
            refused(lambda op=op: session.run(op, options=short), "Timed out waiting for")
            for op in (q.dequeue(), q.dequeue_many(2), a.take_grad(1))
        ]


def case_closed_twice(tf):
    q = tf.FIFOQueue(2, tf.int32, shapes=[[]])
    close, cancel = q.close(), q.close(cancel_pending_enqueues=True)
    with tf.Session() as session:
        return [
            refused(lambda: session.run(close)),
            refused(lambda: session.run(close), "is already closed."),
            refused(lambda: session.run(cancel)),
        ]


def case_batches_of_unknown_shapes(tf):
    q = tf.FIFOQueue(2, tf.int32)
    words = "DequeueMany and DequeueUpTo require the components to have specified shapes."
    with tf.Session() as session:
        return [refused(lambda op=op: session.run(op), words) for op in (q.dequeue_many(2), q.dequeue_up_to(2))]


# Steps in parts -------------------------------------------------------------------------------------------------


def case_steps_in_parts(tf):
    a, b, c = (tf.placeholder(tf.float32, [], name=name) for name in "abc")
    v = tf.Variable(0.0)
    counted = tf.assign_add(v, a)
    after = counted * 2 + b
    first = a + b
    second = first * c
    drawn = tf.random_uniform([])
    one, two = drawn + a, drawn + b
    with tf.Session() as session:
        session.run(v.initializer)
        h = session.partial_run_setup([first, second], [a, b, c])
        found = [
            type(h).__name__,
            session.partial_run(h, [], {a: 1}),
            session.partial_run(h, [first, {"x": first}], {b: 2}),
        ]
        found += [session.partial_run(h, second, {c: 17})]
        h = session.partial_run_setup([counted, after], [a, b])
        found += [session.partial_run(h, counted, {a: 1}), session.partial_run(h, after, {b: 1}), session.run(v)]
        h = session.partial_run_setup([one, two], [a, b])
        found += [round(float(-session.partial_run(h, one, {a: 1}) + session.partial_run(h, two, {b: 5})), 4)]
        return found


def case_steps_in_parts_refused(tf):
    a, b, c = (tf.placeholder(tf.float32, [], name=name) for name in "abc")
    first = tf.add(a, b, name="first")
    second = tf.multiply(first, c, name="second")
    with tf.Session() as session:

        def part(*args):
            return session.partial_run(session.partial_run_setup([first, second], [a, b, c]), *args)

        h = session.partial_run_setup([first, second], [a, b, c])
        session.partial_run(h, first, {a: 1, b: 2})
        other = session.partial_run_setup([first], [a, b])
        return [
            refused(
                lambda: part(second, {a: 1, b: 2}), "Fetch c:0 can't be computed from the feeds that have been fed"
            ),
            refused(lambda: session.partial_run(h, first), "The fetch first:0 has already been fetched."),
            refused(lambda: session.partial_run(h, second, {a: 3, c: 1}), "The feed a:0 has already been fed."),
            refused(lambda: session.partial_run(other, second, {a: 1}), "The fetch second:0 was not specified in"),
            refused(lambda: session.partial_run(other, first, {c: 1}), "The feed c:0 was not specified in"),
            refused(lambda: session.partial_run("other", first, {a: 1}), "Must run 'setup' before"),
            refused(lambda: session.partial_run_setup([]), "Must specify at least one target to fetch or execute."),
            refused(lambda: part(first.op, {a: 1, b: 2}), "requires empty target_list"),
        ]
