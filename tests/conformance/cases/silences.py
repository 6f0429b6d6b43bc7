"""What was taken in silence, or refused with other errors: buckets, axes, images, warm starts, datasets in turns."""

import os
import tempfile


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def tried(call, *phrases):
    """What ``call`` gives, or the class of its error and which of ``phrases`` it says."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
        return [type(error).__name__] + [phrase in str(error) for phrase in phrases]


def case_reductions_of_ragged_tensors(tf):
    numbers = tf.ragged.constant([[3.0, 1.0, 4.0], [], [1.0, 5.0]])
    whole = tf.ragged.constant([[3, 1], [4]])
    deep = tf.ragged.constant([[[1.0, 2.0], [3.0]], [[4.0]], []])
    truths = tf.ragged.constant([[True, False], [], [True]])
    inner = tf.RaggedTensor.from_row_splits([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [0, 1, 3])
    with tf.Session() as session:

        def run(tensor):
            found = session.run(tensor)
            return found.to_list() if hasattr(found, "to_list") else found

        found = []
        for reduce in (tf.reduce_sum, tf.reduce_prod, tf.reduce_min, tf.reduce_max):
            found.append([run(reduce(numbers)), run(reduce(numbers, 0)), run(reduce(numbers, axis=1))])
            found.append([run(reduce(whole, 1)), run(reduce(inner, 1)), run(reduce(inner, 2)), run(reduce(deep, 2))])
        mean = tf.math.reduce_mean
        found.append([run(mean(numbers)), run(mean(numbers, 0)), run(mean(whole, 1)), run(mean(inner, [1, 2]))])
        found.append([run(mean(deep, 2)), run(tf.math.reduce_sum(inner, axis=[1, 2]))])
        found += [
            [run(reduce(truths)), run(reduce(truths, 0)), run(reduce(truths, 1))]
            for reduce in (tf.reduce_all, tf.reduce_any)
        ]
        found.append(tried(lambda: run(tf.reduce_sum(numbers, -1))))
        found.append(run(tf.reduce_sum([[1.0, 2.0]], 1, keepdims=True)))
        return found


def taken(tf, fetches, count):
    """The batches until the input ends, in an order of their own."""
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        found = []
        try:
            while len(found) < count:
                found += [[part.tolist() for part in session.run(fetches)]]
        except tf.errors.OutOfRangeError:
            found.append("ends")
        coordinator.request_stop()
        coordinator.join(threads)
        return sorted(found, key=str)


def case_buckets(tf):
    length = tf.train.range_input_producer(10, num_epochs=1, shuffle=False).dequeue()
    element = tf.fill([length], length)
    lengths, batch = tf.contrib.training.bucket_by_sequence_length(
        length, [element], 2, [4, 8], dynamic_pad=True, allow_smaller_final_batch=True
    )
    found = [lengths.dtype.name, str(lengths.shape), str(batch[0].shape)]
    found.append(taken(tf, [lengths, batch[0]], 9))
    value = tf.train.range_input_producer(8, num_epochs=1, shuffle=False).dequeue()
    which, named = tf.contrib.training.bucket({"v": value}, tf.mod(value, 2), [2, 4], 2, keep_input=value > 0)
    found += [taken(tf, [which, named["v"]], 9), str(named["v"].shape)]
    by_length = tf.contrib.training.bucket_by_sequence_length
    found.append(tried(lambda: by_length(length, [element], 2, [])))
    found.append(tried(lambda: by_length(length, [element], 2, 3)))
    found.append(tried(lambda: by_length(length, [element], 2, [3, 3])))
    found.append(tried(lambda: by_length(length, [element], 2, [3, 4.5])))
    found.append(tried(lambda: tf.contrib.training.bucket([element], 0, 2, 1)))
    found.append(tried(lambda: tf.contrib.training.bucket([element], 0, [2], 2)))
    found.append(tried(lambda: tf.contrib.training.bucket([element], 0, 2, 2, bucket_capacities=[3])))
    return found


def case_imports(tf):
    with tf.Graph().as_default() as graph:
        tf.add(tf.placeholder(tf.float32, [2], name="a"), 1.0, name="b")
        message = graph.as_graph_def()

    def imported(**arguments):
        with tf.Graph().as_default() as graph:
            found = tf.import_graph_def(message, **arguments)
            return [found and [each.name for each in found], [op.name for op in graph.get_operations()]]

    return [
        imported(return_elements=["b", "b:0"]),
        imported(return_elements="b"),
        imported(name=""),
        imported(name="x/"),
        imported(op_dict={}),
        tried(lambda: imported(input_map={"zz:0": 1.0}), "not found in graph_def: [zz:0]"),
        tried(lambda: imported(input_map={"a:0": len})),
        tried(lambda: imported(input_map=3), "input_map must be a dictionary"),
        tried(lambda: imported(input_map={3: 1.0}), "input_map must be a dictionary"),
        tried(lambda: imported(return_elements=[3]), "return_elements must be a list of strings."),
        tried(lambda: imported(return_elements=["q"]), "'q' not found in graph"),
        tried(lambda: imported(return_elements=["q:0"])),
        tried(lambda: imported(producer_op_list=3)),
        tried(lambda: tf.import_graph_def(3), "graph_def must be a GraphDef proto."),
        tried(lambda: tf.train.import_meta_graph("/no/such/file"), "File /no/such/file does not exist."),
        tried(lambda: tf.train.import_meta_graph(3)),
        tried(lambda: tf.Session.reset(None)),
        tried(lambda: tf.Session.reset("")),
    ]


def case_axes(tf):
    matrix = [[1.0, 2.0]]
    return [
        tried(lambda: tf.argmax(matrix, 5), "must be in the range [-2, 2)"),
        tried(lambda: tf.argmin(matrix, -3), "must be in the range [-2, 2)"),
        tried(lambda: tf.argmax(matrix, [0, 1]), "Shape must be rank 0 but is rank 1"),
        tried(lambda: tf.argmax(matrix, 1.0), "has DataType float32 not in list of allowed values"),
        str(tf.argmax(tf.placeholder(tf.float32), 5).shape),
    ]


def case_images(tf):
    image = tf.image.encode_jpeg(tf.cast(tf.reshape(tf.range(8 * 8 * 3), [8, 8, 3]), tf.uint8))
    with tf.Session() as session:
        data = session.run(image)

        def run(**arguments):
            return list(session.run(tf.image.decode_jpeg(data, **arguments)).shape)

        return [
            run(),
            run(ratio=2),
            run(channels=1, ratio=4),
            run(dct_method="INTEGER_ACCURATE"),
            tried(lambda: run(ratio=3), "ratio must be 1, 2, 4, or 8, got 3"),
            tried(lambda: run(channels=2), "channels must be"),
            tried(lambda: run(dct_method="nonsense"), "dct_method must be one of"),
            str(tf.image.decode_jpeg(data, dct_method="nonsense").shape),
        ]


def case_warm_starts_with_vocabularies(tf):
    folder = tempfile.mkdtemp()
    trained = tf.Graph()
    with trained.as_default(), tf.Session() as session:
        tf.get_variable("words", initializer=[[1.0, 1.5], [2.0, 2.5], [3.0, 3.5]])
        tf.get_variable("bias", initializer=[7.0, 8.0])
        session.run(tf.global_variables_initializer())
        model = tf.train.Saver().save(session, os.path.join(folder, "model"))
    for name, words in (("old", "a b c"), ("new", "c z a y")):
        with open(os.path.join(folder, name), "w") as file:
            file.write("".join(word + "\n" for word in words.split()))
    old, new = os.path.join(folder, "old"), os.path.join(folder, "new")
    ones = tf.ones_initializer()
    found = []
    for rows, vocabulary in (
        (4, tf.train.VocabInfo(new, 4, 0, old)),
        (4, tf.train.VocabInfo(new, 4, 0, old, 2, ones)),
        (3, tf.train.VocabInfo(new, 3, 0, old, 3, ones)),
        (6, tf.train.VocabInfo(new, 4, 2, old, backup_initializer=ones)),
    ):
        with tf.Graph().as_default(), tf.Session() as session:
            words = tf.get_variable("words", [rows, 2], initializer=tf.zeros_initializer())
            bias = tf.get_variable("bias", [2], initializer=tf.zeros_initializer())
            tf.train.warm_start(model, ".*", var_name_to_vocab_info={"words": vocabulary})
            session.run(tf.global_variables_initializer())
            found.append([session.run(words).tolist(), session.run(bias).tolist()])
    return found


def case_orders_of_datasets_that_are_read_in_turns(tf):
    def taken(dataset):
        element = dataset.make_one_shot_iterator().get_next()
        found = []
        with tf.Session() as session:
            while True:
                try:
                    found.append(int(session.run(element)))
                except tf.errors.OutOfRangeError:
                    return found

    def repeated(number):
        return tf.data.Dataset.from_tensors(number).repeat(number)

    numbers = tf.data.Dataset.range(5)
    return [
        taken(numbers.interleave(repeated, cycle_length=2, block_length=2, num_parallel_calls=2)),
        taken(numbers.interleave(repeated, cycle_length=3, block_length=1, num_parallel_calls=1)),
        taken(numbers.interleave(repeated, cycle_length=4, num_parallel_calls=tf.data.experimental.AUTOTUNE)),
        sorted(taken(numbers.apply(tf.data.experimental.parallel_interleave(repeated, 3, 2, sloppy=True)))),
    ]
