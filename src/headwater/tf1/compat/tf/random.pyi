# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.compat.tf import random_experimental as experimental
from headwater.tf1.functional.candidates import all_candidate_sampler as all_candidate_sampler
from headwater.tf1.functional.candidates import fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler
from headwater.tf1.functional.candidates import learned_unigram_candidate_sampler as learned_unigram_candidate_sampler
from headwater.tf1.functional.candidates import log_uniform_candidate_sampler as log_uniform_candidate_sampler
from headwater.tf1.functional.candidates import uniform_candidate_sampler as uniform_candidate_sampler
from headwater.tf1.functional.random import categorical as categorical
from headwater.tf1.functional.random import get_seed as get_seed
from headwater.tf1.functional.random import multinomial as multinomial
from headwater.tf1.functional.random import random_gamma as gamma
from headwater.tf1.functional.random import random_normal as normal
from headwater.tf1.functional.random import random_poisson as poisson
from headwater.tf1.functional.random import random_shuffle as shuffle
from headwater.tf1.functional.random import random_uniform as uniform
from headwater.tf1.functional.random import set_random_seed as set_random_seed
from headwater.tf1.functional.random import stateless_categorical as stateless_categorical
from headwater.tf1.functional.random import stateless_multinomial as stateless_multinomial
from headwater.tf1.functional.random import stateless_random_normal as stateless_normal
from headwater.tf1.functional.random import stateless_random_uniform as stateless_uniform
from headwater.tf1.functional.random import stateless_truncated_normal as stateless_truncated_normal
from headwater.tf1.functional.random import truncated_normal as truncated_normal

__all__ = [
    "all_candidate_sampler",
    "categorical",
    "experimental",
    "fixed_unigram_candidate_sampler",
    "gamma",
    "get_seed",
    "learned_unigram_candidate_sampler",
    "log_uniform_candidate_sampler",
    "multinomial",
    "normal",
    "poisson",
    "set_random_seed",
    "shuffle",
    "stateless_categorical",
    "stateless_multinomial",
    "stateless_normal",
    "stateless_truncated_normal",
    "stateless_uniform",
    "truncated_normal",
    "uniform",
    "uniform_candidate_sampler",
]
