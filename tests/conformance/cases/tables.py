"""Lookup tables, hash buckets, sparse tensors in other forms, lookups of what they list."""

import os
import tempfile

import numpy as np


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def run(tf, *values):
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        return session.run(values)


def sparse(tf):
    return tf.SparseTensor([[0, 0], [0, 2], [2, 1]], tf.constant([1, 3, 2], tf.int64), [4, 3])


def parts(value):
    return [value.indices, value.values, value.dense_shape]


def case_of_a_list(tf):
    L = tf.contrib.lookup
    keys = tf.constant(["b", "what", "a", ""])
    plain = L.index_table_from_tensor(["a", "b", "c"], default_value=-7)
    hashed = L.index_table_from_tensor(tf.constant(["a", "b", "c"]), num_oov_buckets=5)
    numbers = L.index_table_from_tensor([10, 20], dtype=tf.int64)
    back = L.index_to_string_table_from_tensor(["a", "b"], default_value="?")
    found = [plain.lookup(keys), hashed.lookup(keys), numbers.lookup(tf.constant([20, 5], tf.int64))]
    found += [back.lookup(tf.constant([1, 0, 9], tf.int64)), plain.size(), hashed.size()]
    found += parts(plain.lookup(tf.SparseTensor([[0, 1], [1, 0]], ["c", "x"], [2, 2])))
    return [run(tf, *found), len(tf.get_collection("table_initializer"))]


def case_text_by_its_first_names(tf):
    words, mapping = tf.constant(["c", "a", "x"]), tf.constant(["a", "b", "c"])
    table = tf.contrib.lookup.string_to_index_table_from_tensor(mapping, num_oov_buckets=0, default_value=-2)
    found = [
        table.lookup(words),
        tf.contrib.lookup.string_to_index(words, mapping),
        tf.contrib.lookup.index_to_string(tf.constant([1, 7], tf.int64), tf.constant(["a", "b"]), "none"),
    ]
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        return session.run(found)


def case_of_a_file(tf):
    L = tf.contrib.lookup
    path = os.path.join(tempfile.mkdtemp(), "words")
    with open(path, "w") as file:
        file.write("a\nb\nc\n")
    columns = path + "columns"
    with open(columns, "w") as file:
        file.write("x,3\ny,4\n")
    plain = L.index_table_from_file(path)
    some = L.index_table_from_file(path, num_oov_buckets=1, vocab_size=2)
    back = L.index_to_string_table_from_file(path)
    own = L.HashTable(L.TextFileInitializer(columns, tf.string, 0, tf.int64, 1, delimiter=","), -1)
    keys = tf.constant(["b", "c", "d"])
    return run(
        tf,
        plain.lookup(keys),
        some.lookup(keys),
        back.lookup(tf.constant([2, 3], tf.int64)),
        own.lookup(tf.constant(["y", "z"])),
    )


def case_hash_tables(tf):
    L = tf.contrib.lookup
    table = L.HashTable(L.KeyValueTensorInitializer(["a", "b"], [1.5, 2.5], tf.string, tf.float32), 0.25)
    new = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1, 2], [5, 6], tf.int64, tf.int64), -1)
    vocabulary = tf.lookup.StaticVocabularyTable(
        tf.lookup.KeyValueTensorInitializer(["a", "b"], [0, 1], tf.string, tf.int64), 3
    )
    keys = tf.constant(["b", "q"])
    return run(tf, table.lookup(keys), new.lookup(tf.constant([2, 3], tf.int64)), vocabulary.lookup(keys), table.size())


def case_mutable_tables(tf):
    table = tf.contrib.lookup.MutableHashTable(tf.string, tf.int64, -1)
    with tf.Session() as session:
        session.run(table.insert(tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64)))
        found = [session.run([table.lookup(tf.constant(["b", "c"])), table.size()])]
        session.run(table.remove(tf.constant(["a"]))) if hasattr(table, "remove") else None
        found.append([sorted(value.tolist()) for value in session.run(table.export())])
        return found


def case_errors(tf):
    L = tf.contrib.lookup
    found = []
    plain = L.index_table_from_tensor(["a"])
    twice = L.HashTable(L.KeyValueTensorInitializer(["a", "a"], [1, 2], tf.string, tf.int64), 0)
    with tf.Session() as session:
        for tensor in (plain.lookup(tf.constant(["a"])), twice.initializer):
            try:
                session.run(tensor)
                found.append(None)
            except tf.errors.OpError as error:
                found.append(type(error).__name__)
    for call in (
        "plain.lookup(tf.constant([1]))",
        "L.index_table_from_tensor(None)",
        "L.index_table_from_file('')",
        "L.index_table_from_tensor([1, 2])",
        "L.index_table_from_file('x', num_oov_buckets=-1)",
    ):
        try:
            eval(call)
            found.append(None)
        except (TypeError, ValueError) as error:
            found.append(type(error).__name__)
    return found


def case_hash_buckets(tf):
    texts = ["x" * length + "end"[: length % 4] + str(length) for length in range(0, 300, 7)] + ["", "a", "Größe"]
    return run(tf, tf.string_to_hash_bucket_fast(texts, 1 << 62), tf.string_to_hash_bucket_fast([["a", "b"]], 10))


def case_changed_sparse_tensors(tf):
    value = sparse(tf)
    mixed = tf.SparseTensor([[2, 1], [0, 2], [0, 0]], [2.0, 3.0, 1.0], [4, 3])
    filled, empty = tf.sparse_fill_empty_rows(value, 9)
    found = parts(tf.sparse_reorder(mixed)) + parts(tf.sparse_retain(value, [True, False, True]))
    found += [*parts(filled), empty]
    found += parts(tf.sparse_reshape(value, [2, -1])) + parts(tf.sparse_transpose(value))
    found += parts(tf.sparse_concat(1, [value, value])) + parts(tf.sparse_concat(0, [value, value]))
    found += [tf.sparse_to_indicator(value, 5), tf.sparse_reduce_sum(value, 1), tf.sparse_reduce_sum(value)]
    found += [tf.sparse_tensor_to_dense(tf.sparse_reorder(mixed))]
    return run(tf, *found)


def case_safe_lookups(tf):
    table = tf.constant(np.arange(12.0, dtype=np.float32).reshape(6, 2))
    ids = tf.SparseTensor([[0, 0], [0, 1], [2, 0], [3, 0], [3, 1]], tf.constant([1, 3, -1, 2, 5], tf.int64), [5, 2])
    weights = tf.SparseTensor(ids.indices, tf.constant([1.0, 0.5, 2.0, 0.0, -1.0]), [5, 2])
    lookup = tf.nn.safe_embedding_lookup_sparse
    wide = tf.SparseTensor([[0, 0, 0], [1, 1, 0]], tf.constant([1, 3], tf.int64), [2, 2, 1])
    found = [
        lookup(table, ids),
        lookup(table, ids, combiner="sum"),
        lookup(table, ids, weights),
        lookup(table, ids, default_id=4),
        lookup(table, ids, weights, "sum"),
        lookup([table[:3], table[3:]], ids, combiner="sqrtn"),
        lookup(table, wide),
    ]
    variable = tf.Variable(np.ones([6, 2], np.float32))
    slope = tf.convert_to_tensor(tf.gradients(tf.reduce_sum(lookup(variable, ids) ** 2), variable)[0])
    return [run(tf, *found, slope), [tensor.shape.as_list() for tensor in found[:1]]]
