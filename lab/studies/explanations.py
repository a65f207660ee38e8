"""How faithful explanations are: the exact split against GNNExplainer, saliency and chance.

Nodes are ranked by what they give to a prediction. Then they are deleted in that order, or inserted
into a graph without features. A faithful ranking makes the probability of the predicted class fall,
or rise, at once. On a planted graph the node that decides is known.
"""

import dataclasses
import functools
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.explain import Explainer, GNNExplainer

from lab.records import Values
from lab.studies._engine import Cell, Cells, Context, read_record, rounded
from lab.studies._views import ResultTable
from longnn import data, training
from longnn.config import Config
from longnn.data import NodeDataset, from_data, make_split
from longnn.explain import explain_nodes
from longnn.graphs import GraphOperator
from longnn.report import GREY, NAVY, ORANGE, SKY, in_style, new_figure
from longnn.training import Trained

TITLE = "How faithful explanations are, and how fast (not in the paper)"
ORDER = 120

#: Blocks of the planted graph; nodes that are explained; how many nodes are deleted or inserted;
#: nodes explained at once for the time; epochs of GNNExplainer, as in PyG's examples, and of the
#: training, at most.
FULL: dict[str, Any] = {
    "blocks": 100,
    "nodes": 20,
    "sizes": [1, 2, 5, 10, 20, 50],
    "many": 1000,
    "explainer_epochs": 200,
    "epochs": 1000,
}
QUICK: dict[str, Any] = {
    "blocks": 40,
    "nodes": 3,
    "sizes": [1, 5],
    "many": 50,
    "explainer_epochs": 20,
    "epochs": 200,
}
NAMES = {
    "exact": "exact contributions",
    "gnnexplainer": "GNNExplainer",
    "gnnexplainer-tuned": "GNNExplainer, rate 0.1",
    "saliency": "gradient x input",
    "random": "random order",
}
CURVES = {"deletion": "deletion", "insertion": "insertion", "removal": "removal of nodes"}
LOOKS = {
    "exact": (NAVY, "-", "o"),
    "gnnexplainer": (ORANGE, "--", "s"),
    "gnnexplainer-tuned": (ORANGE, (0, (1, 1)), "D"),
    "saliency": (SKY, "-.", "^"),
    "random": (GREY, ":", "x"),
}
#: Nodes of GNNExplainer that the time of many exact ones is compared with.
FEW = 10
PLANTED = "planted"
GRAPHS = (PLANTED, "cora")
#: Middle nodes of a block, leaves of each, and features that are noise.
MIDDLES, LEAVES, NOISE = 3, 3, 8
#: Of a block: its centre, its middle nodes and all their leaves.
BLOCK = 1 + MIDDLES + MIDDLES * LEAVES


def planted(blocks: int, seed: int = 0) -> tuple[NodeDataset, np.ndarray]:
    """A graph where the class of each centre is written on one node two hops away.

    A block is a centre, three middle nodes and three leaves of each. One leaf, the informant, has
    a mark of one of two kinds, and that is the class of the centre. All nodes have noise, too.
    Random edges between leaves join the blocks. Only centres have a label.

    Returns:
        the graph, and the informant of every node, int64 (nodes,), -1 for those that are no centre.
    """
    rng = np.random.default_rng(seed)
    size = blocks * BLOCK
    centre = np.arange(blocks) * BLOCK
    middle = centre[:, None] + 1 + np.arange(MIDDLES)  # (blocks, middles)
    leaf = centre[:, None] + 1 + MIDDLES + np.arange(MIDDLES * LEAVES)  # (blocks, leaves)
    ends = [(np.repeat(centre, MIDDLES), middle.ravel())]
    ends.append((np.repeat(middle, LEAVES, axis=1).ravel(), leaf.ravel()))
    ends.append((rng.permutation(leaf.ravel()), leaf.ravel()))
    row, col = np.concatenate(ends, axis=1)
    edges = np.stack([np.r_[row, col], np.r_[col, row]])[:, np.r_[row != col, row != col]]
    edges = np.unique(edges, axis=1)
    told = leaf[np.arange(blocks), rng.integers(leaf.shape[1], size=blocks)]
    label = rng.integers(2, size=blocks)
    x = 0.3 * rng.standard_normal((size, 2 + NOISE))
    x[:, :2] = 0
    x[told, label] = 1
    y, informant = np.full(size, -1), np.full(size, -1)
    y[centre], informant[centre] = label, told
    graph = Data(
        x=torch.from_numpy(x).float(), edge_index=torch.from_numpy(edges), y=torch.from_numpy(y)
    )
    return from_data(graph, name=PLANTED), informant


