# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.contrib.factorization.clustering import COSINE_DISTANCE as COSINE_DISTANCE
from headwater.tf1.contrib.factorization.clustering import KMEANS_PLUS_PLUS_INIT as KMEANS_PLUS_PLUS_INIT
from headwater.tf1.contrib.factorization.clustering import KMeans as KMeans
from headwater.tf1.contrib.factorization.clustering import RANDOM_INIT as RANDOM_INIT
from headwater.tf1.contrib.factorization.clustering import SQUARED_EUCLIDEAN_DISTANCE as SQUARED_EUCLIDEAN_DISTANCE
from headwater.tf1.contrib.factorization.kmeans import KMeansClustering as KMeansClustering

__all__ = [
    "COSINE_DISTANCE",
    "KMEANS_PLUS_PLUS_INIT",
    "KMeans",
    "KMeansClustering",
    "RANDOM_INIT",
    "SQUARED_EUCLIDEAN_DISTANCE",
]
