"""Tensors that a session keeps, dense tables, and how losses of replicas add up."""

import numpy as np


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def tried(call):
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
        return type(error).__name__


def case_kept_tensors(tf):
    found = []
    with tf.Session() as session:
        x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        kept = session.run(tf.get_session_handle(x))
        words = session.run(tf.get_session_handle(tf.constant(["a", "b"])))
        found.append([kept.eval(), words.eval()])
        holder, again = tf.get_session_tensor(kept.handle, tf.float32)
        further = tf.get_session_handle(tf.matmul(again, again))
        found.append(
            [holder.dtype.name, again.dtype.name, str(again.shape), session.run(again * 10.0, {holder: kept.handle})]
        )
        for _ in range(3):
            kept = session.run(further, {holder: kept.handle})
        found.append(kept.eval())
        pair = session.run({"h": tf.get_session_handle(x + 1.0), "x": x})
        found.append([pair["h"].eval(), pair["x"]])
        name, forget = tf.delete_session_tensor(kept.handle)
        session.run(forget, {name: kept.handle})
        found.append(tried(lambda: session.run(again, {holder: kept.handle})))
        words.delete()
        found.append(tried(lambda: tf.get_session_handle([1.0])))
    return found


def case_dense_tables(tf):
    found = []
    table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, 0, -2)
    words = tf.lookup.experimental.DenseHashTable(tf.string, tf.float32, [0.5, 0.5], "", "gone")
    keys = tf.constant([11, 12, 13], tf.int64)
    with tf.Session() as session:
        found.append(session.run(table.size()))
        session.run(table.insert(keys, tf.constant([0, 1, 2], tf.int64)))
        found.append(session.run([table.size(), table.lookup(tf.constant([12, 15], tf.int64))]))
        session.run(table.insert_or_assign(keys[:1], tf.constant([7], tf.int64)))
        session.run(table.remove(keys[1:2]))
        found.append(session.run([table.size(), table.lookup(keys)]))
        session.run(table.erase(keys[2:]))
        exported = session.run(table.export())
        found.append(sorted(int(key) for key in exported[0] if int(key) > 0))
        for key in (0, -2):
            one = tf.constant([key], tf.int64)
            found.append(tried(lambda one=one: session.run(table.insert(one, tf.constant([1], tf.int64)))))
            found.append(tried(lambda one=one: session.run(table.lookup(one))))
            found.append(tried(lambda one=one: session.run(table.remove(one))))
        session.run(words.insert(["a"], [[1.0, 2.0]]))
        found.append(session.run(words.lookup(["a", "b"])))
        found.append(tried(lambda: session.run(words.lookup([""]))))
    return found


def case_how_losses_add_up(tf):
    return [str(tf.distribute.get_loss_reduction()).rpartition(".")[2], np.float32(1.0)]