@dataclasses.dataclass(frozen=True, eq=False)
class Subject:
    """A trained model and nodes of its test set to explain."""

    dataset: NodeDataset
    trained: Trained
    test: float  # accuracy on the test nodes
    nodes: np.ndarray  # to explain: test nodes that are predicted right
    informant: np.ndarray | None  # (nodes,), where explanations are planted

    def __post_init__(self) -> None:
        problem = self.trained.problem(self.dataset)
        x = self.trained.scaling.apply(self.dataset.data.x)
        dense = x.to_dense() if x.layout is not torch.strided else x
        predicted = self.trained.predict(problem).argmax(1)
        vars(self).update(x=dense.float(), operator=problem.operator, classes=predicted)

    x: Tensor = dataclasses.field(init=False)  # (nodes, features), as the model sees them
    operator: GraphOperator = dataclasses.field(init=False)
    classes: Tensor = dataclasses.field(init=False)  # (nodes,), predicted

    def scores(self, x: Tensor, operator: GraphOperator | None = None) -> Tensor:
        """The model on changed features, and perhaps a changed graph."""
        model = self.trained.models[0]
        assert not model.training, "dropout is on: curves would be noise"
        return model.scores(x, operator or self.operator)


def make_subject(
    name: str, config: Config, *, blocks: int, count: int, data_dir: str | None
) -> Subject:
    """Train LON-GNN in the paper's form and draw the nodes to explain."""
    informant = None
    if name == PLANTED:
        dataset, informant = planted(blocks)
    else:
        dataset = data.load(name, data_dir=data_dir)
    split = make_split(dataset, "stratified", config.seed)
    job = training.Job(dataset, [config], [split])
    fitted = job.run()
    trained = Trained.collect(dataset, job.scaling_of(0), fitted)
    right = fitted[0].predicted.argmax(1) == dataset.data.y
    test = float(right[split.test].double().mean())
    places = np.flatnonzero((split.test & right).numpy())
    drawn = np.random.default_rng(0).permutation(places)[:count]
    return Subject(dataset, trained, test, drawn, informant)


#: Learning rates of GNNExplainer: PyG's default, and the best of five settings that were tried on
#: eight nodes of the planted graph, by deletion. The default leaves its masks near their start.
RATE, TUNED = 0.01, 0.1

#: Importance (nodes,) of all nodes for the prediction of one.
Ranking = Callable[[Subject, int], np.ndarray]


def exact(subject: Subject, node: int) -> np.ndarray:
    """Contributions, as ``longnn explain`` gives them."""
    e = explain_nodes(subject.trained, subject.dataset, [node], features=False)[0]
    found = np.zeros(subject.dataset.num_nodes)
    found[np.asarray(e.sources)] = e.contribution
    return found


def saliency(subject: Subject, node: int) -> np.ndarray:
    """Gradient times input of the predicted class, summed over the features of a node."""
    x = subject.x.clone().requires_grad_()
    score = subject.scores(x)[node, subject.classes[node]]
    (gradient,) = torch.autograd.grad(score, x)
    found: np.ndarray = (x * gradient).sum(1).detach().double().numpy()
    return found


def by_chance(subject: Subject, node: int) -> np.ndarray:
    """Any order, but the same at every call."""
    return np.random.default_rng(node).random(subject.dataset.num_nodes)


class _Wrapped(nn.Module):
    """The trained model as PyG's explainers call it; the operator is made beforehand."""

    def __init__(self, subject: Subject) -> None:
        super().__init__()
        self.model, self._operator = subject.trained.models[0], subject.operator
        # PyG puts back the mode that it finds: a new module trains, and dropout would stay on in
        # the model that all methods share.
        self.eval()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.model.scores(x, self._operator)


def gnn_explainer(epochs: int, rate: float = RATE) -> Ranking:
    """PyG's GNNExplainer with one mask per node, trained for each explained node."""

    def rank(subject: Subject, node: int) -> np.ndarray:
        torch.manual_seed(node)
        explainer = Explainer(
            _Wrapped(subject),
            GNNExplainer(epochs=epochs, lr=rate),
            explanation_type="model",
            node_mask_type="object",
            model_config={
                "mode": "multiclass_classification",
                "task_level": "node",
                "return_type": "raw",
            },
        )
        found = explainer(subject.x, subject.dataset.data.edge_index, index=node)
        mask: np.ndarray = found.node_mask[:, 0].double().numpy()
        return mask

    return rank


def methods(epochs: int) -> dict[str, Ranking]:
    """All of them by name."""
    return {
        "exact": exact,
        "gnnexplainer": gnn_explainer(epochs),
        "gnnexplainer-tuned": gnn_explainer(epochs, TUNED),
        "saliency": saliency,
        "random": by_chance,
    }


