"""Savers: writing and restoring checkpoints, which checkpoints they keep, and error messages."""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater.data.io.tensor_bundle import BundleReader
from headwater.tf1.compat import tf


@pytest.fixture(autouse=True)
def graph() -> Generator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph


def names(path: Path) -> list[str]:
    return sorted(os.listdir(path))


def test_round_trip(tmp_path: Path) -> None:
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="v")
    w = tf.Variable(np.arange(3), name="s/w")
    saver = tf.train.Saver()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        path = saver.save(sess, str(tmp_path / "model"), global_step=7)
    assert path == str(tmp_path / "model-7")
    assert names(tmp_path) == ["checkpoint", "model-7.data-00000-of-00001", "model-7.index", "model-7.meta"]
    with tf.Session() as sess:
        saver.restore(sess, path)
        assert sess.run(v).tolist() == [[1.0, 2.0], [3.0, 4.0]]
        assert sess.run(w).tolist() == [0, 1, 2]
    assert path is not None
    assert BundleReader(path).keys() == ["s/w", "v"]
    assert tf.train.latest_checkpoint(str(tmp_path)) == path


@pytest.mark.parametrize(("sharded", "files"), [(False, "model-{}"), (True, "model-{}-00000-of-00001")])
def test_the_old_format_is_one_file_of_a_task(tmp_path: Path, sharded: bool, files: str) -> None:
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="v")
    saver = tf.train.Saver(write_version=tf.train.SaverDef.V1, sharded=sharded, max_to_keep=1)
    assert saver.as_saver_def().version == tf.train.SaverDef.V1
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(2):
            path = saver.save(sess, str(tmp_path / "model"), global_step=step)
        assert names(tmp_path) == ["checkpoint", files.format(1), "model-1.meta"]
        v.load([[0.0, 0.0], [0.0, 0.0]], sess)
        saver.restore(sess, path)
        assert sess.run(v).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert path is not None
    assert tf.train.load_variable(path, "v").tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_operations_are_called_as_tensorflow_calls_them() -> None:
    tf.Variable(1.0, name="v")
    saver = tf.train.Saver().as_saver_def()
    assert (saver.filename_tensor_name, saver.save_tensor_name, saver.restore_op_name) == (
        "save/Const:0",
        "save/control_dependency:0",
        "save/restore_all",
    )
    assert tf.train.Saver().as_saver_def().restore_op_name == "save_1/restore_all"
    assert tf.train.Saver(sharded=True, name="mine").as_saver_def().save_tensor_name == "mine/Identity:0"


def test_renaming(tmp_path: Path) -> None:
    v, w = tf.Variable([1.0], name="v"), tf.Variable([2.0], name="w")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        path = tf.train.Saver({"x": v, "y": w}).save(sess, str(tmp_path / "m"))
        assert path is not None
        assert BundleReader(path).keys() == ["x", "y"]
        tf.train.Saver({"y": v}).restore(sess, path)
        assert sess.run([v, w]) == [[2.0], [2.0]]


def test_a_part_of_the_variables(tmp_path: Path) -> None:
    v, w = tf.Variable([1.0], name="v"), tf.Variable([2.0], name="w")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        path = tf.train.Saver([v]).save(sess, str(tmp_path / "m"))
    with tf.Session() as sess, pytest.raises(tf.errors.NotFoundError, match=r"Key w not found in checkpoint"):
        tf.train.Saver([v, w]).restore(sess, path)


def test_partitioned_variables_are_one_tensor(tmp_path: Path) -> None:
    value = np.arange(14.0, dtype=np.float32).reshape(7, 2)
    parts: Any = tf.get_variable("v", initializer=tf.constant(value), partitioner=tf.fixed_size_partitioner(3))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(sess, str(tmp_path / "m"))
    assert path is not None
    reader = BundleReader(path)
    assert reader.keys() == ["v"]
    assert len(reader.slices("v")) == 3
    np.testing.assert_array_equal(reader.read("v"), value)
    with tf.Graph().as_default(), tf.Session() as sess:
        whole = tf.get_variable("v", [7, 2])
        tf.train.Saver().restore(sess, path)
        np.testing.assert_array_equal(sess.run(whole), value)
    with tf.Graph().as_default(), tf.Session() as sess:
        halves: Any = tf.get_variable("v", [7, 2], partitioner=tf.fixed_size_partitioner(2, axis=1))
        tf.train.Saver().restore(sess, path)
        np.testing.assert_array_equal(sess.run(halves.as_tensor()), value)
    with tf.Session() as sess:
        tf.train.Saver({"v": list(parts)}).restore(sess, path)
        np.testing.assert_array_equal(sess.run(parts.as_tensor()), value)


