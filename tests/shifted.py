"""A graph whose training nodes are balanced by design, while most other nodes are of one class."""

import dataclasses

import torch

from longnn.data import NodeDataset, Split
from longnn.data._synthetic import csbm


def balanced_split(y: torch.Tensor, each: int) -> Split:
    """Training nodes of both classes alike; nine of ten others are of the first."""
    place = torch.where(y == 0, torch.cumsum(y == 0, 0), torch.cumsum(y == 1, 0))
    train = place <= each
    rest = ~train & ((y == 0) | (place <= each + each * 2 // 5))
    even = torch.arange(len(y)) % 2 == 0
    return Split(train, rest & even, rest & ~even, "own", 0)


def shifted_graph(nodes: int = 300, features: int = 8) -> NodeDataset:
    """With such a split as its own."""
    dataset = csbm(num_nodes=nodes, num_features=features, phi=0.3, seed=3)
    split = balanced_split(dataset.data.y, nodes // 9)
    masks = {"train_mask": split.train, "val_mask": split.val, "test_mask": split.test}
    return dataclasses.replace(dataset, data={**dataset.data, **masks}, default_split="own")
