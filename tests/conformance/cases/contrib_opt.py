"""`tf.contrib.opt`: values after some steps with dense and sparse gradients, names of variables, refusals."""

import numpy as np


def cases(tf):
    found = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    for name, make in OPTIMIZERS.items():
        found["steps of " + name] = lambda tf, make=make: steps(tf, make)
        if name != "GGT":
            found["rows of " + name] = lambda tf, make=make: rows(tf, make)
    for name, make in DECAYING.items():
        found["given gradients with " + name] = lambda tf, make=make: given(tf, make)
    return found


OPTIMIZERS = {
    "AdaMax": lambda tf, step: tf.contrib.opt.AdaMaxOptimizer(0.1),
    "AdamGS": lambda tf, step: tf.contrib.opt.AdamGSOptimizer(step, 0.1),
    "AddSign": lambda tf, step: tf.contrib.opt.AddSignOptimizer(0.1, alpha=0.5),
    "GGT": lambda tf, step: tf.contrib.opt.GGTOptimizer(0.1, window=3, svd_eps=0.01),
    "LARS": lambda tf, step: tf.contrib.opt.LARSOptimizer(0.1, weight_decay=0.01, eeta=0.5),
    "LARS without a list": lambda tf, step: tf.contrib.opt.LARSOptimizer(0.1, skip_list=["w"], use_nesterov=True),
    "LazyAdam": lambda tf, step: tf.contrib.opt.LazyAdamOptimizer(0.1),
    "LazyAdamGS": lambda tf, step: tf.contrib.opt.LazyAdamGSOptimizer(step, 0.1),
    "Nadam": lambda tf, step: tf.contrib.opt.NadamOptimizer(0.1),
    "PowerSign": lambda tf, step: tf.contrib.opt.PowerSignOptimizer(0.1, base=2.0),
    "RegAdagrad": lambda tf, step: tf.contrib.opt.RegAdagradOptimizer(0.1),
    "Shampoo": lambda tf, step: tf.contrib.opt.ShampooOptimizer(step, learning_rate=0.1, epsilon=0.1),
    "Shampoo of averages": lambda tf, step: tf.contrib.opt.ShampooOptimizer(
        step, gbar_decay=0.9, gbar_weight=0.1, mat_gbar_decay=0.95, learning_rate=lambda t: 0.1 / t
    ),
    "Shampoo of diagonals": lambda tf, step: tf.contrib.opt.ShampooOptimizer(
        step, max_matrix_size=1, learning_rate=0.1
    ),
    "Shampoo by iterations": lambda tf, step: tf.contrib.opt.ShampooOptimizer(
        step, learning_rate=0.1, epsilon=0.1, use_iterative_root=True
    ),
    "Shampoo with intervals": lambda tf, step: tf.contrib.opt.ShampooOptimizer(
        step, learning_rate=0.1, epsilon=0.1, svd_interval=2, precond_update_interval=2
    ),
}


# TensorFlow decays variables before, after or while the loss is computed: only given gradients have one result.
DECAYING = {
    "AdamW": lambda tf: tf.contrib.opt.AdamWOptimizer(0.01, 0.1),
    "MomentumW": lambda tf: tf.contrib.opt.MomentumWOptimizer(0.01, 0.1, 0.9, use_nesterov=True),
    "decaying Adagrad": lambda tf: tf.contrib.opt.extend_with_decoupled_weight_decay(tf.train.AdagradOptimizer)(
        weight_decay=0.01, learning_rate=0.1
    ),
}


def model(tf):
    weight = tf.get_variable("w", initializer=tf.constant([[1.0, -2.0], [3.0, 0.5], [-1.5, 2.5]]))
    bias = tf.get_variable("b", initializer=tf.constant([0.5, -0.25]))
    step = tf.train.get_or_create_global_step()
    return weight, bias, step


def run(tf, train, fetches, count=4, feed=None):
    """The values of ``fetches`` after each of the steps."""
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(tf.local_variables_initializer())
        values = []
        for number in range(count):
            session.run(train, feed(number) if feed else None)
            values.append([value.tolist() for value in session.run(fetches)])
    return values


def names(tf):
    return [[v.op.name, v.shape.as_list()] for v in sorted(tf.global_variables(), key=lambda v: v.op.name)]


def loss_of(tf, weight, bias):
    x = tf.constant([[1.0, 2.0, -1.0], [0.5, -1.0, 2.0]])
    return tf.reduce_sum(tf.square(tf.matmul(x, weight) + bias - 1.0))


def steps(tf, make):
    weight, bias, step = model(tf)
    train = make(tf, step).minimize(loss_of(tf, weight, bias), global_step=step)
    return [run(tf, train, [weight, bias, step]), names(tf)]


