"""Checkpoints of objects, and modules."""

import os
import re
import shutil
import tempfile


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def tried(call):
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
        return type(error).__name__


class Folder:
    def __enter__(self):
        self.path = tempfile.mkdtemp()
        return self.path

    def __exit__(self, *args):
        shutil.rmtree(self.path)


def files(folder):
    """Names of the files in ``folder`` except data files: the writer chooses the number of a checkpoint's data
    files."""
    return sorted(name for name in os.listdir(folder) if ".data-" not in name)


def listing(tf, path):
    """The tensors of a checkpoint, but for the graph of objects."""
    reader = tf.train.load_checkpoint(path)
    shapes = reader.get_variable_to_shape_map()
    return [[name, shapes[name], reader.get_tensor(name)] for name in sorted(shapes) if name[0] != "_"]


def nodes(tf, path):
    """The graph of objects in a checkpoint, in words. Fields: children, attributes, slots."""
    text = tf.train.load_checkpoint(path).get_tensor("_CHECKPOINTABLE_OBJECT_GRAPH")
    if tf.__name__.startswith("tensorflow"):
        from tensorflow.core.protobuf.trackable_object_graph_pb2 import TrackableObjectGraph
    else:
        from tensorboard.compat.proto.trackable_object_graph_pb2 import TrackableObjectGraph
    return [
        [
            [[child.node_id, child.local_name] for child in node.children],
            [[a.name, a.full_name, a.checkpoint_key] for a in node.attributes],
            [[s.original_variable_node_id, s.slot_name, s.slot_variable_node_id] for s in node.slot_variables],
        ]
        for node in TrackableObjectGraph.FromString(text).nodes
    ]


def program(tf, optimizer):
    v = tf.get_variable("v", [2], initializer=tf.zeros_initializer())
    dense = tf.layers.Dense(2, name="d", kernel_initializer=tf.ones_initializer())
    loss = tf.reduce_sum(tf.square(dense(tf.constant([[1.0, 2.0]])) - 1.0)) + tf.reduce_sum(v)
    step = tf.train.get_or_create_global_step()
    train = optimizer.minimize(loss, global_step=step)
    checkpoint = tf.train.Checkpoint(step=step, optimizer=optimizer, layer=dense)
    checkpoint.more = [v, {"a/b": step}]
    return v, dense, train, checkpoint


def case_what_a_checkpoint_holds(tf):
    found = []
    for make in (lambda: tf.train.AdamOptimizer(0.1), lambda: tf.train.MomentumOptimizer(0.1, 0.5)):
        with tf.Graph().as_default(), Folder() as folder, tf.Session() as session:
            _, _, train, checkpoint = program(tf, make())
            session.run(tf.global_variables_initializer())
            session.run(train)
            path = checkpoint.save(os.path.join(folder, "ckpt"))
            found.append([os.path.basename(path), files(folder), listing(tf, path), nodes(tf, path)])
            found.append(os.path.basename(tf.train.latest_checkpoint(folder)))
    return found


def case_restoring(tf):
    found = []
    with Folder() as folder:
        with tf.Graph().as_default(), tf.Session() as session:
            v, dense, train, checkpoint = program(tf, tf.train.AdamOptimizer(0.1))
            session.run(tf.global_variables_initializer())
            session.run(train)
            path = checkpoint.save(os.path.join(folder, "ckpt"))
            session.run(train)
            found.append(session.run([v, dense.kernel]))
            checkpoint.restore(path).assert_consumed().run_restore_ops()
            found.append(session.run([v, dense.kernel, checkpoint.save_counter]))
            session.run(train)
            found.append([session.run([v, dense.kernel]), os.path.basename(checkpoint.save(os.path.join(folder, "n")))])
        with tf.Graph().as_default(), tf.Session() as session:
            other = tf.get_variable("other", [2], initializer=tf.ones_initializer())
            mine = tf.get_variable("mine", [], initializer=tf.zeros_initializer(), dtype=tf.int64)
            late = tf.train.Checkpoint()
            late.more = [other]
            status = late.restore(path)
            found.append(tried(lambda: bool(status.assert_existing_objects_matched())))
            found.append(tried(lambda: bool(status.assert_nontrivial_match())))
            found.append(tried(lambda: bool(status.assert_consumed())))
            status.initialize_or_restore(session)
            found.append(session.run(other))
            late.step = mine
            status.initialize_or_restore(session)
            found.append(session.run([other, mine]))
            late.unknown = tf.get_variable("third", [], initializer=tf.ones_initializer())
            found.append(tried(lambda: bool(status.assert_existing_objects_matched())))
            status.initialize_or_restore(session)
            found.append(session.run(late.unknown))
            nothing = late.restore(None)
            found.append(tried(lambda: nothing.assert_consumed()))
            found.append(tried(lambda: nothing.run_restore_ops(session)))
            nothing.initialize_or_restore(session)
            found.append(session.run([other, mine]))
            found.append(tried(lambda: late.restore(os.path.join(folder, "none"))))
    return found


