"""Arguments and files at the edges: old checkpoints, impossible numbers of calls, arrays of tensors out of range."""

import os

OLD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "data", "tf1", "old-?????-of-00002")


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def tried(call, *phrases):
    """What ``call`` gives, or the class of its error and which of ``phrases`` it says."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
        return [type(error).__name__] + [phrase in str(error) for phrase in phrases]


def case_old_checkpoints_are_restored(tf):
    names = ["a", "b", "bool", "uint8", "int64", "float16", "float64", "empty"]
    shapes = [[3], [2], [3], [3], [3], [3], [3], [0, 3]]
    types = [tf.float32, tf.string, tf.bool, tf.uint8, tf.int64, tf.float16, tf.float64, tf.float32]
    variables = [
        tf.Variable(tf.zeros(shape, dtype), name=name)
        for name, shape, dtype in zip(names, shapes, types)
    ]
    with tf.variable_scope("rows", partitioner=tf.fixed_size_partitioner(2)):
        rows = tf.get_variable("part", [10, 2])
    with tf.Session() as session:
        tf.train.Saver().restore(session, OLD)
        found = [value.tolist() for value in session.run(variables + [tf.convert_to_tensor(rows)])]
    start = tf.get_variable("start", [3])
    tf.train.init_from_checkpoint(OLD, {"a": start})
    with tf.Session() as session:
        session.run(start.initializer)
        found.append(session.run(start).tolist())
    found.append([[name, list(shape)] for name, shape in tf.train.list_variables(OLD)])
    reader = tf.train.NewCheckpointReader(OLD)
    found.append([reader.has_tensor("a"), reader.has_tensor("z"), reader.get_tensor("float64").tolist()])
    found.append(reader.get_variable_to_dtype_map()["int64"].name)
    found.append([tf.train.checkpoint_exists(OLD), tried(lambda: reader.get_tensor("z"))])
    return found