def cells(context: Context) -> Cells:
    """Exactness and speed, then every method, on each graph; on the CPU."""
    plan = QUICK if context.quick else FULL
    config = Config.from_dict({"model": "lon", "device": "cpu", "epochs": plan["epochs"]})
    for graph in context.choose("datasets", (PLANTED,) if context.quick else GRAPHS):
        options = {"blocks": plan["blocks"], "count": plan["nodes"], "data_dir": context.data_dir}
        subject = functools.cache(functools.partial(make_subject, graph, config, **options))
        sums = functools.partial(measure_sums, subject, plan)
        yield Cell("record", plan, f"sums/{graph}", sums, device="cpu")
        for name, rank in methods(plan["explainer_epochs"]).items():
            curves = functools.partial(measure_method, subject, rank, plan)
            yield Cell("record", plan, f"method/{graph}/{name}", curves, device="cpu")


def measure_sums(load: Callable[[], Subject], plan: Mapping[str, Any]) -> dict[str, Any]:
    """Explain many nodes at once: exactness, and seconds with and without features."""
    subject = load()
    nodes = np.arange(subject.dataset.num_nodes)
    many = np.random.default_rng(0).permutation(nodes)[: plan["many"]]
    seconds = []
    for features in (False, True):
        started = time.perf_counter()
        found = explain_nodes(subject.trained, subject.dataset, many, features=features)
        seconds.append(time.perf_counter() - started)
    with torch.no_grad():
        scores = subject.scores(subject.x).double().numpy()
    chosen = subject.classes.numpy()
    total = np.array([e.constant + e.contribution.sum() for e in found.nodes])
    return {
        "test": round(subject.test, 4),
        "explained": len(many),
        "gap": rounded(max(abs(e.gap) for e in found.nodes), 3),
        "feature_gap": rounded(max(abs(e.feature_gap or 0.0) for e in found.nodes), 3),
        "float32": rounded(np.abs(total - scores[many, chosen[many]]).max(), 3),
        "seconds": rounded(seconds[1], 3),
        "seconds_nodes": rounded(seconds[0], 3),
    }


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


def measure_method(
    load: Callable[[], Subject], rank: Ranking, plan: Mapping[str, Any]
) -> dict[str, Any]:
    """All curves of one method: probabilities of the predicted class, (nodes, sizes).

    With all nodes (``start``) and without the features of any (``empty``); with the features of
    the first k nodes set to zero (``deletion``); with theirs alone (``insertion``); without the
    first k other nodes and their edges (``removal``). ``hits`` is the share of nodes whose
    informant is ranked first among others.
    """
    subject = load()
    everyone = np.ones(subject.dataset.num_nodes, dtype=bool)
    names = ("start", "empty", "deletion", "insertion", "removal", "seconds")
    values: dict[str, list[Any]] = {name: [] for name in names}
    hits = []
    for node in subject.nodes.tolist():
        started = time.perf_counter()
        importance = rank(subject, node)
        seconds = time.perf_counter() - started
        order = np.argsort(-importance, kind="stable")
        others = order[order != node]
        values["seconds"].append(rounded(seconds, 3))
        values["start"].append(probability(subject, node, everyone))
        values["empty"].append(probability(subject, node, ~everyone))
        curves: dict[str, list[float]] = {"deletion": [], "insertion": [], "removal": []}
        for k in plan["sizes"]:
            first, gone = np.isin(np.arange(len(order)), order[:k]), others[:k]
            curves["deletion"].append(probability(subject, node, ~first))
            curves["insertion"].append(probability(subject, node, first))
            kept, cut = ~np.isin(np.arange(len(order)), gone), without_edges(subject, gone)
            curves["removal"].append(probability(subject, node, kept, cut))
        for name, curve in curves.items():
            values[name].append(curve)
        if subject.informant is not None:
            hits.append(int(others[0]) == int(subject.informant[node]))
    return {**values, "hits": float(np.mean(hits)) if hits else None}


def read(folder: Path) -> tuple[Values, dict[str, dict[str, Values]], dict[str, Values]]:
    """The plan, the methods of each graph as tables list them, and the sums of each graph."""
    record = read_record(folder)
    sums = record.below("sums/")
    graphs = [graph for graph in GRAPHS if graph in sums]
    measured = {graph: record.below(f"method/{graph}/") for graph in graphs}
    ordered = {g: {name: of[name] for name in NAMES if name in of} for g, of in measured.items()}
    return record.plan, ordered, {graph: sums[graph] for graph in graphs}


def tables(folder: Path) -> list[ResultTable]:
    """Faithfulness of each method, and exactness and time."""
    plan, measured, sums = read(folder)
    return [_faithfulness(plan, measured), _times(measured, sums)]


