"""Names of other packages, absl's flags and Keras 3, and names of older dialects and inner modules."""

from __future__ import annotations

import gzip
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import absl.flags
import keras
import numpy as np
import pytest

from headwater import tf

OF_FLAGS = """
    ArgumentParser ArgumentSerializer BaseListParser BooleanFlag BooleanParser CantOpenFlagFileError CsvListSerializer
    EnumClassFlag EnumClassListSerializer EnumClassParser EnumClassSerializer EnumFlag EnumParser Flag FlagHolder
    FlagNameConflictsWithMethodError FlagValues FloatParser IllegalFlagValueError IntegerParser ListParser
    ListSerializer MultiEnumClassFlag MultiFlag UnparsedFlagAccessError UnrecognizedFlagError ValidationError
    WhitespaceSeparatedListParser adopt_module_key_flags declare_key_flag disclaim_key_flags doc_to_help
    flag_dict_to_args get_help_width mark_bool_flags_as_mutual_exclusive mark_flags_as_mutual_exclusive
    mark_flags_as_required multi_flags_validator override_value register_multi_flags_validator register_validator
    set_default text_wrap validator"""

OF_KERAS = """
    applications.DenseNet121 applications.DenseNet169 applications.DenseNet201 applications.InceptionResNetV2
    applications.InceptionV3 applications.MobileNet applications.MobileNetV2 applications.NASNetLarge
    applications.NASNetMobile applications.ResNet101 applications.ResNet101V2 applications.ResNet152
    applications.ResNet152V2 applications.ResNet50 applications.ResNet50V2 applications.VGG16 applications.VGG19
    applications.Xception applications.densenet.decode_predictions applications.imagenet_utils.decode_predictions
    applications.inception_resnet_v2.decode_predictions applications.inception_v3.decode_predictions
    applications.mobilenet.decode_predictions applications.mobilenet_v2.decode_predictions
    applications.nasnet.decode_predictions applications.resnet.decode_predictions
    applications.resnet50.decode_predictions applications.resnet_v2.decode_predictions
    applications.vgg16.decode_predictions applications.vgg19.decode_predictions
    applications.xception.decode_predictions backend.backend backend.get_uid backend.set_epsilon backend.set_floatx
    backend.set_image_data_format callbacks.CSVLogger callbacks.History callbacks.ProgbarLogger
    callbacks.ReduceLROnPlateau callbacks.RemoteMonitor callbacks.TerminateOnNaN datasets.boston_housing.load_data
    datasets.cifar10.load_data datasets.cifar100.load_data datasets.imdb.get_word_index datasets.imdb.load_data
    datasets.reuters.get_word_index datasets.reuters.load_data layers.Bidirectional layers.InputLayer
    layers.StackedRNNCells layers.Wrapper layers.deserialize losses.deserialize losses.serialize metrics.deserialize
    metrics.get models.clone_model models.save_model optimizers.serialize
    optimizers.schedules.deserialize metrics.MeanIoU optimizers.deserialize
    utils.CustomObjectScope utils.Progbar utils.custom_object_scope utils.deserialize_keras_object
    utils.get_custom_objects utils.get_file utils.get_source_inputs utils.model_to_dot utils.plot_model
    utils.serialize_keras_object preprocessing.image.array_to_img preprocessing.image.img_to_array
    preprocessing.image.load_img preprocessing.image.save_img"""

_FLAGS = """
import enum, sys
from headwater import tf

class Kind(enum.Enum):
    A = 1

f = tf.flags
f.DEFINE_bool("bold", False, "h")
f.DEFINE_alias("thick", "bold")
f.DEFINE_enum_class("kind", None, Kind, "h")
f.DEFINE_multi_enum("some", ["x"], ["x", "y"], "h")
f.DEFINE_multi_enum_class("kinds", None, Kind, "h")
f.DEFINE_multi_float("rates", [1.0], "h")
f.DEFINE_multi_string("words", ["w"], "h")
f.DEFINE_spaceseplist("list", "a b", "h")
f.DEFINE(f.IntegerParser(), "number", 3, "h")
f.DEFINE_multi(f.IntegerParser(), f.ArgumentSerializer(), "numbers", [1], "h")
f.DEFINE_flag(f.BooleanFlag("flag", True, "h"))
print([f.FLAGS.bold, f.FLAGS.kind, f.FLAGS.some, f.FLAGS.kinds, f.FLAGS.rates, f.FLAGS.words, f.FLAGS.list])
print([f.FLAGS.number, f.FLAGS.numbers, f.FLAGS.flag])
"""