def rows(tf, make):
    weight, bias, step = model(tf)
    taken = tf.gather(weight, [2, 0, 2])
    loss = tf.reduce_sum(tf.square(taken - [[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]])) + tf.reduce_sum(bias * bias)
    train = make(tf, step).minimize(loss, global_step=step)
    return run(tf, train, [weight, bias])


def given(tf, make):
    weight, bias, step = model(tf)
    pairs = [(tf.constant([[1.0, -1.0], [0.5, 0.0], [0.25, 3.0]]), weight), (tf.constant([2.0, -3.0]), bias)]
    some = tf.IndexedSlices(tf.constant([[1.0, 2.0], [3.0, -4.0]]), tf.constant([2, 0]), tf.constant([3, 2]))
    opt = make(tf)
    trains = [
        opt.apply_gradients(pairs, global_step=step),
        opt.apply_gradients([(some, weight), *pairs[1:]]),
        opt.apply_gradients(pairs, decay_var_list=[bias]),
    ]
    return [[run(tf, train, [weight, bias], count=2) for train in trains], names(tf)]


def case_decays_of_signs(tf):
    from tensorflow.contrib.opt.python.training import sign_decay

    functions = [
        sign_decay.get_linear_decay_fn(10),
        sign_decay.get_cosine_decay_fn(10),
        sign_decay.get_cosine_decay_fn(10, num_periods=2, zero_after=1),
        sign_decay.get_restart_decay_fn(10, num_periods=2),
        sign_decay.get_restart_decay_fn(10, num_periods=2, zero_after=1),
    ]
    with tf.Session() as session:
        return [
            [session.run(tf.convert_to_tensor(decay(tf.constant(t)))).tolist() for t in range(0, 13, 2)]
            for decay in functions
        ]


def case_add_sign_with_a_decay(tf):
    from tensorflow.contrib.opt.python.training import sign_decay

    weight, bias, step = model(tf)
    opt = tf.contrib.opt.AddSignOptimizer(0.1, sign_decay_fn=sign_decay.get_linear_decay_fn(5))
    train = opt.minimize(loss_of(tf, weight, bias), global_step=step)
    return run(tf, train, [weight, bias])


def case_power_sign_decay_without_a_step(tf):
    from tensorflow.contrib.opt.python.training import sign_decay

    weight, bias, _ = model(tf)
    opt = tf.contrib.opt.PowerSignOptimizer(0.1, sign_decay_fn=sign_decay.get_cosine_decay_fn(5))
    opt.minimize(loss_of(tf, weight, bias))


def case_slots_that_stay(tf):
    weight, _, _ = model(tf)
    opt = tf.contrib.opt.RegAdagradOptimizer(0.1)
    first = opt.apply_gradients([(tf.constant([[1.0, -1.0], [0.5, 0.0], [0.25, 3.0]]), weight)])
    with tf.control_dependencies([first]), opt.avoid_updating_slots():
        train = opt.apply_gradients([(tf.constant([[2.0, -1.0], [0.5, 0.0], [0.25, 3.0]]), weight)])
    return run(tf, train, [weight, opt.get_slot(weight, "accumulator")])


def case_lars_refuses(tf):
    errors = []
    for arguments in [{"momentum": -0.1}, {"weight_decay": -1.0}]:
        try:
            tf.contrib.opt.LARSOptimizer(0.1, **arguments)
        except ValueError as error:
            errors.append(str(error))
    return errors


def case_moving_average(tf):
    weight, bias, step = model(tf)
    opt = tf.contrib.opt.MovingAverageOptimizer(tf.train.GradientDescentOptimizer(0.05), 0.5)
    train = opt.minimize(loss_of(tf, weight, bias), global_step=step)
    found = names(tf)
    averages = [v for v in tf.global_variables() if "Average" in v.op.name]
    return [found, run(tf, train, [weight, bias, *averages]), train.name]


def swapped(tf, folder, scope, **arguments):
    with tf.variable_scope(scope, **arguments):
        weight, bias, _ = model(tf)
    opt = tf.contrib.opt.MovingAverageOptimizer(tf.train.MomentumOptimizer(0.01, 0.9), 0.5)
    train = opt.minimize(tf.reduce_sum(tf.square(tf.matmul(tf.ones([2, 3]), weight) + bias)))
    saver = opt.swapping_saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(train)
        path = saver.save(session, folder + "/model")
        reader = tf.train.load_checkpoint(path)
        names = sorted(reader.get_variable_to_shape_map())
        return {name: reader.get_tensor(name).tolist() for name in names}


def case_averages_saved_as_variables(tf):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return swapped(tf, folder, "s")


def case_averages_of_parts_saved_as_variables(tf):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return swapped(tf, folder, "s", partitioner=tf.fixed_size_partitioner(2))


def case_saver_before_training(tf):
    tf.contrib.opt.MovingAverageOptimizer(tf.train.GradientDescentOptimizer(0.05)).swapping_saver()