def test_sharded_by_device(tmp_path: Path) -> None:
    # One process has one task; its two parts stand for the parts of two tasks.
    v, w = tf.Variable([1.0], name="v"), tf.Variable([2.0], name="w")
    saver = tf.train.Saver([v, w], sharded=True)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        path = saver.save(sess, str(tmp_path / "m"))
        assert names(tmp_path) == ["checkpoint", "m.data-00000-of-00001", "m.index", "m.meta"]
        sess.run([v.assign([5.0]), w.assign([6.0])])
        saver.restore(sess, path)
        assert sess.run([v, w]) == [[1.0], [2.0]]


def test_graphs_of_older_versions_have_a_temporary_prefix() -> None:
    prefix = tf.get_default_graph().create_op("TemporaryPrefix", [tf.constant("folder/model")]).outputs[0]
    with tf.Session() as sess:
        first, second = sess.run(prefix), sess.run(prefix)
    assert re.fullmatch(rb"folder/model_temp_[0-9a-f]{32}/part", first)
    assert first != second


def test_reshape(tmp_path: Path) -> None:
    with tf.Session() as sess:
        v = tf.Variable([1.0, 2.0, 3.0, 4.0], name="v")
        sess.run(v.initializer)
        path = tf.train.Saver().save(sess, str(tmp_path / "m"))
    with tf.Graph().as_default(), tf.Session() as sess:
        v = tf.Variable([[0.0, 0.0], [0.0, 0.0]], name="v")
        with pytest.raises(tf.errors.InvalidArgumentError, match="mismatch between the current graph and the graph"):
            tf.train.Saver().restore(sess, path)
        tf.train.Saver(reshape=True).restore(sess, path)
        assert sess.run(v).tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_restoring_another_type_is_an_error(tmp_path: Path) -> None:
    with tf.Session() as sess:
        sess.run(tf.Variable([1.0], name="v").initializer)
        path = tf.train.Saver().save(sess, str(tmp_path / "m"))
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.Variable([1], name="v")
        with pytest.raises(tf.errors.InvalidArgumentError, match="tensor_name = v; expected dtype int32"):
            tf.train.Saver().restore(sess, path)


def test_only_the_last_ones_are_kept(tmp_path: Path) -> None:
    step = tf.train.get_or_create_global_step()
    saver = tf.train.Saver(max_to_keep=2)
    with tf.Session() as sess:
        sess.run(step.initializer)
        for _ in range(4):
            saver.save(sess, str(tmp_path / "m"), global_step=step, write_meta_graph=False)
            sess.run(step.assign_add(1))
    assert saver.last_checkpoints == [str(tmp_path / "m-2"), str(tmp_path / "m-3")]
    assert [name for name in names(tmp_path) if name.endswith(".index")] == ["m-2.index", "m-3.index"]
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert list(state.all_model_checkpoint_paths) == saver.last_checkpoints


