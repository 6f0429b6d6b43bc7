"""Optimizers, devices of replicas, learning rates, moving averages, the global step."""

import numpy as np


def cases(tf):
    found = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    for name, arguments in OPTIMIZERS.items():
        found["operations of " + name] = lambda tf, name=name, arguments=arguments: operations(tf, name, arguments)
    return found


OPTIMIZERS = {
    "GradientDescent": (0.1,),
    "Momentum": (0.1, 0.9),
    "Adagrad": (0.1,),
    "Adadelta": (0.1,),
    "Adam": (0.1,),
    "RMSProp": (0.1,),
    "Ftrl": (0.1,),
    "ProximalGradientDescent": (0.1,),
    "ProximalAdagrad": (0.1,),
}


def cluster(tf):
    return tf.train.ClusterSpec({"ps": ["a:1", "b:1", "c:1"], "worker": ["d:1", "e:1"]})


def operations(tf, name, arguments):
    """Updates and slots of an optimizer: name, type, references, control inputs, device."""
    with tf.device(tf.train.replica_device_setter(cluster=cluster(tf), worker_device="/job:worker/task:1")):
        variables = [tf.Variable([1.0, 2.0], name="s/v"), tf.Variable(3.0, name="w")]
        step = tf.Variable(0, name="step", trainable=False)
        loss = tf.reduce_sum(variables[0] * variables[1])
        optimizer = getattr(tf.train, name + "Optimizer")(*arguments)
        train = optimizer.minimize(loss, global_step=step)
    kinds = ("Apply", "VariableV2", "AssignAdd", "AssignSub")
    found = []
    for op in tf.get_default_graph().get_operations():
        if op.type.startswith(kinds):
            references = [t.name for t in op.inputs if t.dtype.name.endswith("_ref")]
            found.append([op.name, op.type, references, op.device, sorted(map(str, op.colocation_groups()))])
    return [
        found,
        train.name,
        optimizer.get_name(),
        optimizer.get_slot_names(),
        [v.name for v in optimizer.variables()],
        [[v.name for v in tf.get_collection(key)] for key in ["variables", "trainable_variables", "train_op"]],
        [optimizer.get_slot(variables[0], slot).name for slot in optimizer.get_slot_names()],
        optimizer.get_slot(variables[0], "no such") is None,
    ]


# Devices ---------------------------------------------------------------------------------------------------------


def devices(tf, setter, count=5):
    with tf.device(setter):
        return [tf.Variable(1.0).device for _ in range(count)] + [tf.constant(1.0).device]