def case_saver_without_averages(tf):
    weight, bias, _ = model(tf)
    opt = tf.contrib.opt.MovingAverageOptimizer(tf.train.GradientDescentOptimizer(0.05))
    opt.minimize(loss_of(tf, weight, bias))
    opt.swapping_saver([weight, bias])


def case_clipped_variables(tf):
    weight, bias, step = model(tf)
    opt = tf.contrib.opt.VariableClippingOptimizer(
        tf.train.GradientDescentOptimizer(0.05), {weight: [0], bias: [0]}, max_norm=1.5
    )
    train = opt.minimize(loss_of(tf, weight, bias), global_step=step)
    return [run(tf, train, [weight, bias]), opt.get_slot_names()]


def case_clipped_rows(tf):
    weight, _, _ = model(tf)
    found = []
    for axes in ([1], [0, 1]):
        opt = tf.contrib.opt.VariableClippingOptimizer(tf.train.GradientDescentOptimizer(0.05), {weight: axes}, 1.0)
        train = opt.minimize(tf.reduce_sum(tf.gather(weight, [1, 2])))
        found.append(run(tf, train, [weight], count=2))
    return found


def case_tasks_in_turn(tf):
    weight, bias, _ = model(tf)
    task = tf.placeholder(tf.float32, [])
    loss = task * tf.reduce_sum(weight * weight) + (1 - task) * tf.reduce_sum(bias * bias)
    opt = tf.contrib.opt.MultitaskOptimizerWrapper(tf.train.MomentumOptimizer(0.1, 0.9))
    train = opt.minimize(loss)
    return run(tf, train, [weight, bias], feed=lambda number: {task: float(number % 2)})


def case_tasks_of_no_optimizer(tf):
    tf.contrib.opt.MultitaskOptimizerWrapper(3)


def case_gradients_clipped_by_norm(tf):
    weight, bias, _ = model(tf)
    pairs = [(tf.constant([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]]), weight), (tf.zeros([2]), bias), (None, weight)]
    clipped, norm = tf.contrib.opt.clip_gradients_by_global_norm(pairs, 1.0)
    with tf.Session() as session:
        found = session.run([clipped[0][0], clipped[1][0], norm])
    return [[value.tolist() for value in found], clipped[2][0], [var.name for _, var in clipped]]


def case_gradients_that_are_not_stale(tf):
    weight, bias, step = model(tf)
    opt = tf.contrib.opt.DropStaleGradientOptimizer(tf.train.GradientDescentOptimizer(0.05), 0)
    train = opt.minimize(loss_of(tf, weight, bias), global_step=step)
    return [run(tf, train, [weight, bias, step]), names(tf), [t.op.name for t in tf.get_collection("summaries")]]


def case_scipy(tf):
    vector = tf.get_variable("v", initializer=np.array([7.0, -3.0], "float32"))
    loss = tf.reduce_sum(tf.square(vector - [1.0, 2.0]))
    optimizer = tf.contrib.opt.ScipyOptimizerInterface(loss, options={"maxiter": 50})
    seen, losses = [], []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        optimizer.minimize(
            session, fetches=[loss], step_callback=lambda x: seen.append(len(x)), loss_callback=losses.append
        )
        value = session.run(vector)
    return [[round(x, 3) for x in value.tolist()], seen[0], losses[0].tolist(), len(losses) > 1]


def case_scipy_with_constraints(tf):
    vector = tf.get_variable("v", initializer=np.array([7.0, 7.0], "float32"))
    loss = tf.reduce_sum(tf.square(vector))
    optimizer = tf.contrib.opt.ScipyOptimizerInterface(
        loss, equalities=[vector[1] - 2.0], inequalities=[vector[0] - 1.0], method="SLSQP"
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        optimizer.minimize(session)
        return [round(x, 3) for x in session.run(vector).tolist()]


def case_scipy_within_bounds(tf):
    vector = tf.get_variable("v", initializer=np.array([7.0, 7.0], "float32"))
    other = tf.get_variable("o", initializer=np.float32(3.0))
    loss = tf.reduce_sum(tf.square(vector)) + tf.square(other)
    optimizer = tf.contrib.opt.ScipyOptimizerInterface(loss, var_to_bounds={vector: ([1.0, -5.0], 9.0)})
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        optimizer.minimize(session)
        return [round(abs(x), 3) for x in [*session.run(vector).tolist(), float(session.run(other))]]


def case_scipy_with_bounds_of_its_own(tf):
    loss = tf.square(tf.get_variable("v", initializer=3.0))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        tf.contrib.opt.ScipyOptimizerInterface(loss, bounds=[(0, 1)]).minimize(session)


def case_outside_without_a_method(tf):
    loss = tf.square(tf.get_variable("v", initializer=3.0))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        tf.contrib.opt.ExternalOptimizerInterface(loss).minimize(session)
