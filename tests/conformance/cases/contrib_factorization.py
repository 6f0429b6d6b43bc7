"""``tf.contrib.factorization``: variables of k-means, centers after steps, distances, scores and predictions."""

import tempfile

import numpy as np

_numbers = np.random.RandomState(5)
POINTS = np.concatenate([_numbers.normal(center, 0.5, [8, 2]) for center in ([0, 4], [4, 1], [-3, -2])])
POINTS = POINTS[_numbers.permutation(len(POINTS))].astype(np.float32)
FIRST = POINTS[:3]


def _read_before_adding(graph):
    """Orders reads of numbers of points before additions to them; TensorFlow's order is random."""
    for adding in graph.get_operations():
        if adding.type == "ScatterAdd":
            adding._add_control_inputs([op for op in adding.inputs[1].consumers() if op.type == "GatherV2"])


def _graph(tf, steps=3, **kwargs):
    with tf.Graph().as_default():
        points = tf.placeholder(tf.float32, [None, 2])
        graph = tf.contrib.factorization.KMeans(points, 3, initial_clusters=FIRST, **kwargs).training_graph()
        scores, nearest, smallest, initialized, begin, train = graph
        if tf.__name__.startswith("tensorflow"):
            _read_before_adding(train.graph)
        centers = tf.global_variables()[0]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(begin, {points: POINTS})
            found = [session.run(initialized), session.run(centers)]
            for step in range(steps):
                session.run(train, {points: POINTS[8 * step :][:8] if kwargs.get("use_mini_batch") else POINTS})
                found.append(session.run([scores[0][:2], nearest[0], smallest[0], centers], {points: POINTS}))
            variables = [(var.op.name, var.dtype.base_dtype.name) for var in tf.global_variables()]
            return [variables, [session.run(var) for var in tf.global_variables()], found]


def case_whole(tf):
    return _graph(tf, distance_metric=tf.contrib.factorization.SQUARED_EUCLIDEAN_DISTANCE)


def case_mini_batch(tf):
    return _graph(tf, use_mini_batch=True)


def case_mini_batch_with_delay(tf):
    return _graph(tf, use_mini_batch=True, mini_batch_steps_per_iteration=2)


def case_cosine(tf):
    return _graph(tf, distance_metric=tf.contrib.factorization.COSINE_DISTANCE)


def case_cosine_mini_batch(tf):
    return _graph(tf, distance_metric="cosine", use_mini_batch=True)


def case_cosine_mini_batch_with_delay(tf):
    return _graph(tf, distance_metric="cosine", use_mini_batch=True, mini_batch_steps_per_iteration=2)


def _chosen(tf, way, batches, clusters=4):
    """Whether the initial centers are points, after how many batches, and whether all are different."""
    with tf.Graph().as_default():
        points = tf.placeholder(tf.float32, [None, 2])
        _, _, _, initialized, begin, _ = tf.contrib.factorization.KMeans(points, clusters, way).training_graph()
        centers = tf.global_variables()[0]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            sizes = []
            for number in range(batches):
                session.run(begin, {points: POINTS[3 * number :][: 3 if batches > 1 else None]})
                sizes.append((session.run(centers).shape, session.run(initialized)))
            known = {tuple(point) for point in POINTS.tolist()}
            return [sizes, all(tuple(center) in known for center in session.run(centers).tolist())]


def case_random(tf):
    return [_chosen(tf, tf.contrib.factorization.RANDOM_INIT, batches) for batches in (1, 2)]


def case_spread(tf):
    return _chosen(tf, tf.contrib.factorization.KMEANS_PLUS_PLUS_INIT, 1)


def case_chained(tf):
    with tf.Graph().as_default(), tf.Session() as session:
        kmeans = tf.contrib.factorization.KMeans(tf.constant(POINTS), 4, "kmc2", kmc2_chain_length=5)
        _, _, _, initialized, begin, _ = kmeans.training_graph()
        session.run(tf.global_variables_initializer())
        while not session.run(initialized):
            session.run(begin)
        centers = session.run(tf.global_variables()[0])
        return [centers.shape, all(center in POINTS.tolist() for center in centers.tolist())]


def case_chosen_by_function(tf):
    return _chosen(tf, lambda inputs, count: inputs[0][: tf.minimum(count, 2)], 2)


def case_bad_arguments(tf):
    found = []
    for arguments in ({"initial_clusters": "best"}, {"distance_metric": "city_block"}):
        try:
            found.append(tf.contrib.factorization.KMeansClustering(3, **arguments))
        except ValueError as error:
            found.append(str(error))
    return found


def case_estimator(tf):
    def batches():
        return tf.data.Dataset.from_tensors(POINTS).repeat(4)

    def once():
        return tf.data.Dataset.from_tensors({"x": POINTS[:5, :1], "y": POINTS[:5, 1:]})

    with tempfile.TemporaryDirectory() as folder:
        config = tf.estimator.RunConfig(model_dir=folder)
        kmeans = tf.contrib.factorization.KMeansClustering(
            3, initial_clusters=FIRST, use_mini_batch=False, config=config, relative_tolerance=0.01
        )
        kmeans.train(batches)
        found = [kmeans.get_variable_value("global_step"), sorted(kmeans.get_variable_names())]
        found += [kmeans.cluster_centers(), kmeans.score(once)]
        return [*found, list(kmeans.predict_cluster_index(once)), list(kmeans.transform(once))]


def cases(tf):
    del tf
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
