# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.contrib.opt.adam import AdaMaxOptimizer as AdaMaxOptimizer
from headwater.tf1.contrib.opt.adam import AdamGSOptimizer as AdamGSOptimizer
from headwater.tf1.contrib.opt.adam import LazyAdamGSOptimizer as LazyAdamGSOptimizer
from headwater.tf1.contrib.opt.adam import LazyAdamOptimizer as LazyAdamOptimizer
from headwater.tf1.contrib.opt.adam import NadamOptimizer as NadamOptimizer
from headwater.tf1.contrib.opt.agn import AGNCustomGetter as AGNCustomGetter
from headwater.tf1.contrib.opt.agn import AGNOptimizer as AGNOptimizer
from headwater.tf1.contrib.opt.elastic_average import ElasticAverageCustomGetter as ElasticAverageCustomGetter
from headwater.tf1.contrib.opt.elastic_average import ElasticAverageOptimizer as ElasticAverageOptimizer
from headwater.tf1.contrib.opt.external import ExternalOptimizerInterface as ExternalOptimizerInterface
from headwater.tf1.contrib.opt.external import ScipyOptimizerInterface as ScipyOptimizerInterface
from headwater.tf1.contrib.opt.ggt import GGTOptimizer as GGTOptimizer
from headwater.tf1.contrib.opt.model_average import ModelAverageCustomGetter as ModelAverageCustomGetter
from headwater.tf1.contrib.opt.model_average import ModelAverageOptimizer as ModelAverageOptimizer
from headwater.tf1.contrib.opt.scaled import LARSOptimizer as LARSOptimizer
from headwater.tf1.contrib.opt.scaled import RegAdagradOptimizer as RegAdagradOptimizer
from headwater.tf1.contrib.opt.shampoo import ShampooOptimizer as ShampooOptimizer
from headwater.tf1.contrib.opt.signs import AddSignOptimizer as AddSignOptimizer
from headwater.tf1.contrib.opt.signs import PowerSignOptimizer as PowerSignOptimizer
from headwater.tf1.contrib.opt.weight_decay import AdamWOptimizer as AdamWOptimizer
from headwater.tf1.contrib.opt.weight_decay import DecoupledWeightDecayExtension as DecoupledWeightDecayExtension
from headwater.tf1.contrib.opt.weight_decay import MomentumWOptimizer as MomentumWOptimizer
from headwater.tf1.contrib.opt.weight_decay import extend_with_decoupled_weight_decay as extend_with_decoupled_weight_decay
from headwater.tf1.contrib.opt.wrappers import DropStaleGradientOptimizer as DropStaleGradientOptimizer
from headwater.tf1.contrib.opt.wrappers import MovingAverageOptimizer as MovingAverageOptimizer
from headwater.tf1.contrib.opt.wrappers import MultitaskOptimizerWrapper as MultitaskOptimizerWrapper
from headwater.tf1.contrib.opt.wrappers import VariableClippingOptimizer as VariableClippingOptimizer
from headwater.tf1.contrib.opt.wrappers import clip_gradients_by_global_norm as clip_gradients_by_global_norm

__all__ = [
    "AGNCustomGetter",
    "AGNOptimizer",
    "AdaMaxOptimizer",
    "AdamGSOptimizer",
    "AdamWOptimizer",
    "AddSignOptimizer",
    "DecoupledWeightDecayExtension",
    "DropStaleGradientOptimizer",
    "ElasticAverageCustomGetter",
    "ElasticAverageOptimizer",
    "ExternalOptimizerInterface",
    "GGTOptimizer",
    "LARSOptimizer",
    "LazyAdamGSOptimizer",
    "LazyAdamOptimizer",
    "ModelAverageCustomGetter",
    "ModelAverageOptimizer",
    "MomentumWOptimizer",
    "MovingAverageOptimizer",
    "MultitaskOptimizerWrapper",
    "NadamOptimizer",
    "PowerSignOptimizer",
    "RegAdagradOptimizer",
    "ScipyOptimizerInterface",
    "ShampooOptimizer",
    "VariableClippingOptimizer",
    "clip_gradients_by_global_norm",
    "extend_with_decoupled_weight_decay",
]
