"""How faithful a ranking is: what deleting and inserting nodes in its order does."""

import dataclasses
import functools
import time

import numpy as np
import torch

from lab.studies._core._context import Context
from lab.studies.explanations._graphs import PLANTED, Subject, make_subject
from lab.studies.explanations._methods import Ranking, methods, timed
from longnn.config import Config
from longnn.explain import explain_nodes
from longnn.graphs import GraphOperator

GRAPHS = (PLANTED, "cora")


@dataclasses.dataclass(frozen=True)
class Plan:
    """What all cells share.

    Args:
        blocks: of the planted graph.
        nodes: that are explained.
        sizes: how many nodes are deleted or inserted.
        many: nodes that are explained at once for the time.
        explainer_epochs: of GNNExplainer, as in PyG's examples.
        epochs: of the training, at most.
    """

    blocks: int = 100
    nodes: int = 20
    sizes: tuple[int, ...] = (1, 2, 5, 10, 20, 50)
    many: int = 1000
    explainer_epochs: int = 200
    epochs: int = 1000


QUICK = Plan(blocks=40, nodes=3, sizes=(1, 5), many=50, explainer_epochs=20, epochs=200)


@dataclasses.dataclass(frozen=True)
class MethodCell:
    """One method on one graph; curves are probabilities of the predicted class, by node and size.

    Args:
        start: with all nodes, (nodes,).
        empty: with the features of all nodes deleted, (nodes,).
        deletion: the features of the first k nodes are set to zero, (nodes, sizes).
        insertion: only the first k nodes have features, (nodes, sizes).
        removal: the first k other nodes lose features and edges, (nodes, sizes).
        seconds: per node.
        hits: share of nodes whose informant is ranked first among others; None where none is
            planted.
    """

    start: list[float]
    empty: list[float]
    deletion: list[list[float]]
    insertion: list[list[float]]
    removal: list[list[float]]
    seconds: list[float]
    hits: float | None = None


@dataclasses.dataclass(frozen=True)
class SumsCell:
    """Exactness and speed on one graph.

    Args:
        test: accuracy of the model.
        explained: nodes.
        gap: largest difference between a score and the sum of its parts, by node.
        feature_gap: the same by feature.
        float32: largest difference between the sums and the scores of the float32 model.
        seconds: for all of them at once, with features.
        seconds_nodes: without features.
    """

    test: float
    explained: int
    gap: float
    feature_gap: float
    float32: float
    seconds: float
    seconds_nodes: float


def run(context: Context) -> None:
    """Measure what the record lacks; on the CPU."""
    plan = QUICK if context.quick else Plan()
    record = context.record("record", plan)
    machine = context.machine("cpu")
    config = Config.from_dict({"model": "lon", "device": "cpu", "epochs": plan.epochs})
    for graph in context.choose("datasets", (PLANTED,) if context.quick else GRAPHS):
        subject = functools.cache(
            functools.partial(
                make_subject, graph, config, blocks=plan.blocks, count=plan.nodes,
                data_dir=context.data_dir,
            )
        )  # fmt: skip
        sums = record.cell(
            f"sums/{graph}",
            SumsCell,
            lambda s=subject: measure_sums(s(), plan),  # type: ignore[misc]
            machine=machine,
        )
        context.tell(f"{graph}: {sums.explained} nodes in {sums.seconds:.2f} s, gap {sums.gap:.0e}")
        for name, rank in methods(plan.explainer_epochs).items():
            cell = record.cell(
                f"method/{graph}/{name}",
                MethodCell,
                lambda s=subject, r=rank: measure_method(s(), r, plan),  # type: ignore[misc]
                machine=machine,
            )
            context.tell(f"{graph}, {name}: {np.mean(cell.seconds):.3g} s per node")


def measure_sums(subject: Subject, plan: Plan) -> SumsCell:
    """Explain many nodes at once."""
    nodes = np.arange(subject.dataset.num_nodes)
    many = np.random.default_rng(0).permutation(nodes)[: plan.many]
    seconds = []
    for features in (False, True):
        started = time.perf_counter()
        found = explain_nodes(subject.trained, subject.dataset, many, features=features)
        seconds.append(time.perf_counter() - started)
    with torch.no_grad():
        scores = subject.scores(subject.x).double().numpy()
    chosen = subject.classes.numpy()
    total = np.array([e.constant + e.contribution.sum() for e in found.nodes])
    return SumsCell(
        test=round(subject.test, 4),
        explained=len(many),
        gap=short(max(abs(e.gap) for e in found.nodes)),
        feature_gap=short(max(abs(e.feature_gap or 0.0) for e in found.nodes)),
        float32=short(np.abs(total - scores[many, chosen[many]]).max()),
        seconds=short(seconds[1]),
        seconds_nodes=short(seconds[0]),
    )


def short(value: float) -> float:
    """Three digits.

    >>> short(0.0123456)
    0.0123
    """
    return float(f"{value:.3g}")


@torch.no_grad()
def probability(
    subject: Subject, node: int, kept: np.ndarray, operator: GraphOperator | None = None
) -> float:
    """Of the predicted class, where only the nodes of a mask (nodes,) have features."""
    x = subject.x * torch.from_numpy(kept)[:, None]
    scores = subject.scores(x, operator)[node]
    return round(float(torch.softmax(scores.double(), 0)[subject.classes[node]]), 4)


def without_edges(subject: Subject, gone: np.ndarray) -> GraphOperator:
    """The graph without the edges of some nodes, normalised anew."""
    row, col = subject.dataset.data.edge_index.numpy()
    cut = np.isin(row, gone) | np.isin(col, gone)
    edges = subject.dataset.data.edge_index[:, torch.from_numpy(~cut)]
    model, nodes = subject.trained.models[0], subject.dataset.num_nodes
    return model.make_operator(edges, num_nodes=nodes)


def measure_method(subject: Subject, rank: Ranking, plan: Plan) -> MethodCell:
    """All curves of one method."""
    everyone = np.ones(subject.dataset.num_nodes, dtype=bool)
    cell = MethodCell([], [], [], [], [], [])
    hits = []
    for node in subject.nodes.tolist():
        importance, seconds = timed(rank, subject, node)
        order = np.argsort(-importance, kind="stable")
        others = order[order != node]
        cell.seconds.append(short(seconds))
        cell.start.append(probability(subject, node, everyone))
        cell.empty.append(probability(subject, node, ~everyone))
        deletion, insertion, removal = [], [], []
        for k in plan.sizes:
            first, gone = np.isin(np.arange(len(order)), order[:k]), others[:k]
            deletion.append(probability(subject, node, ~first))
            insertion.append(probability(subject, node, first))
            kept = ~np.isin(np.arange(len(order)), gone)
            removal.append(probability(subject, node, kept, without_edges(subject, gone)))
        for curve, values in (("deletion", deletion), ("insertion", insertion)):
            getattr(cell, curve).append(values)
        cell.removal.append(removal)
        if subject.informant is not None:
            hits.append(int(others[0]) == int(subject.informant[node]))
    return dataclasses.replace(cell, hits=float(np.mean(hits)) if hits else None)
