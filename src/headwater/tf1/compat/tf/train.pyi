# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.cluster.server_def import ServerDef as ServerDef
from headwater.cluster.spec import ClusterSpec as ClusterSpec
from headwater.data.io.event_file import summary_iterator as summary_iterator
from headwater.data.io.protos.checkpoint_state_pb2 import CheckpointState as CheckpointState
from headwater.data.io.protos.example_pb2 import Example as Example
from headwater.data.io.protos.example_pb2 import SequenceExample as SequenceExample
from headwater.data.io.protos.feature_pb2 import BytesList as BytesList
from headwater.data.io.protos.feature_pb2 import Feature as Feature
from headwater.data.io.protos.feature_pb2 import FeatureList as FeatureList
from headwater.data.io.protos.feature_pb2 import FeatureLists as FeatureLists
from headwater.data.io.protos.feature_pb2 import Features as Features
from headwater.data.io.protos.feature_pb2 import FloatList as FloatList
from headwater.data.io.protos.feature_pb2 import Int64List as Int64List
from headwater.graph.server.server import Server as Server
from headwater.tf1.compat.tf import queue_runner as queue_runner
from headwater.tf1.compat.tf import train_experimental as experimental
from headwater.tf1.training.basic_session_run_hooks import CheckpointSaverHook as CheckpointSaverHook
from headwater.tf1.training.basic_session_run_hooks import CheckpointSaverListener as CheckpointSaverListener
from headwater.tf1.training.basic_session_run_hooks import FeedFnHook as FeedFnHook
from headwater.tf1.training.basic_session_run_hooks import FinalOpsHook as FinalOpsHook
from headwater.tf1.training.basic_session_run_hooks import GlobalStepWaiterHook as GlobalStepWaiterHook
from headwater.tf1.training.basic_session_run_hooks import LoggingTensorHook as LoggingTensorHook
from headwater.tf1.training.basic_session_run_hooks import NanLossDuringTrainingError as NanLossDuringTrainingError
from headwater.tf1.training.basic_session_run_hooks import NanTensorHook as NanTensorHook
from headwater.tf1.training.basic_session_run_hooks import ProfilerHook as ProfilerHook
from headwater.tf1.training.basic_session_run_hooks import SecondOrStepTimer as SecondOrStepTimer
from headwater.tf1.training.basic_session_run_hooks import StepCounterHook as StepCounterHook
from headwater.tf1.training.basic_session_run_hooks import StopAtStepHook as StopAtStepHook
from headwater.tf1.training.basic_session_run_hooks import SummarySaverHook as SummarySaverHook
from headwater.tf1.training.batching import batch as batch
from headwater.tf1.training.batching import batch_join as batch_join
from headwater.tf1.training.batching import maybe_batch as maybe_batch
from headwater.tf1.training.batching import maybe_batch_join as maybe_batch_join
from headwater.tf1.training.batching import maybe_shuffle_batch as maybe_shuffle_batch
from headwater.tf1.training.batching import maybe_shuffle_batch_join as maybe_shuffle_batch_join
from headwater.tf1.training.batching import shuffle_batch as shuffle_batch
from headwater.tf1.training.batching import shuffle_batch_join as shuffle_batch_join
from headwater.tf1.training.checkpoint_reader import CheckpointReader as NewCheckpointReader
from headwater.tf1.training.checkpoint_reader import list_variables as list_variables
from headwater.tf1.training.checkpoint_reader import load_checkpoint as load_checkpoint
from headwater.tf1.training.checkpoint_reader import load_variable as load_variable
from headwater.tf1.training.checkpoint_state import checkpoint_exists as checkpoint_exists
from headwater.tf1.training.checkpoint_state import generate_checkpoint_state_proto as generate_checkpoint_state_proto
from headwater.tf1.training.checkpoint_state import get_checkpoint_mtimes as get_checkpoint_mtimes
from headwater.tf1.training.checkpoint_state import get_checkpoint_state as get_checkpoint_state
from headwater.tf1.training.checkpoint_state import latest_checkpoint as latest_checkpoint
from headwater.tf1.training.checkpoint_state import remove_checkpoint as remove_checkpoint
from headwater.tf1.training.checkpoint_state import update_checkpoint_state as update_checkpoint_state
from headwater.tf1.training.coordinator import Coordinator as Coordinator
from headwater.tf1.training.coordinator import LooperThread as LooperThread
from headwater.tf1.training.device_setter import replica_device_setter as replica_device_setter
from headwater.tf1.training.dual_ascent import sdca_fprint as sdca_fprint
from headwater.tf1.training.dual_ascent import sdca_shrink_l1 as sdca_shrink_l1
from headwater.tf1.training.file_writer import FileWriter as SummaryWriter
from headwater.tf1.training.file_writer import FileWriterCache as SummaryWriterCache
from headwater.tf1.training.input_producers import input_producer as input_producer
from headwater.tf1.training.input_producers import limit_epochs as limit_epochs
from headwater.tf1.training.input_producers import match_filenames_once as match_filenames_once
from headwater.tf1.training.input_producers import range_input_producer as range_input_producer
from headwater.tf1.training.input_producers import slice_input_producer as slice_input_producer
from headwater.tf1.training.input_producers import string_input_producer as string_input_producer
from headwater.tf1.training.learning_rate import cosine_decay as cosine_decay
from headwater.tf1.training.learning_rate import cosine_decay_restarts as cosine_decay_restarts
from headwater.tf1.training.learning_rate import exponential_decay as exponential_decay
from headwater.tf1.training.learning_rate import inverse_time_decay as inverse_time_decay
from headwater.tf1.training.learning_rate import linear_cosine_decay as linear_cosine_decay
from headwater.tf1.training.learning_rate import natural_exp_decay as natural_exp_decay
from headwater.tf1.training.learning_rate import noisy_linear_cosine_decay as noisy_linear_cosine_decay
from headwater.tf1.training.learning_rate import piecewise_constant as piecewise_constant
from headwater.tf1.training.learning_rate import piecewise_constant as piecewise_constant_decay
from headwater.tf1.training.learning_rate import polynomial_decay as polynomial_decay
from headwater.tf1.training.loops import basic_train_loop as basic_train_loop
from headwater.tf1.training.loops import checkpoints_iterator as checkpoints_iterator
from headwater.tf1.training.meta_graph import export_meta_graph as export_meta_graph
from headwater.tf1.training.monitored_session import ChiefSessionCreator as ChiefSessionCreator
from headwater.tf1.training.monitored_session import MonitoredSession as MonitoredSession
from headwater.tf1.training.monitored_session import MonitoredTrainingSession as MonitoredTrainingSession
from headwater.tf1.training.monitored_session import SessionCreator as SessionCreator
from headwater.tf1.training.monitored_session import SingularMonitoredSession as SingularMonitoredSession
from headwater.tf1.training.monitored_session import WorkerSessionCreator as WorkerSessionCreator
from headwater.tf1.training.moving_averages import ExponentialMovingAverage as ExponentialMovingAverage
from headwater.tf1.training.object_checkpoints import Checkpoint as Checkpoint
from headwater.tf1.training.object_checkpoints import CheckpointManager as CheckpointManager
from headwater.tf1.training.optimizer import Optimizer as Optimizer
from headwater.tf1.training.optimizers.adadelta import AdadeltaOptimizer as AdadeltaOptimizer
from headwater.tf1.training.optimizers.adagrad import AdagradDAOptimizer as AdagradDAOptimizer
from headwater.tf1.training.optimizers.adagrad import AdagradOptimizer as AdagradOptimizer
from headwater.tf1.training.optimizers.adagrad import ProximalAdagradOptimizer as ProximalAdagradOptimizer
from headwater.tf1.training.optimizers.adam import AdamOptimizer as AdamOptimizer
from headwater.tf1.training.optimizers.descent import GradientDescentOptimizer as GradientDescentOptimizer
from headwater.tf1.training.optimizers.descent import MomentumOptimizer as MomentumOptimizer
from headwater.tf1.training.optimizers.descent import ProximalGradientDescentOptimizer as ProximalGradientDescentOptimizer
from headwater.tf1.training.optimizers.ftrl import FtrlOptimizer as FtrlOptimizer
from headwater.tf1.training.optimizers.rmsprop import RMSPropOptimizer as RMSPropOptimizer
from headwater.tf1.training.queue_runner import QueueRunner as QueueRunner
from headwater.tf1.training.queue_runner import add_queue_runner as add_queue_runner
from headwater.tf1.training.queue_runner import start_queue_runners as start_queue_runners
from headwater.tf1.training.saver import Saver as Saver
from headwater.tf1.training.saver import import_meta_graph as import_meta_graph
from headwater.tf1.training.scaffold import Scaffold as Scaffold
from headwater.tf1.training.session_manager import SessionManager as SessionManager
from headwater.tf1.training.session_run_hook import SessionRunArgs as SessionRunArgs
from headwater.tf1.training.session_run_hook import SessionRunContext as SessionRunContext
from headwater.tf1.training.session_run_hook import SessionRunHook as SessionRunHook
from headwater.tf1.training.session_run_hook import SessionRunValues as SessionRunValues
from headwater.tf1.training.supervisor import Supervisor as Supervisor
from headwater.tf1.training.supervisor_services import SVStepCounterThread as SVStepCounterThread
from headwater.tf1.training.supervisor_services import SVSummaryThread as SVSummaryThread
from headwater.tf1.training.supervisor_services import SVTimerCheckpointThread as SVTimerCheckpointThread
from headwater.tf1.training.sync_replicas_optimizer import SyncReplicasOptimizer as SyncReplicasOptimizer
from headwater.tf1.training.sync_replicas_optimizer import SyncReplicasOptimizer as SyncReplicasOptimizerV2
from headwater.tf1.training.training_util import assert_global_step as assert_global_step
from headwater.tf1.training.training_util import create_global_step as create_global_step
from headwater.tf1.training.training_util import get_global_step as get_global_step
from headwater.tf1.training.training_util import get_or_create_global_step as get_or_create_global_step
from headwater.tf1.training.training_util import global_step as global_step
from headwater.tf1.training.training_util import write_graph as write_graph
from headwater.tf1.training.vocabularies import VocabInfo as VocabInfo
from headwater.tf1.training.warm_start import init_from_checkpoint as init_from_checkpoint
from headwater.tf1.training.warm_start import warm_start as warm_start
from tensorboard.compat.proto.cluster_pb2 import ClusterDef as ClusterDef
from tensorboard.compat.proto.cluster_pb2 import JobDef as JobDef
from tensorboard.compat.proto.saver_pb2 import SaverDef as SaverDef

