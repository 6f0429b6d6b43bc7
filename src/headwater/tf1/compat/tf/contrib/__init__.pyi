# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.compat import contrib_lookup as lookup
from headwater.tf1.compat import slim_losses as losses
from headwater.tf1.compat.tf import estimator_tpu as tpu
from headwater.tf1.compat.tf.contrib import cluster_resolver as cluster_resolver
from headwater.tf1.compat.tf.contrib import crf as crf
from headwater.tf1.compat.tf.contrib import cudnn_rnn as cudnn_rnn
from headwater.tf1.compat.tf.contrib import data as data
from headwater.tf1.compat.tf.contrib import deprecated as deprecated
from headwater.tf1.compat.tf.contrib import distribute as distribute
from headwater.tf1.compat.tf.contrib import distributions as distributions
from headwater.tf1.compat.tf.contrib import eager as eager
from headwater.tf1.compat.tf.contrib import estimator as estimator
from headwater.tf1.compat.tf.contrib import factorization as factorization
from headwater.tf1.compat.tf.contrib import feature_column as feature_column
from headwater.tf1.compat.tf.contrib import framework as framework
from headwater.tf1.compat.tf.contrib import image as image
from headwater.tf1.compat.tf.contrib import layers as layers
from headwater.tf1.compat.tf.contrib import learn as learn
from headwater.tf1.compat.tf.contrib import legacy_seq2seq as legacy_seq2seq
from headwater.tf1.compat.tf.contrib import nn as nn
from headwater.tf1.compat.tf.contrib import opt as opt
from headwater.tf1.compat.tf.contrib import predictor as predictor
from headwater.tf1.compat.tf.contrib import rnn as rnn
from headwater.tf1.compat.tf.contrib import seq2seq as seq2seq
from headwater.tf1.compat.tf.contrib import signal as signal
from headwater.tf1.compat.tf.contrib import slim as slim
from headwater.tf1.compat.tf.contrib import sparsemax as sparsemax
from headwater.tf1.compat.tf.contrib import staging as staging
from headwater.tf1.compat.tf.contrib import stateless as stateless
from headwater.tf1.compat.tf.contrib import tfprof as tfprof
from headwater.tf1.compat.tf.contrib import training as training
from headwater.tf1.compat.tf.contrib import util as util
from headwater.tf1.contrib.metrics import names as metrics

__all__ = [
    "cluster_resolver",
    "crf",
    "cudnn_rnn",
    "data",
    "deprecated",
    "distribute",
    "distributions",
    "eager",
    "estimator",
    "factorization",
    "feature_column",
    "framework",
    "image",
    "layers",
    "learn",
    "legacy_seq2seq",
    "lookup",
    "losses",
    "metrics",
    "nn",
    "opt",
    "predictor",
    "rnn",
    "seq2seq",
    "signal",
    "slim",
    "sparsemax",
    "staging",
    "stateless",
    "tfprof",
    "tpu",
    "training",
    "util",
]