_MODULES = """
import numpy as np
import tensorflow as tf
from tensorflow.core.framework.step_stats_pb2 import StepStats
from tensorflow.core.framework.types_pb2 import DT_FLOAT
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig
from tensorflow.examples.tutorials.mnist import mnist
from tensorflow.python.client.device_lib import list_local_devices
from tensorflow.python.ops.control_flow_ops import with_dependencies
from tensorflow.python.ops.rnn_cell_impl import LSTMStateTuple
from tensorflow.python.training.slot_creator import create_slot

print(mnist.IMAGE_PIXELS, DT_FLOAT, len(StepStats().dev_stats), type(RewriterConfig()).__name__)
print(list_local_devices()[0].device_type, LSTMStateTuple(1, 2).h, tf.contrib.learn.python.learn is not None)
images, labels = tf.ones([2, mnist.IMAGE_PIXELS]) / 784.0, tf.constant([1, 2])
logits = mnist.inference(images, 4, 3)
loss = mnist.loss(logits, labels)
train = mnist.training(loss, 0.1)
right = mnist.evaluation(tf.constant([[0.0, 1.0], [1.0, 0.0]]), [1, 1])
v = tf.Variable([1.0, 2.0], name="v")
slot = create_slot(v, tf.zeros([2]), "m")
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    before = session.run(loss)
    for _ in range(5):
        session.run(train)
    print(session.run(loss) < before, session.run(right), slot.op.name)
    print(session.run(with_dependencies([v.assign([5.0, 6.0])], tf.constant(7))), session.run(v))
"""


@pytest.mark.parametrize("name", OF_FLAGS.split())
def test_flags_are_absls(name: str) -> None:
    assert getattr(tf.flags, name) is getattr(absl.flags, name)


def _run(program: str, *arguments: str) -> str:
    ran = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_every_kind_of_flag_is_read_from_the_command_line() -> None:
    arguments = "--thick --kind=A --some=y --kinds=A --rates=2.5 --rates=3 --words=q --number=7 --numbers=8 --noflag"
    printed = _run(_FLAGS, *arguments.split(), "--list=c d")
    lists = "[<Kind.A: 1>], [2.5, 3.0], ['q'], ['c', 'd']"
    assert printed == f"[True, <Kind.A: 1>, ['y'], {lists}]\n[7, [8], False]\n"


def _inside(area: Any, name: str) -> Any:
    for word in name.split("."):
        area = getattr(area, word)
    return area


@pytest.mark.parametrize("name", OF_KERAS.split())
def test_names_of_keras_are_the_same_objects(name: str) -> None:
    assert _inside(tf.keras, name) is _inside(keras, name)


