"""Datasets of files whose elements are tensors with values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.tf1.input import file_datasets
from headwater.tf2.data import Dataset

if TYPE_CHECKING:
    from headwater.keras.types import Tree


class CsvDataset(file_datasets.CsvDataset, Dataset):
    __doc__ = file_datasets.CsvDataset.__doc__


class SqlDataset(file_datasets.SqlDataset, Dataset):
    __doc__ = file_datasets.SqlDataset.__doc__


def make_csv_dataset(*args: Tree, **kwargs: Tree) -> Tree:
    """Returns `file_datasets.make_csv_dataset`, with tensors as elements."""
    return Dataset.of(file_datasets.make_csv_dataset(*args, **kwargs))


def make_batched_features_dataset(*args: Tree, **kwargs: Tree) -> Tree:
    """Returns `file_datasets.make_batched_features_dataset`, with tensors as elements."""
    return Dataset.of(file_datasets.make_batched_features_dataset(*args, **kwargs))
