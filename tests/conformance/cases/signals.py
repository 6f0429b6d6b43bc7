"""Signals: frames, windows, transforms."""

import numpy as np

X = (np.arange(24) * 7 % 11 / 4.0).reshape(2, 12).astype("float32")


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def run(tf, *fetches, **kwargs):
    with tf.Session() as session:
        values = session.run(list(fetches), kwargs.get("feeds"))
        return [[str(f.shape), f.dtype.name, values[index]] for index, f in enumerate(fetches)]


def refused(tf, *calls):
    found = []
    for call in calls:
        try:
            found.append(str(call().shape))
        except (ValueError, TypeError, NotImplementedError, tf.errors.OpError) as error:
            found.append(type(error).__name__)
    return found


def case_frames(tf):
    frame = tf.signal.frame
    return run(
        tf,
        frame(X, 4, 2),
        frame(X, 5, 3),
        frame(X, 5, 3, pad_end=True),
        frame(X, 4, 6, True, 9.0),
        frame(X, 13, 1),
        frame(X, 2, 1, axis=0),
        frame(np.arange(6), 3, 3, pad_end=True, pad_value=-1),
        frame(X[:, :0], 2, 1),
    )


def case_frames_of_unknown_sizes(tf):
    x = tf.placeholder(tf.float32, [None, None])
    n = tf.placeholder(tf.int32, [])
    y = tf.placeholder(tf.float32, [2, 12])
    return [
        run(tf, tf.signal.frame(x, 5, 3, pad_end=True), tf.signal.frame(x, 4, 2), feeds={x: X}),
        [v[1:] for v in run(tf, tf.signal.frame(y, n, 3, pad_end=True), feeds={y: X, n: 5})],
    ]


def case_windows(tf):
    signal = tf.signal
    return run(
        tf,
        *[
            f(n, **kw)
            for f in (signal.hann_window, signal.hamming_window)
            for n in (1, 4, 5)
            for kw in ({}, {"periodic": False})
        ],
    ) + run(tf, signal.hann_window(4, dtype=tf.float64))


def case_windows_of_unknown_sizes(tf):
    n = tf.placeholder(tf.int32, [])
    return [run(tf, tf.signal.hann_window(n), tf.signal.hamming_window(n, False), feeds={n: size}) for size in (4, 5)]


def case_short_time_transforms(tf):
    signal = tf.signal
    spectrum = signal.stft(X, 5, 2)
    window = signal.inverse_stft_window_fn(2)
    return run(
        tf,
        spectrum,
        signal.stft(X, 4, 4, 8, None, True),
        signal.stft(X, 6, 2, 4),
        signal.inverse_stft(spectrum, 5, 2),
        signal.inverse_stft(spectrum, 5, 2, window_fn=window),
        window(5, dtype=tf.float32),
        signal.inverse_stft_window_fn(3, signal.hamming_window)(4, dtype=tf.float32),
        signal.inverse_stft(signal.stft(X, 4, 2), 4, 2, window_fn=signal.inverse_stft_window_fn(2)),
        signal.inverse_stft(signal.stft(X, 6, 2, 4), 6, 2, 4, None),
    )


def case_transforms_of_unknown_sizes(tf):
    x = tf.placeholder(tf.float32, [None, None])
    found = run(tf, tf.signal.stft(x, 4, 2), tf.signal.inverse_stft(tf.signal.stft(x, 4, 2), 4, 2), feeds={x: X})
    return [v[1:] for v in found]


def case_overlaps(tf):
    add = tf.signal.overlap_and_add
    frames = X.reshape(2, 3, 4)
    return run(
        tf, add(frames, 2), add(frames, 3), add(frames, 4), add(frames, 6), add(frames, 1), add(X.astype("int64"), 5)
    )


def case_overlaps_of_unknown_sizes(tf):
    x, n = tf.placeholder(tf.float32, [None, None, None]), tf.placeholder(tf.int32, [])
    return [
        v[1:]
        for v in run(
            tf, tf.signal.overlap_and_add(x, 3), tf.signal.overlap_and_add(x, n), feeds={x: X.reshape(2, 3, 4), n: 2}
        )
    ]


def case_shifts(tf):
    shift, back = tf.signal.fftshift, tf.signal.ifftshift
    y = X.reshape(4, 6)[:, :5]
    return run(tf, shift(X), back(X), shift(y), back(y), shift(y, 1), back(y, [0]), shift(y, (0, 1)), back(y, axes=-1))


def case_cosine_transforms(tf):
    dct, idct = tf.signal.dct, tf.signal.idct
    found = [dct(X, kind, norm=norm) for kind in (1, 2, 3) for norm in (None, "ortho") if (kind, norm) != (1, "ortho")]
    found += [
        idct(X, kind, norm=norm) for kind in (1, 2, 3) for norm in (None, "ortho") if (kind, norm) != (1, "ortho")
    ]
    found += [dct(X, n=8), dct(X, n=16, type=3), idct(X, n=5, norm="ortho"), tf.spectral.dct(X), tf.spectral.idct(X)]
    return run(tf, *found)


def case_cosine_transforms_of_unknown_sizes(tf):
    x = tf.placeholder(tf.float32, [None, None])
    found = [tf.signal.dct(x, kind, norm=norm) for kind in (2, 3) for norm in (None, "ortho")] + [tf.signal.dct(x, 1)]
    return run(tf, *found, feeds={x: X})


def case_gradients(tf):
    x = tf.constant(X)
    found = [tf.signal.stft(x, 4, 2), tf.signal.dct(x), tf.signal.frame(x, 4, 3, True), tf.signal.overlap_and_add(x, 2)]
    return run(tf, *[tf.gradients(tf.reduce_sum(tf.abs(f) ** 2), x)[0] for f in found])


def case_mel(tf):
    matrix = tf.signal.linear_to_mel_weight_matrix
    weights = matrix(4, 17)
    mfccs = tf.signal.mfccs_from_log_mel_spectrograms
    return run(tf, weights, matrix(3, 9, 16000, 20.0, 8000.0, tf.float64), mfccs(X))


def case_refused(tf):
    signal = tf.signal
    matrix = signal.linear_to_mel_weight_matrix
    return refused(
        tf,
        lambda: signal.frame(X, [4], 2),
        lambda: signal.frame(X, 4, 2, True, [1.0]),
        lambda: signal.hann_window(4, dtype=tf.int32),
        lambda: signal.overlap_and_add(X[0], 2),
        lambda: signal.overlap_and_add(X, 2.0),
        lambda: signal.dct(X, 4),
        lambda: signal.dct(X, axis=0),
        lambda: signal.dct(X, n=0),
        lambda: signal.dct(X, 1, norm="ortho"),
        lambda: signal.dct(X, norm="other"),
        lambda: signal.idct(X, 0),
        lambda: matrix(0),
        lambda: matrix(lower_edge_hertz=-1.0),
        lambda: matrix(lower_edge_hertz=10.0, upper_edge_hertz=5.0),
        lambda: matrix(sample_rate=-1),
        lambda: matrix(dtype=tf.int32),
        lambda: matrix(upper_edge_hertz=9000.0),
        lambda: signal.mfccs_from_log_mel_spectrograms(X[:, :0]),
    )
