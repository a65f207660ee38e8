"""From trained repeats to the record of a run: scores, splits, filters in numbers and words.

Knows nothing of folders and files.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longnn import data, report
from longnn._base.provenance import environment
from longnn.data import NodeDataset, Split
from longnn.description._trust import calibration_of, curve_of, label_counts, residuals_of, shift_of
from longnn.graphs import extreme_eigenvalues, spectral_density
from longnn.graphs._outliers import outlying_eigenvalues
from longnn.graphs._spectrum import SpectralDensity
from longnn.metrics import summarize
from longnn.nn import Model
from longnn.nn._ensemble import Ensemble
from longnn.nn._typed import hears_types
from longnn.records import (
    BaselineRecord,
    Density,
    FilterPath,
    FilterRecord,
    GraphRecord,
    History,
    MemberRecord,
    RepeatRecord,
    Request,
    RunRecord,
    SplitRecord,
    Summary,
    summarize_repeats,
)
from longnn.report import mean_response
from longnn.store._adjacency import StoredOperator
from longnn.store._graph import GraphStore
from longnn.store._rows import StoredDataset
from longnn.training import (
    FIELDS,
    Fitted,
    FittedMember,
    Problem,
    Readout,
    RowProblem,
    class_counts,
    score,
    shifted,
)

#: Points of the spectrum at which a filter is written down.
POINTS = 101
#: Nodes up to which the eigenvalues outside the bulk are computed: 0.5 GB there.
OUTLIER_NODES = 1_000_000
#: Stored entries up to which the spectral density is estimated: fifty products, a minute there.
DENSITY_ENTRIES = 50_000_000
#: Of an estimated density, what counts as none.
LEAST_DENSITY = 1e-3


def masks_of(split: Split) -> dict[str, Tensor]:
    """The three sets of a split by name."""
    return {"train": split.train, "val": split.val, "test": split.test}


def make_summary(values: Sequence[float]) -> Summary:
    """A score over the repeats."""
    found = summarize(values)
    return Summary(found["mean"], found["low"], found["high"], found["std"], len(values))


def score_sets(
    predicted: Tensor, dataset: NodeDataset, split: Split, readout: Readout | None = None
) -> dict[str, dict[str, float]]:
    """Scores of predictions on each of the three sets."""
    masks = masks_of(split)
    return {name: score(predicted, dataset, mask, readout) for name, mask in masks.items()}


def describe_run(
    request: Request,
    dataset: NodeDataset,
    problem: Problem,
    scaling: str,
    fitted: Sequence[Fitted],
    baselines: Sequence[BaselineRecord] = (),
) -> RunRecord:
    """The record of a run, complete but for its folder and its times.

    Raises:
        ValueError: where a repeat diverged.
    """
    graph = _describe_graph(request, dataset, problem, scaling)
    largest = _largest(graph, problem)
    repeats = tuple(_describe_repeat(dataset, one, largest, problem.metric) for one in fitted)
    first = fitted[0]
    repeats = (_with_samples(repeats[0], dataset, first), *repeats[1:])
    return RunRecord(
        version=request.version,
        created=request.created,
        command=request.command,
        config=first.config.replace(repeat=len(fitted)).to_dict(),
        environment=environment(problem.device),
        data=graph,
        metric=problem.metric,
        repeats=repeats,
        summary=summarize_repeats([repeat.scores for repeat in repeats], summarize),
        history=_history(fitted),
        path=_filter_path(first),
        seconds={},
        baselines=tuple(baselines),
        portfolio={m.name: m.fitted.config.to_dict() for m in first.members},
    )


def _describe_graph(
    request: Request, dataset: NodeDataset, problem: Problem, scaling: str
) -> GraphRecord:
    """The graph: where it is from, what it is like, and its spectrum."""
    outliers, notes = None, tuple(dataset.notes)
    if isinstance(dataset, StoredDataset):
        density, card = _density(dataset.graph), _card(dataset)
        left = "components, homophily" + ", spectral density" * (density is None)
        notes = (*notes, f"Left out, since they need the whole graph in memory: {left}.")
    else:
        density, card = spectral_density(problem.operator), data.describe(dataset).to_dict()
        # Communities and bipartite-like parts are read off undirected graphs.
        if problem.operator.direction == "none" and problem.operator.num_nodes <= OUTLIER_NODES:
            outliers = outlying_eigenvalues(problem.operator).numpy()
    return GraphRecord(
        name=dataset.name,
        task=dataset.task,
        fingerprint=request.fingerprint,
        classes=tuple(dataset.classes),
        notes=notes,
        card=card,
        density=None
        if density is None
        else Density(np.asarray(density.eigenvalues), np.asarray(density.density)),
        source=request.source,
        scaling=scaling,
        targets=tuple(dataset.targets),
        columns=() if dataset.encoding is None else tuple(dataset.encoding.rows()),
        outliers=outliers,
    )


def _density(graph: GraphStore) -> SpectralDensity | None:
    """The spectral density of a stored graph, or None where that would take too long."""
    if graph.num_entries > DENSITY_ENTRIES:
        return None
    return spectral_density(StoredOperator(graph))  # type: ignore[arg-type]  # it multiplies


def _card(dataset: StoredDataset) -> dict[str, Any]:
    """What a report shows of a stored graph: what its degrees and labels say, and no more."""
    graph = dataset.graph
    degree = np.diff(graph.offsets)
    counts: dict[str, int] = {}
    if dataset.task != "regression":
        y, classes = dataset.data.y, dataset.num_classes
        several = dataset.task == "multilabel"
        held = (y == 1).sum(0) if several else torch.bincount(y, minlength=classes)
        counts = dict(zip(dataset.classes, held.tolist(), strict=True))
    present = [count for count in counts.values() if count]
    return {
        "name": dataset.name,
        "task": dataset.task,
        "nodes": graph.num_nodes,
        "edges": dataset.num_edges,
        "features": graph.num_features,
        "weighted": False,
        "degree_min": int(degree.min()),
        "degree_median": float(np.median(degree)),
        "degree_mean": float(degree.mean()),
        "degree_max": int(degree.max()),
        "isolated_nodes": int((degree == 0).sum()),
        "class_counts": counts,
        "imbalance": max(present) / min(present) if present else None,
        "labelled_share": dataset.num_nodes / graph.num_nodes,
        "notes": list(dataset.notes),
        "warnings": [],
        "fingerprint": dataset.fingerprint(),
    }


def _largest(graph: GraphRecord, problem: Problem) -> float:
    """The largest eigenvalue; on rows the end of the estimated density, or two."""
    if not isinstance(problem, RowProblem):
        return float(extreme_eigenvalues(problem.operator)[1])
    if graph.density is None:
        return 2.0
    eigenvalues, density = graph.density
    return float(eigenvalues[density > LEAST_DENSITY].max(initial=0.0))


def _describe_repeat(
    dataset: NodeDataset, one: Fitted, largest: float, metric: str
) -> RepeatRecord:
    """One repeat: its split, how training went, scores and filters."""
    split, result = one.split, one.result
    one.check()
    train, val, test = split.sizes
    notes, confusion, counts = split.notes, None, None
    if dataset.task == "multilabel":
        counts = label_counts(one.predicted, dataset, split.test, one.readout)
    if dataset.task == "classification":
        confusion = _confusion(one.readout.choose(one.predicted), dataset, split.test)
        # Which classes have no test node, reports see in the confusion, over all repeats.
        notes = tuple(note for note in notes if not test or note not in split.test_notes)
    return RepeatRecord(
        seed=one.config.seed,
        split=SplitRecord(split.protocol, split.seed, train, val, test, tuple(notes)),
        epochs=result.epochs,
        best_epoch=result.best_epoch,
        stopped=result.stopped,
        scores=score_sets(one.predicted, dataset, split, one.readout),
        filters=describe_filters(one.model, one.start, largest, _types(dataset)),
        confusion=confusion,
        counts=counts,
        threshold=one.readout.threshold,
        shift=shift_of(dataset, split, one.readout),
        calibration=calibration_of(one.predicted, dataset, split.test, one.readout),
        members=tuple(_describe_member(dataset, m, largest, metric, one) for m in one.members),
    )


def _types(dataset: NodeDataset) -> list[str]:
    return [r.name for r in dataset.relations]


def read_alike(predicted: Tensor, dataset: NodeDataset, one: Fitted) -> Tensor:
    """What another model predicts on a split, following the validation nodes where this one does.

    So a difference between their scores is not that of class frequencies.
    """
    if not one.readout.shift:
        return predicted
    y, split = dataset.data.y, one.split
    return shifted(
        predicted, y, class_counts(y, split.train.cpu(), dataset.outputs), split.val.cpu()
    )


def _describe_member(
    dataset: NodeDataset, member: FittedMember, largest: float, metric: str, whole: Fitted
) -> MemberRecord:
    """A member of an ensemble: its scores, read as the whole, and its first filter as one curve."""
    one = member.fitted
    split, result, curve, words = one.split, one.result, None, ""
    predicted = read_alike(one.predicted, dataset, whole) if one.is_sound else one.predicted
    val, test = (
        score(predicted, dataset, mask, one.readout).get(metric) if one.is_sound else None
        for mask in (split.val, split.test)
    )
    types = _types(dataset)
    filters = describe_filters(one.model, one.start, largest, types) if one.is_sound else ()
    if filters:
        curve, words = mean_response(filters[0].response), filters[0].words
    return MemberRecord(
        name=member.name,
        model=one.config.model,
        weight=member.weight,
        epochs=result.epochs,
        best_epoch=result.best_epoch,
        stopped=result.stopped,
        val=val,
        test=test,
        words=words,
        eigenvalues=filters[0].eigenvalues if filters else None,
        response=curve,
    )


def _with_samples(repeat: RepeatRecord, dataset: NodeDataset, one: Fitted) -> RepeatRecord:
    """The first repeat, with what its figures show of single nodes."""
    test, readout = one.split.test, one.readout
    return dataclasses.replace(
        repeat,
        curve=curve_of(one.predicted, dataset, test, readout),
        residuals=residuals_of(one.predicted, dataset, test),
    )


@torch.no_grad()
def describe_filters(
    model: Model,
    start: Sequence[Mapping[str, float]],
    largest: float,
    types: Sequence[str] = (),
) -> tuple[FilterRecord, ...]:
    """What each filter of a model has become: basis, response, norm, words.

    Args:
        model: with its filters trained.
        start: each filter's basis before training.
        largest: the graph's largest eigenvalue. Words are about the spectrum up to there: beyond
            it a polynomial may do as it likes, since no signal is there.
        types: names of the types of edges, if they have types.
    """
    lead = model.lead if isinstance(model, Ensemble) else model
    names = types if types and hears_types(lead) else [""]
    largest = 2.0 if len(names) > 1 else largest  # a type has a spectrum of its own
    grid = torch.linspace(0, 2, POINTS, dtype=torch.float64)
    described = []
    for number, (f, before) in enumerate(zip(model.filters(), start, strict=True)):
        response = f.response(grid).cpu().numpy()
        now = {name: v for name, v in f.basis_parameters().items() if v.dim() == 0}
        described.append(
            FilterRecord(
                basis=f.basis.name,
                degree=f.degree,
                learned={name: float(v) for name, v in now.items()} if f.learn_basis else {},
                start=dict(before),
                eigenvalues=grid.numpy(),
                response=response,
                norm=f.norm().cpu().numpy(),
                words=put_in_words(grid.numpy(), response, largest, model.direction),
                edge_type=names[number % len(names)],  # those of a layer follow each other
            )
        )
    return tuple(described)


def put_in_words(
    grid: np.ndarray, response: np.ndarray, largest: float, direction: str = "none"
) -> str:
    """A filter in words, judged where the graph has frequencies; on a double cover by its parts."""
    if direction == "cover":
        return report.describe_cover_filter(grid, response)
    inside = grid <= max(largest, grid[1]) + 1e-6
    return report.describe_filter(grid[inside], response[:, inside])


def _confusion(chosen: Tensor, dataset: NodeDataset, mask: Tensor) -> np.ndarray:
    """Counts of test nodes, rows = true class, columns = predicted class."""
    size = dataset.num_classes
    pairs = dataset.data.y[mask] * size + chosen[mask]
    return torch.bincount(pairs, minlength=size * size).view(size, size).double().numpy()


def _history(fitted: Sequence[Fitted]) -> History:
    """The epochs of all repeats, one after the other."""
    lengths = [one.result.epochs for one in fitted]
    columns = {
        "repeat": np.repeat(np.arange(len(fitted)), lengths).astype(float),
        "epoch": np.concatenate([np.arange(1, n + 1) for n in lengths]).astype(float),
    }
    for field in FIELDS:
        rows = [one.result.history[field].double().numpy() for one in fitted]
        columns[field] = np.concatenate(rows)
    return History(columns)


def _filter_path(first: Fitted) -> FilterPath | None:
    beta = first.result.filter_path
    if beta is None:
        return None
    return FilterPath(np.arange(1, len(beta) + 1).astype(float), beta.numpy())
