"""Which models can be trained on rows of stored terms, and what they are trained on there."""

from collections.abc import Sequence

import numpy as np
import torch

from longnn.config import Config
from longnn.data import DataError, Scaling
from longnn.graphs import SelfLoops
from longnn.metrics import headline
from longnn.nn import OnRows
from longnn.registry import find_model, get_model
from longnn.store import GraphStore, Ranks, StoredDataset, ensure_basis
from longnn.training._fit import self_loops_of
from longnn.training._rows import RowProblem, StoredTerms


def make_row_problem(
    dataset: StoredDataset,
    configs: Sequence[Config],
    scaling: Scaling,
    *,
    device: torch.device,
    memory: int | None = None,
    ranks: Ranks | None = None,
) -> RowProblem:
    """The stored terms of a dataset as the models want them; what is missing is computed.

    Args:
        dataset: the labelled rows of a graph on disk.
        configs: of all models, which may differ in degree and self loops.
        scaling: of the features.
        device: where to train.
        memory: bytes that computing the terms may use.
        ranks: who computes and trains; by default the caller alone.

    Raises:
        DataError: for a model that has no form on rows.
    """
    dtype = torch.float64 if configs[0].precision == "float64" else torch.float32
    ranks = Ranks() if ranks is None else ranks
    terms, variants = row_terms(
        dataset.graph, dataset.nodes, configs, scaling, device=device, memory=memory, ranks=ranks
    )
    labels = dataset.data.y.to(device)
    labels = labels if dataset.task == "classification" else labels.to(dtype)
    metric, positive = headline(dataset.data.y, dataset.task)
    own = variants[self_loops_of(configs[0])]
    kind = (dataset.task, dataset.outputs, metric, positive)
    rounded = configs[0].precision == "tf32"
    return RowProblem(terms, own, labels, *kind, variants=variants, ranks=ranks, rounded=rounded)


def row_terms(
    graph: GraphStore,
    nodes: np.ndarray,
    configs: Sequence[Config],
    scaling: Scaling,
    *,
    device: torch.device,
    memory: int | None = None,
    ranks: Ranks | None = None,
) -> tuple[StoredTerms, dict[SelfLoops, OnRows]]:
    """The terms of some nodes that models of these configurations need, and their operators."""
    degrees: dict[SelfLoops, int] = {}
    for config in configs:
        degree, loops = require_row_degree(config), self_loops_of(config)
        degrees[loops] = max(degree, degrees.get(loops, 0))
    if len(degrees) > 1:  # one without a filter reads any of them
        degrees = {loops: k for loops, k in degrees.items() if k} or {"keep": 0}
    stores = {
        loops: ensure_basis(graph, nodes, degree=k, self_loops=loops, memory=memory, ranks=ranks)
        for loops, k in degrees.items()
    }
    dtype = torch.float64 if configs[0].precision == "float64" else torch.float32
    terms = StoredTerms.of(
        stores,
        nodes,
        scaling.after(graph.scaling),
        max(degrees.values()),
        device=device,
        dtype=dtype,
    )
    place = {loops: OnRows(loops, len(nodes), device, dtype) for loops in stores}
    first = next(iter(place.values()))
    every: tuple[SelfLoops, ...] = ("keep", "add", "remove")
    return terms, {loops: place.get(loops, first) for loops in every}


def row_degree_of(config: Config) -> int | None:
    """The degree of the terms that a model needs on rows; None if it has no such form.

    >>> row_degree_of(Config(options={"placement": "features", "degree": 4}))
    4
    >>> row_degree_of(Config(model="gcn"))
    """
    model = get_model(config.model, 1, 1, 1, **config.options)
    return model.row_degree


def require_row_degree(config: Config) -> int:
    """The same, or an error that says what to do."""
    degree = row_degree_of(config)
    if degree is None:
        has = "placement" in config.options
        form = f" with placement={config.options['placement']!r}" if has else ""
        raise DataError(
            "Expected a model that is linear up to its filter, since this graph is trained on rows "
            f"(got {find_model(config.model).title}{form}); use "
            + ("--set placement=features" if has else "--model lon")
            + ", or give more memory with --memory to train on the whole graph"
        )
    return degree