def case_round_robin(tf):
    return [
        devices(tf, tf.train.replica_device_setter(cluster=cluster(tf)), 7),
        devices(tf, tf.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker/task:3/gpu:1")),
    ]


def case_no_parameter_servers(tf):
    return [
        tf.train.replica_device_setter() is None,
        tf.train.replica_device_setter(cluster=tf.train.ClusterSpec({"worker": ["a:1"]})) is None,
        devices(tf, tf.train.replica_device_setter(ps_tasks=0)),
    ]


def case_other_names_of_jobs(tf):
    spec = {"parameter": ["a:1", "b:1"], "trainer": ["c:1"]}
    return [
        devices(
            tf, tf.train.replica_device_setter(cluster=spec, ps_device="/job:parameter", worker_device="/job:trainer")
        ),
        devices(tf, tf.train.replica_device_setter(ps_tasks=2, ps_device="/job:parameter/cpu:0", worker_device="")),
        devices(tf, tf.train.replica_device_setter(ps_tasks=2, ps_device="", worker_device="/job:trainer")),
    ]


def case_what_is_asked_for_within(tf):
    found = []
    with tf.device(tf.train.replica_device_setter(cluster=cluster(tf), worker_device="/job:worker/task:1")):
        for name in ["/cpu:0", "/gpu:1", "/job:ps/task:2", "/job:worker/task:0", "/job:other", "/task:1", None]:
            with tf.device(name):
                found.append([tf.Variable(1.0).device, tf.constant(1.0).device])
    return found


def case_within_what_is_asked_for(tf):
    with tf.device("/job:outer/task:7/gpu:2"):
        return devices(tf, tf.train.replica_device_setter(cluster=cluster(tf), worker_device="/job:worker/task:1"))


def case_no_merging_of_devices(tf):
    setter = tf.train.replica_device_setter(cluster=cluster(tf), merge_devices=False)
    with tf.device(setter):
        with tf.device("/gpu:1"):
            found = [tf.Variable(1.0).device, tf.constant(1.0).device]
        return [*found, tf.Variable(1.0).device, tf.constant(1.0).device]


def case_ps_ops(tf):
    setter = tf.train.replica_device_setter(cluster=cluster(tf), ps_ops=["Const"])
    with tf.device(setter):
        return [tf.constant(1.0).device, tf.constant(1.0).device, tf.Variable(lambda: 1.0).device]


def case_ps_strategy(tf):
    setter = tf.train.replica_device_setter(cluster=cluster(tf), ps_strategy=lambda op: len(op.name) % 3)
    with tf.device(setter):
        return [tf.Variable(1.0, name="x" * n).device for n in range(1, 5)]


def case_bad_ps_strategy(tf):
    tf.train.replica_device_setter(cluster=cluster(tf), ps_strategy=3)


def case_bad_cluster(tf):
    tf.train.replica_device_setter(cluster=3)


def case_greedy_strategy(tf):
    training = tf.contrib.training
    strategy = training.GreedyLoadBalancingStrategy(3, training.byte_size_load_fn)
    shapes = [[10], [2, 2], [100], [1], [30], [7], [50, 2], [3]]
    with tf.device(tf.train.replica_device_setter(cluster=cluster(tf), ps_strategy=strategy)):
        return [tf.get_variable("v" + str(n), shape).device for n, shape in enumerate(shapes)]


def case_partitions_go_round(tf):
    with tf.device(tf.train.replica_device_setter(cluster=cluster(tf))):
        v = tf.get_variable("v", [7, 2], partitioner=tf.fixed_size_partitioner(4))
        return [part.device for part in v]


# Optimizers ------------------------------------------------------------------------------------------------------


def sgd(tf):
    return tf.train.GradientDescentOptimizer(0.5)


def case_no_variables(tf):
    sgd(tf).minimize(tf.constant(1.0))


def case_no_gradients(tf):
    tf.Variable(1.0)
    sgd(tf).minimize(tf.constant(1.0))


def case_loss_of_integers(tf):
    sgd(tf).minimize(tf.Variable(1) * 2)


def case_bad_gate(tf):
    sgd(tf).compute_gradients(tf.Variable(1.0) * 2.0, gate_gradients=7)


def case_nothing_to_apply(tf):
    sgd(tf).apply_gradients([])


def case_only_none_to_apply(tf):
    sgd(tf).apply_gradients([(None, tf.Variable(1.0))])


def case_gradient_for_a_tensor(tf):
    sgd(tf).apply_gradients([(tf.constant(1.0), tf.constant(1.0))])


def case_no_optimizer_name(tf):
    tf.train.Optimizer(False, "")


def case_bad_accumulator(tf):
    tf.train.AdagradOptimizer(0.1, 0.0)


def case_bad_ftrl(tf):
    tf.train.FtrlOptimizer(0.1, learning_rate_power=0.5)


def case_gradients(tf):
    v, w, x = tf.Variable(1.0, name="v"), tf.Variable(2.0, name="w"), tf.Variable(3.0, name="x")
    found = []
    for gate in [tf.train.Optimizer.GATE_NONE, tf.train.Optimizer.GATE_OP, tf.train.Optimizer.GATE_GRAPH]:
        pairs = sgd(tf).compute_gradients(v * w, gate_gradients=gate)
        assert pairs[2] == (None, x)
        found.append([grad for grad, _ in pairs[:2]])
    found.append([g for g, _ in sgd(tf).compute_gradients(v * w, var_list=[w], grad_loss=tf.constant(10.0))])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [[value.tolist() for value in sess.run(grads)] for grads in found]


def case_global_step(tf):
    v = tf.Variable([1.0, 2.0])
    step = tf.train.get_or_create_global_step()
    train = sgd(tf).minimize(tf.reduce_sum(v * v), global_step=step, name="go")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(3):
            sess.run(train)
        return [train.name, tf.train.global_step(sess, step), sess.run(v).tolist()]


def case_learning_rate_as_a_function_and_a_tensor(tf):
    v = tf.Variable(1.0)
    rate = tf.placeholder(tf.float32, [])
    first = tf.train.GradientDescentOptimizer(lambda: 0.25).minimize(v * 2.0)
    second = tf.train.MomentumOptimizer(rate, lambda: 0.0).minimize(v * 2.0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(first)
        found = [sess.run(v).tolist()]
        sess.run(second, {rate: 2.0})
        return [*found, sess.run(v).tolist()]


def case_constraint(tf):
    v = tf.Variable([1.0, 2.0], constraint=lambda value: tf.clip_by_value(value, 0.0, 1.5))
    train = sgd(tf).minimize(-tf.reduce_sum(v * v))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        return sess.run(v).tolist()


def case_constraint_of_a_sparse_variable(tf):
    v = tf.Variable([1.0, 2.0], constraint=tf.abs)
    sgd(tf).minimize(tf.reduce_sum(tf.gather(v, [0])))


def case_own_optimizer(tf):
    class Own(tf.train.Optimizer):
        def __init__(self, rate):
            super().__init__(False, "Own")
            self._rate = rate

        def _create_slots(self, var_list):
            for var in var_list:
                self._zeros_slot(var, "seen", self._name)

        def _prepare(self):
            self._rate_tensor = tf.convert_to_tensor(self._rate, name="rate")

        def _apply_dense(self, grad, var):
            seen = self.get_slot(var, "seen").assign_add(grad)
            return tf.assign_sub(var, self._rate_tensor * seen).op

        def _apply_sparse(self, grad, var):
            seen = tf.scatter_add(self.get_slot(var, "seen"), grad.indices, grad.values)
            with tf.control_dependencies([seen]):
                return tf.scatter_sub(var, grad.indices, self._rate_tensor * grad.values).op

        def _finish(self, update_ops, name_scope):
            return tf.group(*update_ops, name=name_scope)

    v, table = tf.Variable([1.0, 2.0], name="v"), tf.Variable([[1.0], [2.0], [3.0]], name="table")
    optimizer = Own(0.5)
    train = optimizer.minimize(tf.reduce_sum(v * v) + tf.reduce_sum(tf.gather(table, [2, 0, 2])))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        kept = [v, table, optimizer.get_slot(v, "seen"), optimizer.get_slot(table, "seen")]
        return [train.name, [k.name for k in kept], [sess.run(k).tolist() for k in kept]]


def case_slots_of_partitioned_variables(tf):
    with tf.variable_scope("s"):
        v = tf.get_variable("v", [4, 2], partitioner=tf.fixed_size_partitioner(2))
    tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(tf.convert_to_tensor(v)))
    found = []
    for variable in tf.global_variables():
        info = variable._get_save_slice_info()
        found.append([variable.name, info and [info.full_name, info.spec]])
    return found


def case_slots_within_a_scope(tf):
    with tf.variable_scope("s"):
        v = tf.get_variable("v", [2])
        tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(v))
        tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(v))
    return [variable.name for variable in tf.global_variables()]


