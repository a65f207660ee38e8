"""The card of a graph: what to know before training on it.

Sizes, degrees, components, classes, homophily, and warnings in words. Knows nothing of spectra:
the caller adds the spectral density.
"""

import dataclasses
import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from longnn.data._arcs import merge_edges
from longnn.data._dataset import NodeDataset
from longnn.data._errors import DataError, few
from longnn.data._features import DEGREES, is_sparse
from longnn.data._splits import make_split
from longnn.matrices import csr_to_scipy, nonzero_share

IMBALANCED = 10.0  # largest class / smallest, from which on we warn
SMALL_CLASS = 5  # labelled nodes
UNLABELLED_GRAPH = (
    "No node has a label: the graph can be predicted on, not trained on. If a column holds labels, "
    "name it with label_column."
)
SHOWN = 20  # classes in a line of the card
FEW_COLUMNS = 10  # of a table: below it, rows repeat by chance
#: What would need a large graph on disk as a whole.
_OF_WHOLE = (
    "components",
    "largest_component_share",
    "feature_density",
    "duplicate_rows",
    "zero_rows",
)


@dataclass(frozen=True)
class GraphCard:
    r"""A graph at a glance.

    Degrees count neighbours, whichever way an edge goes; a self loop is not one. Components and
    homophily, too, are those of the graph with each edge both ways; ``edges`` are the arcs of a
    directed graph, and ``one_way`` those without a reverse. Homophily is computed over the edges
    without self loops whose two ends are labelled. It is None if there is no such edge, and for
    regression.

    *Edge* homophily :math:`h` is the share of these edges that join nodes of one class. *Node*
    homophily is the mean over nodes of the share of neighbours in the node's class. *Adjusted*
    homophily is edge homophily corrected for chance (`Platonov et al. 2023
    <https://arxiv.org/abs/2209.06177>`_), with :math:`D_k` the sum of the degrees of class k and
    :math:`E` the number of edges:

    .. math::
        \frac{h - \sum_k D_k^2 / (2E)^2}{1 - \sum_k D_k^2 / (2E)^2}

    ``imbalance`` is the size of the largest class divided by that of the smallest, among classes
    with labelled nodes. ``edge_types`` are the arcs of each type of edges, if there are types.
    ``targets`` describes each number to predict: its least, median, mean and largest value, and how
    its values at the two ends of an edge correlate (None if they do not vary). What would need a
    large graph on disk as a whole is None: components, homophily, density and repeats of features.
    """

    name: str
    task: str
    nodes: int
    edges: int
    features: int
    weighted: bool
    degree_min: int
    degree_median: float
    degree_mean: float
    degree_max: int
    components: int | None
    largest_component_share: float | None
    isolated_nodes: int
    class_counts: dict[str, int]
    imbalance: float | None
    labelled_share: float
    edge_homophily: float | None
    node_homophily: float | None
    adjusted_homophily: float | None
    feature_density: float | None
    duplicate_rows: int | None
    zero_rows: int | None
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    fingerprint: str
    directed: bool = False
    one_way: int = 0
    edge_types: dict[str, int] = field(default_factory=dict)
    targets: dict[str, dict[str, float | None]] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """The card for a terminal, without notes and warnings."""
        edges = f"{self.edges:,}{', weighted' if self.weighted else ''}"
        if self.directed:
            edges += f", directed: {self.one_way:,} have no reverse"
        share = 1 if self.directed else 2  # both directions of an edge are listed
        types = [f"{name}: {n // share:,}" for name, n in self.edge_types.items()]
        nonzero, largest = "", "not counted; "
        if self.feature_density is not None:
            nonzero = f" ({100 * self.feature_density:.1f} % nonzero)"
        if self.components is not None and self.largest_component_share is not None:
            part = f"{100 * self.largest_component_share:.1f} % of the nodes"
            largest = f"{self.components:,}, the largest with {part}; "
        rows = [
            ("graph", self.name),
            ("nodes", f"{self.nodes:,}"),
            ("arcs" if self.directed else "edges", edges),
            *([("edge types", ", ".join(types))] if types else []),
            ("features", f"{self.features:,}{nonzero}"),
            (
                "degree",
                f"min {self.degree_min}, median {self.degree_median:g}, "
                f"mean {self.degree_mean:.1f}, max {self.degree_max}",
            ),
            ("components", f"{largest}{self.isolated_nodes:,} isolated"),
            ("labelled", f"{100 * self.labelled_share:.1f} % of the nodes"),
        ]
        if self.class_counts:
            named = [f"{name}: {n:,}" for name, n in self.class_counts.items()]
            counts = few(named, most=SHOWN)
            rows.append(("labels" if self.task == "multilabel" else "classes", counts))
        for name, found in self.targets.items():
            values = [f"{k} {found[k]:g}" for k in ("min", "median", "mean", "max") if k in found]
            alike = found.get("neighbours")
            last = "" if alike is None else f"; correlation of neighbours {alike:.3f}"
            rows.append(("target", f"{name}: {', '.join(values)}{last}"))
        if self.edge_homophily is not None:
            parts = (
                ("edge", self.edge_homophily),
                ("node", self.node_homophily),
                ("adjusted", self.adjusted_homophily),
            )
            shown = ", ".join(f"{name} {value:.3f}" for name, value in parts if value is not None)
            rows.append(("homophily", shown))
        return [f"{name:<12}{value}" for name, value in rows]

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON; of an undirected graph without a word on arcs."""
        fields = dataclasses.asdict(self)
        absent = {key for key in _OF_WHOLE if fields[key] is None}
        absent |= {key for key in ("edge_types", "targets") if not fields[key]}
        absent |= set() if self.directed else {"directed", "one_way"}
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in fields.items()
            if key not in absent
        }


def describe(dataset: NodeDataset) -> GraphCard:
    """Compute the card of a dataset.

    >>> from longnn.data import csbm
    >>> describe(csbm(num_nodes=40, num_features=8)).class_counts
    {'minus': 20, 'plus': 20}
    """
    backing = dataset.backing
    arcs, x = backing.arcs(), backing.features()
    nodes, degree = dataset.num_nodes, dataset.degrees
    components, largest = (None, None) if arcs is None else _components(arcs, nodes)
    counts = _class_counts(dataset)
    present = [count for count in counts.values() if count]
    edge, node, adjusted = homophily(dataset)
    empty = None if x is None else (x.crow_indices().diff() if is_sparse(x) else x.any(1)) == 0
    card = GraphCard(
        name=dataset.name,
        task=dataset.task,
        nodes=nodes,
        edges=dataset.num_edges,
        features=dataset.num_features,
        weighted=backing.weighted,
        degree_min=int(degree.min()),
        degree_median=float(np.median(degree.numpy())),
        degree_mean=float(degree.double().mean()),
        degree_max=int(degree.max()),
        components=components,
        largest_component_share=largest,
        isolated_nodes=int((degree == 0).sum()),
        class_counts=counts,
        imbalance=max(present) / min(present) if present else None,
        labelled_share=float(dataset.labelled.double().mean()),
        edge_homophily=edge,
        node_homophily=node,
        adjusted_homophily=adjusted,
        feature_density=None if x is None else nonzero_share(x),
        duplicate_rows=None if x is None else _count_duplicates(x),
        zero_rows=None if empty is None else int(empty.sum()),
        notes=dataset.notes,
        warnings=(),
        fingerprint=dataset.fingerprint(),
        directed=dataset.directed,
        one_way=dataset.one_way if dataset.directed else 0,
        edge_types=backing.types(),
        targets=_describe_targets(dataset),
    )
    names = dataset.feature_names
    of_degrees = bool(names) and all(name in DEGREES for name in names)
    few = dataset.encoding is not None and dataset.num_features < FEW_COLUMNS
    # Equal degrees, or equal rows of a table of few columns, say nothing.
    return dataclasses.replace(card, warnings=tuple(_warnings(card, by_chance=of_degrees or few)))


def _components(arcs: Tensor, nodes: int) -> tuple[int, float]:
    """How many there are, and the share of the largest."""
    ones = np.ones(arcs.shape[1], dtype=np.int8)
    adjacency = sp.coo_array((ones, tuple(arcs.numpy())), shape=(nodes, nodes))
    from scipy.sparse.csgraph import connected_components  # slow to load

    count, component = connected_components(adjacency.tocsr(), directed=False)
    return int(count), float(np.bincount(component).max() / nodes)


def homophily(dataset: NodeDataset) -> tuple[float | None, float | None, float | None]:
    """Edge, node and adjusted homophily (see :class:`GraphCard`)."""
    if dataset.task != "classification":
        return None, None, None
    y, known, arcs = dataset.data.y, dataset.labelled, dataset.backing.arcs()
    if arcs is None:
        return None, None, None
    row, col = merge_edges(arcs).ends if dataset.directed else arcs
    keep = (row != col) & known[row] & known[col]
    row, col = row[keep], col[keep]
    if len(row) == 0:
        return None, None, None
    same = (y[row] == y[col]).double()
    edge = float(same.mean())
    zeros = torch.zeros(dataset.num_nodes, dtype=torch.float64)
    agree, degree = zeros.index_add(0, row, same), zeros.index_add(0, row, torch.ones_like(same))
    node = float((agree[degree > 0] / degree[degree > 0]).mean())
    # sum_k D_k^2 / (2E)^2, with 2E = the number of arcs
    share = torch.bincount(y[row], minlength=dataset.num_classes).double() / len(row)
    chance = float((share**2).sum())
    return edge, node, (edge - chance) / (1 - chance) if chance < 1 else None


def _describe_targets(dataset: NodeDataset) -> dict[str, dict[str, float | None]]:
    """What is known of each number to predict; nothing where there is none."""
    if dataset.task != "regression" or not bool(dataset.labelled.any()):
        return {}
    y = dataset.data.y.reshape(dataset.num_nodes, -1).double()
    arcs = dataset.backing.arcs()
    row, col = torch.zeros(2, 0, dtype=torch.int64) if arcs is None else arcs
    names = dataset.targets or tuple(str(k) for k in range(y.shape[1]))
    found: dict[str, dict[str, float | None]] = {}
    for name, value in zip(names, y.T.numpy(), strict=True):
        known = value[~np.isnan(value)]
        if not len(known):
            continue
        ends = np.stack([value[row.numpy()], value[col.numpy()]])  # (2, arcs)
        ends = ends[:, ~np.isnan(ends).any(axis=0) & (row != col).numpy()]
        vary = ends.shape[1] > 1 and bool((ends.std(axis=1) > 0).all())
        found[name] = {
            "min": float(known.min()),
            "median": float(np.median(known)),
            "mean": float(known.mean()),
            "max": float(known.max()),
            "neighbours": float(np.corrcoef(ends)[0, 1]) if vary else None,
        }
    return found


def _count_duplicates(x: Tensor) -> int:  # float32 (nodes, features)
    """Rows that repeat an earlier one, bit by bit; compared by a hash of 128 bits."""
    values = csr_to_scipy(x) if is_sparse(x) else x.numpy()
    if isinstance(values, np.ndarray):
        rows = (row.tobytes() for row in values)
    else:
        ends = zip(values.indptr[:-1], values.indptr[1:], strict=True)
        rows = (values.indices[a:b].tobytes() + values.data[a:b].tobytes() for a, b in ends)
    return len(x) - len({hashlib.blake2b(row, digest_size=16).digest() for row in rows})


def _class_counts(dataset: NodeDataset) -> dict[str, int]:
    if dataset.task == "regression":
        return {}
    if dataset.task == "multilabel":
        held = (dataset.data.y == 1).sum(0).tolist()
        return dict(zip(dataset.classes, held, strict=True))
    known = dataset.data.y[dataset.labelled]
    counts = torch.bincount(known, minlength=dataset.num_classes).tolist()
    return dict(zip(dataset.classes, counts, strict=True))


def _warnings(card: GraphCard, *, by_chance: bool) -> list[str]:
    found = []
    if card.edges == 0:
        found.append("There are no edges: a graph filter has nothing to work on.")
    if card.components is not None and card.components - card.isolated_nodes > 1:
        found.append(
            f"The graph has {card.components} pieces without an edge between them; the largest has "
            f"{100 * (card.largest_component_share or 0):.0f} % of the nodes."
        )
    if card.labelled_share == 0:
        found.append(UNLABELLED_GRAPH)
    elif card.task == "classification":
        present = [name for name, count in card.class_counts.items() if count]
        if len(present) == 1:
            found.append(f"All labelled nodes are of one class, {present[0]!r}.")
        if card.imbalance is not None and card.imbalance >= IMBALANCED:
            found.append(
                f"The largest class is {card.imbalance:.0f} times the smallest: look at macro-F1, "
                "not only at accuracy."
            )
        small = [name for name, count in card.class_counts.items() if count < SMALL_CLASS]
        if small:
            found.append(
                f"Classes with fewer than {SMALL_CLASS} labelled nodes: {', '.join(small)}."
            )
    if card.zero_rows and not by_chance:
        found.append(f"Nodes whose features are all zero: {card.zero_rows}.")
    if (card.duplicate_rows or 0) > card.nodes // 10 and not by_chance:
        share = 100 * (card.duplicate_rows or 0) / card.nodes
        found.append(
            f"Nodes whose features repeat those of another: {card.duplicate_rows} ({share:.0f} %); "
            "copies across splits flatter the score."
        )
    return found


def untested(dataset: NodeDataset) -> tuple[str, ...]:
    """What test scores under the dataset's own split protocol will not say, in sentences."""
    try:
        return make_split(dataset).test_notes
    except DataError:  # there is nothing to split: training will say why
        return ()
