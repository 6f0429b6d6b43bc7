"""``tf.train``: servers, optimizers, checkpoints, and what carries a training loop."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.cluster.spec": "ClusterSpec",
    "headwater.cluster.server_def": "ServerDef",
    "headwater.server.server": "Server",
    "headwater.training.device_setter": "replica_device_setter",
    "headwater.training.optimizer": "Optimizer",
    "headwater.training.optimizers.adadelta": "AdadeltaOptimizer",
    "headwater.training.optimizers.adagrad": "AdagradDAOptimizer AdagradOptimizer ProximalAdagradOptimizer",
    "headwater.training.optimizers.adam": "AdamOptimizer",
    "headwater.training.optimizers.descent": """
        GradientDescentOptimizer MomentumOptimizer ProximalGradientDescentOptimizer""",
    "headwater.training.optimizers.ftrl": "FtrlOptimizer",
    "headwater.training.optimizers.rmsprop": "RMSPropOptimizer",
    "headwater.training.loops": "basic_train_loop checkpoints_iterator",
    "headwater.training.learning_rate": """
        cosine_decay cosine_decay_restarts exponential_decay inverse_time_decay linear_cosine_decay natural_exp_decay
        noisy_linear_cosine_decay piecewise_constant piecewise_constant_decay=piecewise_constant polynomial_decay""",
    "headwater.training.moving_averages": "ExponentialMovingAverage",
    "headwater.training.warm_start": "init_from_checkpoint warm_start",
    "headwater.training.saver": "Saver import_meta_graph",
    "headwater.training.meta_graph": "export_meta_graph",
    "headwater.training.checkpoint_reader": """
        NewCheckpointReader=CheckpointReader list_variables load_checkpoint load_variable""",
    "headwater.training.checkpoint_state": """
        checkpoint_exists generate_checkpoint_state_proto get_checkpoint_mtimes get_checkpoint_state latest_checkpoint
        remove_checkpoint update_checkpoint_state""",
    "headwater.io.protos.checkpoint_state_pb2": "CheckpointState",
    "headwater.training.basic_session_run_hooks": """
        CheckpointSaverHook CheckpointSaverListener FeedFnHook FinalOpsHook GlobalStepWaiterHook LoggingTensorHook
        NanLossDuringTrainingError NanTensorHook ProfilerHook SecondOrStepTimer StepCounterHook StopAtStepHook
        SummarySaverHook""",
    "headwater.training.coordinator": "Coordinator LooperThread",
    "headwater.training.monitored_session": """
        ChiefSessionCreator MonitoredSession MonitoredTrainingSession SessionCreator SingularMonitoredSession
        WorkerSessionCreator""",
    "headwater.training.queue_runner": "QueueRunner add_queue_runner start_queue_runners",
    "headwater.training.scaffold": "Scaffold",
    "headwater.training.input_producers": """
        input_producer limit_epochs match_filenames_once range_input_producer slice_input_producer
        string_input_producer""",
    "headwater.training.batching": """
        batch batch_join maybe_batch maybe_batch_join maybe_shuffle_batch maybe_shuffle_batch_join shuffle_batch
        shuffle_batch_join""",
    "headwater.training.session_manager": "SessionManager",
    "headwater.training.session_run_hook": "SessionRunArgs SessionRunContext SessionRunHook SessionRunValues",
    "headwater.training.supervisor": "Supervisor",
    "headwater.training.supervisor_services": "SVStepCounterThread SVSummaryThread SVTimerCheckpointThread",
    "tensorboard.compat.proto.cluster_pb2": "ClusterDef JobDef",
    "tensorboard.compat.proto.saver_pb2": "SaverDef",
    "headwater.training.sync_replicas_optimizer": "SyncReplicasOptimizer SyncReplicasOptimizerV2=SyncReplicasOptimizer",
    "headwater.training.training_util": """
        assert_global_step create_global_step get_global_step get_or_create_global_step global_step write_graph""",
    "headwater.training.file_writer": "SummaryWriter=FileWriter SummaryWriterCache=FileWriterCache",
    "headwater.io.protos.example_pb2": "Example SequenceExample",
    "headwater.io.protos.feature_pb2": "BytesList Feature FeatureList FeatureLists Features FloatList Int64List",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