def _faithfulness(plan: Values, measured: Mapping[str, Mapping[str, Values]]) -> ResultTable:
    rows = []
    for graph, by_method in measured.items():
        for name, cell in by_method.items():
            hits = f"{100 * cell['hits']:.0f} %" if "hits" in cell else "–"
            areas = [f"{np.mean(cell[curve]):.3f}" for curve in CURVES]
            rows.append(
                [f"{graph}, {NAMES[name]}", *areas, hits, f"{np.mean(cell['seconds']):.2g}"]
            )
    columns = ["graph and method", "deletion (low is good)", "insertion (high is good)"]
    columns += ["removal of nodes (low is good)", "informant first", "seconds per node"]
    sizes = ", ".join(map(str, plan["sizes"]))
    caption = (
        f"Mean probability of the predicted class over {plan['nodes']} test nodes and the first "
        f"{sizes} nodes of each ranking: their features deleted, only they inserted, or other "
        "nodes removed with their edges; how often the planted informant is first among other "
        f"nodes; seconds for one node. GNNExplainer: one mask per node, {plan['explainer_epochs']} "
        "epochs, at PyG's learning rate of 0.01 and at 0.1, the best of five settings tried on "
        "eight nodes of the planted graph."
    )
    return ResultTable("faithfulness", caption, columns, rows)


def _times(measured: Mapping[str, Mapping[str, Values]], sums: Mapping[str, Values]) -> ResultTable:
    rows = []
    for graph, cell in sums.items():
        few = FEW * float(np.mean(measured[graph]["gnnexplainer"]["seconds"]))
        gaps = [f"{cell[key]:.0e}" for key in ("gap", "feature_gap", "float32")]
        seconds = [f"{cell[key]:.2g}" for key in ("seconds_nodes", "seconds")]
        rows.append([graph, str(cell["explained"]), *gaps, *seconds, f"{few:.3g}"])
    columns = ["graph", "nodes explained", "gap by node", "gap by feature", "gap to float32"]
    columns += ["seconds by node", "seconds with features", f"seconds of GNNExplainer, {FEW} nodes"]
    caption = (
        "Largest difference between a score and the sum of its parts, and between that sum and "
        "the score of the float32 model; seconds for all nodes at once, on one thread of a shared "
        f"machine; GNNExplainer: {FEW} times its mean."
    )
    return ResultTable("sums", caption, columns, rows)


def figures(folder: Path) -> dict[str, Figure]:
    """All curves: one row per graph, one column per kind."""
    plan, measured, _ = read(folder)
    return {"curves": draw_curves(plan, measured)}


@in_style
def draw_curves(plan: Values, cells: Mapping[str, Mapping[str, Values]]) -> Figure:
    """Mean probability of the predicted class over the number of nodes."""
    figure, grid = new_figure(
        "Probability of the predicted class",
        height=0.9 + 2.4 * len(cells), rows=len(cells), columns=len(CURVES),
    )  # fmt: skip
    at = np.arange(len(plan["sizes"]) + 1)
    for row, (graph, methods) in zip(grid, cells.items(), strict=True):
        for axes, (curve, title) in zip(row, CURVES.items(), strict=True):
            for name, cell in methods.items():
                colour, line, mark = LOOKS[name]
                first = np.mean(cell["empty" if curve == "insertion" else "start"])
                values = [first, *np.mean(cell[curve], axis=0)]
                look = {"color": colour, "linestyle": line, "marker": mark, "markersize": 4.5}
                axes.plot(at, values, **look, label=NAMES[name])
            axes.set_title(f"{graph}: {title}", fontsize=9.5)
            axes.set_xticks(at, ["0", *map(str, plan["sizes"])])
            axes.set_ylim(0, 1.03)
        row[0].set_ylabel("probability")
    for axes in grid[-1]:
        axes.set_xlabel("nodes")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def facts(folder: Path) -> dict[str, Any]:
    """On how many graphs the exact ranking is better than the others, and how much faster."""
    _, measured, sums = read(folder)
    learned = ("gnnexplainer", "gnnexplainer-tuned")

    def area(cell: Values, curve: str) -> float:
        return float(np.mean(cell[curve]))

    def better(of: Mapping[str, Values], other: str) -> bool:
        lower = area(of["exact"], "deletion") < area(of[other], "deletion")
        return lower and area(of["exact"], "insertion") > area(of[other], "insertion")

    nearly = [
        abs(area(of["exact"], curve) - area(of["saliency"], curve))
        for of in measured.values()
        for curve in CURVES
    ]
    few = {g: FEW * np.mean(of["gnnexplainer"]["seconds"]) for g, of in measured.items()}
    return {
        "graphs": len(measured),
        "better": sum(all(better(of, other) for other in learned) for of in measured.values()),
        "gap": max(max(of["gap"], of["feature_gap"]) for of in sums.values()),
        "nearly": math.ceil(100 * max(nearly)) / 100,
        "explained": min(of["explained"] for of in sums.values()),
        "few": FEW,
        "faster": sum(sums[g]["seconds"] < seconds for g, seconds in few.items()),
    }