# Learning rates ---------------------------------------------------------------------------------------------------


def rates(tf, make, steps=(0, 1, 7, 10, 15, 25, 40)):
    step = tf.placeholder(tf.int64, [])
    rate = make(step)
    with tf.Session() as sess:
        return [rate.dtype.name, [round(float(sess.run(rate, {step: s})), 6) for s in steps]]


def case_learning_rates(tf):
    train = tf.train
    return [
        rates(tf, make)
        for make in [
            lambda step: train.exponential_decay(0.5, step, 10, 0.9),
            lambda step: train.exponential_decay(0.5, step, 10, 0.9, staircase=True),
            lambda step: train.natural_exp_decay(0.5, step, 10, 0.9),
            lambda step: train.natural_exp_decay(0.5, step, 10, 0.9, staircase=True),
            lambda step: train.inverse_time_decay(0.5, step, 10, 0.9),
            lambda step: train.inverse_time_decay(0.5, step, 10, 0.9, staircase=True),
            lambda step: train.piecewise_constant(step, [5, 15], [1.0, 0.5, 0.1]),
            lambda step: train.polynomial_decay(0.5, step, 20, 0.1, power=2.0),
            lambda step: train.polynomial_decay(0.5, step, 20, 0.1, cycle=True),
            lambda step: train.cosine_decay(0.5, step, 20, alpha=0.1),
            lambda step: train.cosine_decay_restarts(0.5, step, 8, alpha=0.1, m_mul=0.5),
            lambda step: train.cosine_decay_restarts(0.5, step, 8, t_mul=1.0),
            lambda step: train.linear_cosine_decay(0.5, step, 20),
        ]
    ]