__all__ = [
    "AdadeltaOptimizer",
    "AdagradDAOptimizer",
    "AdagradOptimizer",
    "AdamOptimizer",
    "BytesList",
    "Checkpoint",
    "CheckpointManager",
    "CheckpointSaverHook",
    "CheckpointSaverListener",
    "CheckpointState",
    "ChiefSessionCreator",
    "ClusterDef",
    "ClusterSpec",
    "Coordinator",
    "Example",
    "ExponentialMovingAverage",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "Features",
    "FeedFnHook",
    "FinalOpsHook",
    "FloatList",
    "FtrlOptimizer",
    "GlobalStepWaiterHook",
    "GradientDescentOptimizer",
    "Int64List",
    "JobDef",
    "LoggingTensorHook",
    "LooperThread",
    "MomentumOptimizer",
    "MonitoredSession",
    "MonitoredTrainingSession",
    "NanLossDuringTrainingError",
    "NanTensorHook",
    "NewCheckpointReader",
    "Optimizer",
    "ProfilerHook",
    "ProximalAdagradOptimizer",
    "ProximalGradientDescentOptimizer",
    "QueueRunner",
    "RMSPropOptimizer",
    "SVStepCounterThread",
    "SVSummaryThread",
    "SVTimerCheckpointThread",
    "Saver",
    "SaverDef",
    "Scaffold",
    "SecondOrStepTimer",
    "SequenceExample",
    "Server",
    "ServerDef",
    "SessionCreator",
    "SessionManager",
    "SessionRunArgs",
    "SessionRunContext",
    "SessionRunHook",
    "SessionRunValues",
    "SingularMonitoredSession",
    "StepCounterHook",
    "StopAtStepHook",
    "SummarySaverHook",
    "SummaryWriter",
    "SummaryWriterCache",
    "Supervisor",
    "SyncReplicasOptimizer",
    "SyncReplicasOptimizerV2",
    "VocabInfo",
    "WorkerSessionCreator",
    "add_queue_runner",
    "assert_global_step",
    "basic_train_loop",
    "batch",
    "batch_join",
    "checkpoint_exists",
    "checkpoints_iterator",
    "cosine_decay",
    "cosine_decay_restarts",
    "create_global_step",
    "experimental",
    "exponential_decay",
    "export_meta_graph",
    "generate_checkpoint_state_proto",
    "get_checkpoint_mtimes",
    "get_checkpoint_state",
    "get_global_step",
    "get_or_create_global_step",
    "global_step",
    "import_meta_graph",
    "init_from_checkpoint",
    "input_producer",
    "inverse_time_decay",
    "latest_checkpoint",
    "limit_epochs",
    "linear_cosine_decay",
    "list_variables",
    "load_checkpoint",
    "load_variable",
    "match_filenames_once",
    "maybe_batch",
    "maybe_batch_join",
    "maybe_shuffle_batch",
    "maybe_shuffle_batch_join",
    "natural_exp_decay",
    "noisy_linear_cosine_decay",
    "piecewise_constant",
    "piecewise_constant_decay",
    "polynomial_decay",
    "queue_runner",
    "range_input_producer",
    "remove_checkpoint",
    "replica_device_setter",
    "sdca_fprint",
    "sdca_shrink_l1",
    "shuffle_batch",
    "shuffle_batch_join",
    "slice_input_producer",
    "start_queue_runners",
    "string_input_producer",
    "summary_iterator",
    "update_checkpoint_state",
    "warm_start",
    "write_graph",
]