def test_some_are_kept_for_good(tmp_path: Path) -> None:
    tf.Variable(1.0)
    saver = tf.train.Saver(max_to_keep=1, keep_checkpoint_every_n_hours=0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(3):
            saver.save(sess, str(tmp_path / "m"), global_step=step, write_meta_graph=False)
    assert [name for name in names(tmp_path) if name.endswith(".index")] == ["m-0.index", "m-1.index", "m-2.index"]


def test_a_later_run_deletes_checkpoints_of_an_earlier_run(tmp_path: Path) -> None:
    tf.Variable(1.0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        first = tf.train.Saver()
        for step in range(3):
            first.save(sess, str(tmp_path / "m"), global_step=step)
        saver = tf.train.Saver(max_to_keep=2)
        saver.recover_last_checkpoints([*first.last_checkpoints[1:], str(tmp_path / "gone")])
        assert saver.last_checkpoints == first.last_checkpoints[1:]
        saver.save(sess, str(tmp_path / "m"), global_step=3)
    assert [name for name in names(tmp_path) if name.endswith(".index")] == ["m-0.index", "m-2.index", "m-3.index"]


def test_padded_steps_and_relative_paths(tmp_path: Path) -> None:
    tf.Variable(1.0)
    saver = tf.train.Saver(pad_step_number=True, save_relative_paths=True)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert saver.save(sess, str(tmp_path / "m"), global_step=12) == str(tmp_path / "m-00000012")
    assert 'model_checkpoint_path: "m-00000012"' in (tmp_path / "checkpoint").read_text()


def test_deferred_building(tmp_path: Path) -> None:
    saver = tf.train.Saver(defer_build=True)
    v = tf.Variable(1.0, name="v")
    with tf.Session() as sess:
        sess.run(v.initializer)
        with pytest.raises(RuntimeError, match="build"):
            saver.save(sess, str(tmp_path / "m"))
        saver.build()
        saver.restore(sess, saver.save(sess, str(tmp_path / "m")))


def test_nothing_to_save(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="No variables to save"):
        tf.train.Saver()
    tf.no_op()
    with tf.Session() as sess:
        assert tf.train.Saver(allow_empty=True).save(sess, str(tmp_path / "m")) is None


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda v: [v, v], ValueError, "same name: v"),
        (lambda v: {"a": v, "b": v}, ValueError, "two names"),
        (lambda v: 3, TypeError, "dict or a list"),
        (lambda v: [tf.constant(1.0)], TypeError, "not a Variable"),
        (lambda v: {"a": [v]}, ValueError, "must all be slices"),
    ],
)
def test_bad_var_list(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        tf.train.Saver(make(tf.Variable(1.0, name="v")))


def test_bad_paths(tmp_path: Path) -> None:
    v = tf.Variable(1.0)
    saver = tf.train.Saver()
    with tf.Session() as sess:
        sess.run(v.initializer)
        with pytest.raises(ValueError, match="Can't load save_path when it is None"):
            saver.restore(sess, None)
        with pytest.raises(ValueError, match="not a valid checkpoint"):
            saver.restore(sess, str(tmp_path / "none"))
        with pytest.raises(ValueError, match="collides"):
            saver.save(sess, str(tmp_path / "checkpoint"))
        with pytest.raises(ValueError, match="path components"):
            saver.save(sess, str(tmp_path / "m"), latest_filename="a/b")
        with pytest.raises(ValueError, match="doesn't exist"):
            saver.save(sess, str(tmp_path / "no" / "such" / "m"))
        with pytest.raises(TypeError, match="must be a Session"):
            saver.save(None, str(tmp_path / "m"))


def test_uninitialised_variables_are_not_saved(tmp_path: Path) -> None:
    tf.Variable(1.0, name="v")
    saver = tf.train.Saver()
    with tf.Session() as sess, pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value v"):
        saver.save(sess, str(tmp_path / "m"))
    assert not [name for name in names(tmp_path) if "index" in name or "data" in name]


def test_meta_graph(tmp_path: Path) -> None:
    with tf.name_scope("s"):
        v = tf.Variable([1.0, 2.0], name="v")
    tf.add_to_collection("losses", tf.reduce_sum(v.value(), name="total"))
    tf.add_to_collection("names", "a")
    tf.add_to_collection("numbers", 3)
    with tf.Session() as sess:
        sess.run(v.initializer)
        path = tf.train.Saver().save(sess, str(tmp_path / "m"))
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        saver = tf.train.import_meta_graph(f"{path}.meta")
        assert saver is not None
        saver.restore(sess, path)
        (again,) = tf.global_variables()
        assert (again.name, again.trainable, sess.run(again).tolist()) == ("s/v:0", True, [1.0, 2.0])
        assert tf.trainable_variables()[0] is again
        assert sess.run(tf.get_collection("losses")[0]) == 3.0
        assert (graph.get_collection("names"), graph.get_collection("numbers")) == ([b"a"], [3])
    with tf.Graph().as_default(), tf.Session() as sess:
        saver = tf.train.import_meta_graph(f"{path}.meta", import_scope="imported", clear_devices=True)
        assert saver is not None
        saver.restore(sess, path)
        assert sess.run(tf.global_variables()[0]).tolist() == [1.0, 2.0]
        assert tf.global_variables()[0].name == "imported/s/v:0"


def test_meta_graph_of_one_scope(tmp_path: Path) -> None:
    with tf.name_scope("s"):
        tf.Variable(1.0, name="v")
    tf.Variable(1.0, name="w")
    file = tmp_path / "g.pbtxt"
    proto = tf.train.export_meta_graph(str(file), export_scope="s", as_text=True)
    assert sorted(node.name for node in proto.graph_def.node) == ["v", "v/Assign", "v/initial_value", "v/read"]
    with tf.Graph().as_default():
        assert tf.train.import_meta_graph(str(file)) is not None
        assert [v.name for v in tf.global_variables()] == ["v:0"]


def test_a_file_that_is_no_meta_graph(tmp_path: Path) -> None:
    (tmp_path / "x.meta").write_text("nonsense {")
    with pytest.raises(OSError, match=r"x\.meta"):
        tf.train.import_meta_graph(str(tmp_path / "x.meta"))