def case_piecewise_constant_at_a_boundary(tf):
    return rates(tf, lambda step: tf.train.piecewise_constant(step, [7, 10], [1.0, 2.0, 3.0]))


def case_decay_without_a_step(tf):
    tf.train.exponential_decay(0.5, None, 10, 0.9)


def case_piecewise_constant_of_wrong_length(tf):
    tf.train.piecewise_constant(tf.constant(1), [1, 2], [1.0, 2.0])


# Moving averages --------------------------------------------------------------------------------------------------


def case_moving_averages(tf):
    v, w = tf.Variable([1.0, 2.0], name="v"), tf.Variable(3.0, name="w")
    tensor = w * 2.0
    count = tf.Variable(0, trainable=False, name="count")
    change = tf.group(v.assign_add([1.0, 10.0]), w.assign_add(5.0), count.assign_add(1))
    found = []
    averages = []
    for ema in [
        tf.train.ExponentialMovingAverage(0.9),
        tf.train.ExponentialMovingAverage(0.9, num_updates=count, name="counted"),
        tf.train.ExponentialMovingAverage(0.5, zero_debias=True, name="debiased"),
    ]:
        with tf.control_dependencies([change]):
            averages.append([ema.apply([v, w, tensor]), ema.average(v), ema.average(w), ema.average(tensor)])
        found.append([ema.average_name(v), ema.average(v).name, ema.average(tensor).name, ema.name])
        found.append(sorted([name, variable.op.name] for name, variable in ema.variables_to_restore().items()))
    for update, *kept in averages:
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(3):
                sess.run(update)
            found.append([np.round(np.float64(sess.run(k)), 3).tolist() for k in kept])
    collected = [v.name for v in tf.moving_average_variables()]
    return [found, collected, [v.name for v in tf.global_variables()]]


def case_average_of_integers(tf):
    tf.train.ExponentialMovingAverage(0.9).apply([tf.Variable(1)])


def case_name_of_an_average_that_is_not_there(tf):
    return tf.train.ExponentialMovingAverage(0.9).average_name(tf.Variable(1.0, name="v"))


# Global step ------------------------------------------------------------------------------------------------------


def case_getting_the_global_step(tf):
    found = [tf.train.get_global_step() is None]
    step = tf.train.create_global_step()
    return [
        *found,
        step.name,
        step.dtype.name,
        step.trainable,
        tf.train.get_global_step() is step,
        tf.train.get_or_create_global_step() is step,
        [v.name for v in tf.get_collection("global_step")],
        [v.name for v in tf.global_variables()],
    ]


def case_global_step_by_name(tf):
    tf.Variable(0, name="global_step")
    return tf.train.get_global_step().name


def case_global_step_twice(tf):
    tf.train.create_global_step()
    tf.train.create_global_step()


def case_global_step_of_floats(tf):
    tf.Variable(0.0, name="global_step")
    tf.train.get_global_step()


def case_global_step_that_is_no_scalar(tf):
    tf.train.assert_global_step(tf.Variable([0]))


def case_global_step_that_is_no_tensor(tf):
    tf.train.assert_global_step(3)