def case_a_saver_restores_by_names(tf):
    with Folder() as folder:
        with tf.Graph().as_default(), tf.Session() as session:
            v, dense, train, checkpoint = program(tf, tf.train.AdamOptimizer(0.1))
            session.run(tf.global_variables_initializer())
            session.run(train)
            path = checkpoint.save(os.path.join(folder, "ckpt"))
        with tf.Graph().as_default(), tf.Session() as session:
            v, dense, train, checkpoint = program(tf, tf.train.AdamOptimizer(0.1))
            saver = tf.train.Saver()
            saver.restore(session, path)
            found = session.run([v, dense.kernel, tf.train.get_global_step()])
        with tf.Graph().as_default(), tf.Session() as session:
            one = tf.train.Saver([tf.get_variable("v", [2])])
            one.restore(session, path)
            found.append(session.run("v:0"))
            other = tf.train.Saver([tf.get_variable("unknown", [2])])
            found.append(tried(lambda: other.restore(session, path)))
        return found


def case_a_manager(tf):
    with Folder() as folder, tf.Session() as session:
        v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
        checkpoint = tf.train.Checkpoint(v=v)
        manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
        session.run(v.initializer)
        found = [manager.latest_checkpoint, manager.checkpoints]
        with session.as_default():
            found += [os.path.basename(manager.save()) for _ in range(3)]
            found.append([os.path.basename(path) for path in manager.checkpoints])
            found.append(files(folder))
            found.append(os.path.basename(manager.save(checkpoint_number=17)))
            again = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=1, checkpoint_name="other")
            found.append([os.path.basename(path) for path in again.checkpoints])
            found.append(os.path.basename(again.save()))
            found.append([os.path.basename(path) for path in again.checkpoints])
            found.append(os.path.basename(again.latest_checkpoint))
            found.append(files(folder))
            with open(os.path.join(folder, "checkpoint")) as file:
                text = file.read()
            found.append(re.findall('model_checkpoint_path: "(.*)"', text))
            found.append(tried(lambda: tf.train.CheckpointManager(checkpoint, folder, max_to_keep=0)))
    return found


def case_what_cannot_be_saved(tf):
    return [tried(lambda value=value: tf.train.Checkpoint(x=value)) for value in (1, "a", None, tf.constant(1.0), [])]


def case_state_of_a_program(tf):
    class State(tf.train.experimental.PythonState):
        value = b"first"

        def serialize(self):
            return self.value

        def deserialize(self, string_value):
            self.value = string_value

    with Folder() as folder, tf.Session():
        state = State()
        checkpoint = tf.train.Checkpoint(state=state)
        paths = [checkpoint.save(os.path.join(folder, "c"))]
        state.value = b"second"
        paths.append(checkpoint.save(os.path.join(folder, "c")))
        found = [nodes(tf, paths[0])]
        for path in paths:
            checkpoint.restore(path).assert_consumed().run_restore_ops()
            found.append(state.value)
        return found


def case_modules(tf):
    class Inner(tf.Module):
        def __init__(self):
            super().__init__()
            with self.name_scope:
                self.w = tf.Variable(1.0, name="w")
                self.fixed = tf.Variable(2.0, name="fixed", trainable=False)

        @tf.Module.with_name_scope
        def __call__(self, x):
            return tf.add(x, self.w, name="sum")

    class TwoOfThem(tf.Module):
        def __init__(self, name=None):
            super().__init__(name=name)
            self.parts = [Inner(), Inner()]
            self.by_name = {"b": tf.Variable(3.0, name="b"), "a": self.parts[0]}

    both = TwoOfThem()
    named = TwoOfThem("mine")
    names = lambda found: [v.name for v in found]  # noqa: E731 - short
    result = [both.name, named.name, names(both.variables), names(both.trainable_variables), names(named.submodules)]
    result.append([m.name for m in both.submodules])
    result += [both.parts[0](1.0).name, both.parts[1](1.0).name, tried(lambda: TwoOfThem("not a name"))]
    with both.name_scope:
        result.append(tf.constant(1.0).name)
    with Folder() as folder, tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = tf.train.Checkpoint(module=both).save(os.path.join(folder, "c"))
        result.append([name for name, _, _ in listing(tf, path)])
    return result
