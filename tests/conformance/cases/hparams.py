"""`tf.contrib.training.HParams`: values, types and errors, and the training operations under this name."""


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def made(tf):
    return tf.contrib.training.HParams(rate=0.1, units=[64, 32], kind="adam", deep=True, count=3, free=None)


def outcomes(calls):
    found = []
    for call in calls:
        try:
            found.append(call())
        except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
            found.append(type(error).__name__)
    return found


def case_values(tf):
    hparams = made(tf)
    hparams.add_hparam("late", 1)
    hparams.set_hparam("rate", 2)
    hparams.units = [1]
    hparams.del_hparam("count")
    facts = [hparams.values(), str(hparams), repr(hparams), "rate" in hparams, "count" in hparams, hparams.rate]
    facts += [hparams.to_json(sort_keys=True), hparams.get("rate"), hparams.get("none"), hparams.get("none", 3)]
    return [*facts, hasattr(hparams, "count"), hparams.to_json(indent=1, separators=(",", ": "), sort_keys=True)]


def case_parsed(tf):
    texts = ["rate=0.5,units=[1,2, 3]", "kind=sgd,deep=false", "deep=1", "deep=0, count = 7", "rate=1e-3", ""]
    texts += ["units=[5]", "kind=a b", "units=[]", "count=12"]
    return [made(tf).parse(text).values() for text in texts]


def case_refused_texts(tf):
    texts = ["rate=x", "rates=1", "count=1.5", "units=1", "rate=[1]", "rate", "rate=", "deep=maybe", "rate=1,rate=2"]
    texts += ["units[0]=1", "units[0]=[1]", "1rate=2", "rate=1;count=2", "free=3"]
    return outcomes([lambda text=text: made(tf).parse(text).values() for text in texts])


def case_overridden(tf):
    found = [made(tf).override_from_dict({"rate": 1, "units": [7], "free": "x"}).values()]
    found.append(made(tf).parse_json('{"rate": 0.5, "units": [1], "kind": "b"}').values())
    return [*found, made(tf).set_from_map({"count": 5}).values()]


def case_refused_values(tf):
    values = [("rate", "1"), ("count", 1.5), ("count", True), ("deep", 1), ("kind", 2), ("units", 3), ("rate", [1.0])]
    values += [("units", [1.5]), ("other", 1)]
    calls = [lambda name=name, value=value: made(tf).set_hparam(name, value) for name, value in values]
    calls += [lambda: made(tf).add_hparam("rate", 1), lambda: made(tf).add_hparam("parse", 1)]
    calls += [lambda: tf.contrib.training.HParams(none=[]), lambda: made(tf).get("rate", "a")]
    calls += [lambda: made(tf).get("units", 1), lambda: made(tf).get("rate", 2), lambda: made(tf).other]
    return outcomes([*calls, lambda: made(tf).parse_json("{"), lambda: made(tf).del_hparam("other")])


def case_parsed_values(tf):
    parse = tf.contrib.training.parse_values
    kinds = {"a": int, "b": float, "c": str, "d": bool}
    found = [parse("a=1,b=[1.5,2],c=x,d=True", kinds), parse("x=1,a=2", kinds, ignore_unknown=True)]
    found.append(sorted(parse("a[1]=10,a[0]=20", kinds)["a"].items()))
    return found + outcomes([lambda: parse("a[1]=1,a[1]=2", kinds), lambda: parse("a=1,a[1]=2", kinds)])


def case_training_operation(tf):
    var = tf.get_variable("v", initializer=tf.constant([3.0, 4.0]))
    step = tf.train.get_or_create_global_step()
    T = tf.contrib.training
    loss = tf.reduce_sum(tf.square(var))
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    scaled = T.multiply_gradients(optimizer.compute_gradients(loss), {var: 2.0})
    T.add_gradients_summaries(scaled)
    train = optimizer.apply_gradients(T.clip_gradient_norms(scaled, 1.0), global_step=step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        return [session.run(var), session.run(step)]