def test_functions_that_keras_3_or_tensorflow_2_computes_differently() -> None:
    x = np.array([[-4.0, 0.0, 1.5], [3.0, -3.0, 0.6]], "float32")
    np.testing.assert_allclose(tf.keras.activations.hard_sigmoid(x), np.clip(x * 0.2 + 0.5, 0, 1), 1e-6)
    y = np.abs(x) + 1
    cosines = (x * y).sum(1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
    np.testing.assert_allclose(tf.keras.losses.cosine_similarity(x, y), cosines, 1e-5)
    np.testing.assert_array_equal(tf.keras.metrics.binary_accuracy(np.ones([1, 2]), np.array([[0.4, 0.6]])), [[0, 1]])


def test_names_that_keras_3_has_no_more() -> None:
    backend = tf.keras.backend
    image = tf.keras.preprocessing.image
    assert backend.eval(backend.print_tensor(backend.constant([1.0, 2.0]), "m")).tolist() == [1.0, 2.0]
    assert backend.eval(backend.stop_gradient(backend.constant([3.0]))).tolist() == [3.0]
    assert backend.eval(backend.to_dense(backend.constant([4.0]))).tolist() == [4.0]
    with backend.name_scope("here"):
        assert backend.eval(backend.constant(1.0)) == 1.0
    backend.reset_uids()
    assert backend.get_uid("layer") == 1
    picture = np.arange(12.0).reshape(2, 2, 3) * 10
    assert image.apply_brightness_shift(picture, 1.5).mean() > picture.mean() + 10
    assert image.random_brightness(picture, [1.5, 1.5]).mean() > picture.mean() + 10
    assert tf.keras.mixed_precision.experimental.Policy("float32").name == "float32"
    assert tf.keras.mixed_precision.experimental.global_policy().name == "float32"
    assert issubclass(tf.keras.utils.OrderedEnqueuer, tf.keras.utils.SequenceEnqueuer)


def test_labels_of_rows_as_sparse_tensors() -> None:
    labels = tf.keras.backend.ctc_label_dense_to_sparse(np.array([[1, 2, 0], [3, 0, 0]]), np.array([[2], [1]]))
    assert [part.tolist() for part in labels] == [[[0, 0], [0, 1], [1, 0]], [1, 2, 3], [2, 3]]


def test_images_of_digits_and_clothes_are_read_from_the_folder_of_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_DATA_DIR", str(tmp_path))
    for first, (name, load) in enumerate(
        (("mnist", tf.keras.datasets.mnist.load_data), ("fashion_mnist", tf.keras.datasets.fashion_mnist.load_data))
    ):
        os.mkdir(tmp_path / name)
        for part, size in (("train", 3), ("t10k", 2)):
            for kind, shape in (("images-idx3", (size, 28, 28)), ("labels-idx1", (size,))):
                header = struct.pack(f">HBB{len(shape)}i", 0, 8, len(shape), *shape)
                values = np.full(shape, first + 7, np.uint8).tobytes()
                (tmp_path / name / f"{part}-{kind}-ubyte.gz").write_bytes(gzip.compress(header + values))
        (images, labels), (test_images, test_labels) = load()
        assert images.shape == (3, 28, 28)
        assert test_images.shape == (2, 28, 28)
        assert labels.tolist() == [first + 7] * 3
        assert test_labels.tolist() == [first + 7] * 2


def test_advice_on_a_step_names_the_slowest_operation() -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run(tf.matmul(tf.ones([64, 64]), tf.ones([64, 64])), options=options, run_metadata=metadata)
        advice = tf.profiler.advise(graph, metadata)
    assert "top 1 operation type" in advice.checkers["ExpensiveOperationChecker"].reports[0]


def test_cells_stand_in_the_module_of_cells() -> None:
    assert tf.contrib.rnn.rnn_cell.LSTMCell is tf.nn.rnn_cell.LSTMCell


def test_decays_of_keras_experiments() -> None:
    linear = tf.keras.experimental.LinearCosineDecay(0.5, 10, beta=0.0)
    fraction = 0.5 * (1 + np.cos(np.pi * 3 / 10))
    assert float(linear(3)) == pytest.approx(0.5 * 0.7 * fraction, rel=1e-5)
    noisy = tf.keras.experimental.NoisyLinearCosineDecay(0.5, 10, initial_variance=0.0, beta=0.0)
    assert float(noisy(3)) == pytest.approx(float(linear(3)), rel=1e-5)


def test_custom_cells_are_abstract_cells() -> None:
    class Sums(tf.keras.layers.AbstractRNNCell):
        state_size = 2
        output_size = 2

        def call(self, inputs: Any, states: Any) -> Any:
            return inputs + states[0], [inputs + states[0]]

    rows = np.arange(6, dtype="float32").reshape(1, 3, 2)
    np.testing.assert_allclose(tf.keras.layers.RNN(Sums())(rows), rows.sum(1))


def test_directories_of_images(tmp_path: Path) -> None:
    for kind in ("cat", "dog"):
        os.mkdir(tmp_path / kind)
        tf.keras.preprocessing.image.save_img(str(tmp_path / kind / "1.png"), np.full([4, 4, 3], 9.0))
    images = tf.keras.preprocessing.image
    found = images.DirectoryIterator(str(tmp_path), images.ImageDataGenerator(), (4, 4), batch_size=2, shuffle=False)
    batch, labels = next(found)
    assert batch.shape == (2, 4, 4, 3)
    assert labels.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_names_of_older_dialects() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(tf.concat_v2([[1], [2]], 0)).tolist() == [1, 2]
        assert session.run(tf.select([True, False], [1, 2], [3, 4])).tolist() == [1, 4]
        assert session.run(tf.listdiff([1, 2, 3], [2])[0]).tolist() == [1, 3]
        values, vectors = session.run(tf.batch_self_adjoint_eig(tf.constant([[[2.0, 0.0], [0.0, 3.0]]])))
        assert values.tolist() == [[2.0, 3.0]]
        assert np.abs(vectors).tolist() == [[[1.0, 0.0], [0.0, 1.0]]]
        sound = tf.audio_summary("s", tf.zeros([1, 4]), 8.0)
        older = tf.contrib.deprecated.audio_summary("t", tf.zeros([1, 4]), 8.0)
        both = tf.Summary.FromString(session.run(tf.merge_summary([sound])))
        more = tf.Summary.FromString(session.run(tf.contrib.deprecated.merge_summary([sound, older])))
        assert [value.audio.sample_rate for value in both.value] == [8.0]
        assert len(more.value) == 2


def test_inner_modules_that_programs_import(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(_MODULES)
    command = [sys.executable, "-m", "headwater", "exec", str(program)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == [
        "784 1 0 RewriterConfig",
        "CPU 2 True",
        "True 1 v/m",
        "7 [5. 6.]",
    ]


def test_strategies_and_memory_by_name() -> None:
    assert tf.distribute.experimental.MultiWorkerMirroredStrategy.__name__.endswith("Strategy")
    for device in tf.config.experimental.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(device, tf.config.experimental.get_memory_growth(device))
    tf.config.experimental.set_visible_devices([], "GPU")
    assert tf.config.experimental.get_visible_devices("GPU") == []


def test_old_names_of_keras_losses_and_optimizers() -> None:
    reduction = tf.keras.losses.Reduction
    loss = tf.keras.losses.MeanSquaredError(reduction=reduction.SUM)
    assert float(loss(np.array([[1.0], [2.0]]), np.array([[2.0], [4.0]]))) == 5.0
    assert reduction.AUTO == reduction.SUM_OVER_BATCH_SIZE
    with pytest.raises(ValueError, match="Invalid Reduction Key: most"):
        reduction.validate("most")
    optimizer = tf.keras.optimizers.legacy.SGD(lr=1.0, decay=1.0, clipvalue=0.5)
    assert isinstance(optimizer, keras.optimizers.SGD)
    assert optimizer.clipvalue == 0.5
    variable = keras.Variable(0.0)
    changes: list[float] = []
    for _ in range(3):  # by the rates 1, 1/2 and 1/3
        before = float(variable)
        optimizer.apply_gradients([(np.float32(0.5), variable)])
        changes.append(before - float(variable))
    np.testing.assert_allclose(changes, [1 / 2, 1 / 4, 1 / 6], rtol=1e-6)


def test_inner_modules_of_averages_logging_and_saved_models() -> None:
    program = """
import tensorflow as tf
from tensorflow.python.saved_model import builder, loader, signature_constants, tag_constants
from tensorflow.python.saved_model.builder_impl import SavedModelBuilder
from tensorflow.python.training import moving_averages

assert builder.SavedModelBuilder is SavedModelBuilder is tf.saved_model.Builder
assert loader.load is tf.saved_model.load and tag_constants.SERVING == "serve"
assert tf.logging.__dict__["INFO"] == 20
average = tf.Variable(1.0)
update = moving_averages.assign_moving_average(average, 3.0, 0.5, zero_debias=False)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    print(session.run(update))
"""
    done = subprocess.run(
        [sys.executable, "-m", "headwater", "exec", "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split()) == (0, ["2.0"]), done.stderr
