"""From trained models to the record of a run: scores, filters in numbers and words.

What makes scores believable is described too: class frequencies, calibration, curves and residuals
of test nodes. What a run is compared with is in :mod:`longnn.rivals`.

Knows nothing of folders: it computes, :mod:`longnn.records` holds and :mod:`longnn.runs` writes.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from longnn import data
from longnn._base.provenance import environment
from longnn.data import NodeDataset, Split
from longnn.data._coordinates import coordinates_of
from longnn.graphs import extreme_eigenvalues, spectral_density
from longnn.graphs._spectrum import outlying_eigenvalues
from longnn.nn import Model
from longnn.nn._ensemble import Ensemble
from longnn.nn._typed import hears_types
from longnn.records import (
    BaselineRecord,
    Bins,
    Calibration,
    Covered,
    Density,
    ErrorMap,
    ErrorRecord,
    FilterPath,
    FilterRecord,
    FrequencyShift,
    GraphRecord,
    History,
    KnownRings,
    MemberRecord,
    PrecisionRecall,
    RepeatRecord,
    Request,
    Residuals,
    RunRecord,
    SplitRecord,
    Summary,
    summarize_repeats,
)
from longnn.report._filters import describe_cover_filter, describe_filter, mean_response
from longnn.training import (
    FIELDS,
    Fitted,
    FittedMember,
    Problem,
    Readout,
    class_counts,
    score,
    shifted,
)
from longnn.training._known import Around, Rests

#: Points of the spectrum at which a filter is written down.
POINTS = 101
#: Nodes up to which the eigenvalues outside the bulk are computed: 0.5 GB there.
OUTLIER_NODES = 1_000_000
#: Of an estimated density, what counts as none.
LEAST_DENSITY = 1e-3
#: Groups of predictions by how sure they are.
BINS = 10
#: Points of a curve, and nodes of a scatter, that are written down.
CURVE_POINTS, SCATTER_NODES = 200, 2000
#: Steps that are told apart, and test nodes that are asked what known answers count there: fewer on
#: a graph so large that there were more cells.
RINGS, ASKED, ASKED_CELLS = 6, 32, 1 << 21
#: Draws of the test nodes for the interval of a score on one split, and most nodes of all draws.
BOOTSTRAP, BOOTSTRAPPED = 200, 10_000_000
#: Errors that are written down with the ids of their nodes.
WORST = 20


def score_sets(
    predicted: Tensor, dataset: NodeDataset, split: Split, readout: Readout | None = None
) -> dict[str, dict[str, float]]:
    """Scores of predictions on each of the three sets."""
    masks = {"train": split.train, "val": split.val, "test": split.test}
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
    dataset = dataset.asked
    repeats = tuple(_describe_repeat(dataset, fit, largest, problem.metric) for fit in fitted)
    first, test = fitted[0], fitted[0].split.test
    samples = dataclasses.replace(  # of single nodes, of the first repeat alone
        repeats[0],
        curve=curve_of(first.predicted, dataset, test, first.readout),
        residuals=residuals_of(first.predicted, dataset, test),
        error_map=error_map_of(first.predicted, dataset, test, first.readout),
        worst=worst_errors(first.predicted, dataset, test, first.readout),
        known_rings=known_rings_of(first, dataset),
    )
    beta = first.result.filter_path
    summary = summarize_repeats([repeat.scores for repeat in repeats])
    drawn = drawn_scores([(fit.predicted, fit.readout) for fit in fitted], dataset, fitted)
    summary["test"] = over_nodes(summary["test"], drawn)
    return RunRecord(
        version=request.version,
        created=request.created,
        command=request.command,
        config=first.config.replace(repeat=len(fitted)).to_dict(),
        environment=environment(problem.device),
        data=graph,
        metric=problem.metric,
        repeats=(samples, *repeats[1:]),
        summary=summary,
        history=_history(fitted),
        path=None
        if beta is None
        else FilterPath(np.arange(1, len(beta) + 1).astype(float), beta.numpy()),
        baselines=tuple(baselines),
        portfolio={m.name: m.fitted.config.to_dict() for m in first.members},
    )


def _describe_graph(
    request: Request, dataset: NodeDataset, problem: Problem, scaling: str
) -> GraphRecord:
    """The graph: where it is from, what it is like, and its spectrum."""
    outliers, density, notes = None, None, tuple(dataset.notes)
    card = data.describe(dataset).to_dict()
    operator = dataset.backing.operator() if problem.by_rows else problem.operator
    if operator is not None:
        density = spectral_density(operator)
    missing = ["spectral density"] * (density is None)
    missing += ["components", "homophily"] * ("components" not in card)
    if missing:
        left = ", ".join(missing)
        notes = (*notes, f"Left out, since they need the whole graph in memory: {left}.")
    # Communities and bipartite-like parts are read off undirected graphs.
    plain = not problem.by_rows and operator.direction == "none"
    if plain and operator.num_nodes <= OUTLIER_NODES:
        outliers = outlying_eigenvalues(operator).numpy()
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


def _largest(graph: GraphRecord, problem: Problem) -> float:
    """The largest eigenvalue; on rows the end of the estimated density, or two."""
    if not problem.by_rows:
        return float(extreme_eigenvalues(problem.operator)[1])
    if graph.density is None:
        return 2.0
    eigenvalues, density = graph.density
    return float(eigenvalues[density > LEAST_DENSITY].max(initial=0.0))


def _describe_repeat(
    dataset: NodeDataset, fit: Fitted, largest: float, metric: str
) -> RepeatRecord:
    """One repeat: its split, how training went, scores and filters."""
    split, result = fit.split, fit.result
    fit.check()
    train, val, test = split.sizes
    notes, confusion, counts = split.notes, None, None
    if dataset.task == "multilabel":
        counts = label_counts(fit.predicted, dataset, split.test, fit.readout)
    if dataset.task == "classification":
        confusion = _confusion(fit.readout.choose(fit.predicted), dataset, split.test)
        # Which classes have no test node, reports see in the confusion, over all repeats.
        notes = tuple(note for note in notes if not test or note not in split.test_notes)
    return RepeatRecord(
        seed=fit.config.seed,
        split=SplitRecord(split.protocol, split.seed, train, val, test, tuple(notes)),
        epochs=result.epochs,
        best_epoch=result.best_epoch,
        stopped=result.stopped,
        scores=score_sets(fit.predicted, dataset, split, fit.readout),
        filters=describe_filters(fit.model, fit.start, largest, [*dataset.backing.types()]),
        confusion=confusion,
        counts=counts,
        threshold=fit.readout.threshold,
        factors=np.array(fit.readout.factors) if fit.readout.factors else None,
        shift=shift_of(dataset, split, fit.readout),
        calibration=calibration_of(fit.predicted, dataset, split.test, fit.readout),
        covered=covered_of(fit, dataset),
        members=tuple(_describe_member(dataset, m, largest, metric, fit) for m in fit.members),
    )


def read_alike(predicted: Tensor, dataset: NodeDataset, fit: Fitted) -> Tensor:
    """What another model predicts on a split, following the validation nodes where this one does.

    So a difference between their scores is not that of class frequencies.
    """
    if not fit.readout.shift:
        return predicted
    y, split = dataset.data.y, fit.split
    return shifted(
        predicted, y, class_counts(y, split.train.cpu(), dataset.outputs), split.val.cpu()
    )


def _describe_member(
    dataset: NodeDataset, member: FittedMember, largest: float, metric: str, whole: Fitted
) -> MemberRecord:
    """A member of an ensemble: its scores, read as the whole, and its first filter as one curve."""
    fit = member.fitted
    split, result, curve, words = fit.split, fit.result, None, ""
    predicted = read_alike(fit.predicted, dataset, whole) if fit.is_sound else fit.predicted
    val, test = (
        score(predicted, dataset, mask, fit.readout).get(metric) if fit.is_sound else None
        for mask in (split.val, split.test)
    )
    types = [*dataset.backing.types()]
    filters = describe_filters(fit.model, fit.start, largest, types) if fit.is_sound else ()
    if filters:
        curve, words = mean_response(filters[0].response), filters[0].words
    return MemberRecord(
        name=member.name,
        model=fit.config.model,
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
        return describe_cover_filter(grid, response)
    inside = grid <= max(largest, grid[1]) + 1e-6
    return describe_filter(grid[inside], response[:, inside])


def _confusion(chosen: Tensor, dataset: NodeDataset, mask: Tensor) -> np.ndarray:
    """Counts of test nodes, rows = true class, columns = predicted class."""
    size = dataset.num_classes
    pairs = dataset.data.y[mask] * size + chosen[mask]
    return torch.bincount(pairs, minlength=size * size).view(size, size).double().numpy()


def _history(fitted: Sequence[Fitted]) -> History:
    """The epochs of all repeats, one after the other."""
    lengths = [fit.result.epochs for fit in fitted]
    columns = {
        "repeat": np.repeat(np.arange(len(fitted)), lengths).astype(float),
        "epoch": np.concatenate([np.arange(1, n + 1) for n in lengths]).astype(float),
    }
    for field in FIELDS:
        rows = [fit.result.history[field].double().numpy() for fit in fitted]
        columns[field] = np.concatenate(rows)
    return History(columns)


def calibration_of(
    predicted: Tensor, dataset: NodeDataset, test: Tensor, readout: Readout
) -> Calibration | None:
    """How sure the predictions are and how often they are right; None without test nodes."""
    if dataset.task == "regression" or not bool(test.any()):
        return None
    before, after = (
        make_bins(*_sure_and_right(p, dataset, test))
        for p in (readout.uncalibrated(predicted), predicted)
    )
    return Calibration(readout.temperature, before, after)


def covered_of(fit: Fitted, dataset: NodeDataset) -> Covered | None:
    """How many test nodes have their answer in their interval or set; None without either."""
    test, stated, learned = fit.split.test.cpu(), fit.config.coverage, fit.intervals
    if learned is None or not bool(test.any()):
        return None
    y, p = dataset.data.y.cpu()[test], fit.predicted
    if dataset.task == "regression":
        margin = learned.margin(p, fit.opinion.signals(dataset.degrees.cpu()), stated)[test]
        there, hit, size = ~y.isnan(), (p[test] - y).abs() <= margin, 2 * margin
    else:
        sets = learned.plausible(p, fit.readout.choose(p), stated)[test]
        there = ~y.isnan() if y.is_floating_point() else y >= 0
        own = torch.where(there, y, 0).long()[..., None]
        hit, size = sets.gather(-1, own)[..., 0], sets.sum(-1)
    weight = torch.ones(len(y)) if dataset.node_weight is None else dataset.node_weight[test]
    w = weight.double().reshape(-1, *[1] * (there.dim() - 1)).expand(there.shape)[there]
    shares = (float((v[there].double() * w).sum() / w.sum()) for v in (hit, size))
    return Covered(stated, *shares)


def known_rings_of(fit: Fitted, dataset: NodeDataset) -> KnownRings | None:
    """How far away the known answers are that count at some test nodes; None where none do.

    Of several targets or labels, for the first that they change; all classes have one filter.
    """
    test, told, learned = fit.split.test.cpu().nonzero()[:, 0], fit.told, fit.known
    around = None if told is None else Around.of(dataset, told.rests.r.dtype)
    if told is None or learned is None or around is None or not len(test):
        return None
    order = torch.randperm(len(test), generator=torch.Generator().manual_seed(0))
    asked = test[order[: max(1, min(ASKED, ASKED_CELLS // around.nodes))]]
    k = next(k for k, row in enumerate(learned.coefficients) if any(row))
    learned = dataclasses.replace(learned, coefficients=learned.coefficients[k : k + 1])
    rests = told.spread_out(told.places(dataset.ids), dataset.num_nodes)
    weights = learned.weights(around, Rests(rests.r[:, k : k + 1], rests.fold), asked)[:, :, 0]
    share = weights.double() / weights.double().abs().sum().clamp_min(1e-12)  # (nodes, asked)
    parts = (share != 0).double() / len(asked), share.clamp_min(0), -share.clamp_max(0)
    ring = around.rings(asked, RINGS, weights.dtype)
    sums = [[float(part[ring == d].sum()) for d in range(1, RINGS + 1)] for part in parts]
    return KnownRings(len(asked), *map(np.array, sums))


def shift_of(dataset: NodeDataset, split: Split, readout: Readout) -> FrequencyShift | None:
    """How probabilities are shifted, and the class frequencies behind it; None if they are not."""
    if not readout.shift:
        return None
    y = dataset.data.y
    sets, classes = (split.train, split.val), len(readout.shift)
    train, val = (class_counts(y, mask, classes).numpy() for mask in sets)
    return FrequencyShift(train, val, np.array(readout.shift))


def _sure_and_right(p: Tensor, dataset: NodeDataset, test: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """The probability of what is most probable, and whether it is so, by test node or label."""
    p, y = p[test].double(), dataset.data.y[test]
    if dataset.task == "classification":
        sure, chosen = p.max(1)
        return sure.numpy(), (chosen == y).numpy()
    labelled = ~torch.isnan(y)
    return p[labelled].clamp_min(1 - p[labelled]).numpy(), ((p >= 0.5) == (y > 0.5))[
        labelled
    ].numpy()


def make_bins(confidence: np.ndarray, right: np.ndarray) -> Bins:
    """Predictions in groups of equal width by their confidence.

    >>> make_bins(np.array([0.95, 0.93, 0.2]), np.array([True, False, False])).count
    array([1., 2.])
    """
    group = np.minimum((confidence * BINS).astype(int), BINS - 1)
    count = np.bincount(group, minlength=BINS).astype(float)
    sure = np.bincount(group, weights=confidence, minlength=BINS)
    hits = np.bincount(group, weights=right.astype(float), minlength=BINS)
    there = count > 0
    return Bins(sure[there] / count[there], hits[there] / count[there], count[there])


def curve_of(
    predicted: Tensor, dataset: NodeDataset, test: Tensor, readout: Readout
) -> PrecisionRecall | None:
    """Precision against recall of the rarer of two classes; None where there are not both."""
    if dataset.task != "classification" or dataset.num_classes != 2 or not bool(test.any()):
        return None
    hit = (dataset.data.y[test] == readout.positive).numpy()
    if not hit.any() or hit.all():
        return None
    recall, precision = recall_precision(hit, predicted[test, readout.positive].double().numpy())
    chosen = (readout.choose(predicted)[test] == readout.positive).numpy()
    right = (chosen & hit).sum()
    keep = np.unique(np.linspace(0, len(recall) - 1, min(CURVE_POINTS, len(recall))).astype(int))
    return PrecisionRecall(
        name=dataset.classes[readout.positive],
        prevalence=float(hit.mean()),
        recall=recall[keep],
        precision=precision[keep],
        threshold=0.5 if readout.threshold is None else readout.threshold,
        chosen=(float(right / hit.sum()), float(right / max(chosen.sum(), 1))),
    )


def recall_precision(hit: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Recall and precision at each distinct probability from the smallest on, and at none; without
    scikit-learn, which takes seconds to load.

    >>> recall_precision(np.array([True, False, True]), np.array([0.9, 0.5, 0.5]))
    (array([1. , 0.5, 0. ]), array([0.66666667, 1.        , 1.        ]))
    """
    order = np.argsort(-p, kind="stable")
    last = np.append(p[order][1:] < p[order][:-1], True)  # of the nodes of one probability
    right, taken = np.cumsum(hit[order])[last], np.flatnonzero(last) + 1
    return np.append(right[::-1] / right[-1], 0.0), np.append((right / taken)[::-1], 1.0)


def residuals_of(predicted: Tensor, dataset: NodeDataset, test: Tensor) -> Residuals | None:
    """Predicted and true values of test nodes (of the first target), or of a sample of them."""
    if dataset.task != "regression":
        return None
    y = dataset.data.y.reshape(dataset.num_nodes, -1)[:, 0]
    rows = _some(test & ~torch.isnan(y))
    if len(rows) == 0:
        return None
    values = predicted.reshape(dataset.num_nodes, -1)[:, 0]
    return Residuals(
        name=dataset.targets[0] if dataset.targets else "label",
        predicted=values[rows].double().numpy(),
        true=y[rows].double().numpy(),
        degree=dataset.degrees[rows].double().numpy(),
    )


def _some(mask: Tensor) -> Tensor:  # bool (nodes,) -> int64 (some,)
    """As many of the nodes as a figure shows one by one."""
    rows = mask.nonzero()[:, 0]
    if len(rows) > SCATTER_NODES:
        order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
        rows = rows[order[:SCATTER_NODES].sort().values]
    return rows


def error_map_of(
    predicted: Tensor, dataset: NodeDataset, test: Tensor, readout: Readout
) -> ErrorMap | None:
    """How wrong test nodes are (of the first target), and where they lie; None without places."""
    found = None if dataset.task == "multilabel" else coordinates_of(dataset)
    error = errors_of(predicted, dataset, readout)[:, 0]
    rows = _some(test & ~torch.isnan(error))
    if found is None or len(rows) == 0:
        return None
    x, y = found.xy[rows.numpy()].T
    return ErrorMap(found.x_name, found.y_name, found.aspect, x, y, error[rows].double().numpy())


def errors_of(predicted: Tensor, dataset: NodeDataset, readout: Readout) -> Tensor:
    """How wrong each node is, (nodes, columns): predicted minus true, NaN where the truth is not
    known; of classes and labels how improbable the truth was said to be, and 0 if it is chosen."""
    y, chosen = dataset.data.y, readout.choose(predicted)
    if dataset.task == "classification":
        p_true = predicted.gather(1, y.clamp_min(0)[:, None])  # (nodes, 1)
        error = (1 - p_true) * (chosen != y)[:, None]
        return error.masked_fill((y < 0)[:, None], math.nan)
    if dataset.task == "multilabel":
        return (chosen - y).abs() * (predicted - y).abs()
    return (predicted - y).reshape(len(y), -1)


def worst_errors(
    predicted: Tensor, dataset: NodeDataset, test: Tensor, readout: Readout
) -> tuple[ErrorRecord, ...]:
    """The largest errors on test nodes: of classes and labels those that were surest."""
    y, chosen = dataset.data.y, readout.choose(predicted)
    error = errors_of(predicted, dataset, readout).abs()
    error = torch.where(test[:, None], error.nan_to_num(0.0), 0.0)
    size, order = error.flatten().topk(min(WORST, error.numel()))
    names = list(dataset.targets or (dataset.classes if dataset.task == "multilabel" else ()))

    def text(values: Tensor, node: int, column: int) -> str:
        if dataset.task == "classification":
            return dataset.classes[int(values[node])]
        value = float(values.reshape(len(values), -1)[node, column])
        if dataset.task == "multilabel":
            return "yes" if value > 0.5 else "no"
        return f"{value:.4g}"

    worst = []
    for far, at in zip(size[size > 0].tolist(), order.tolist(), strict=False):
        node, column = divmod(at, error.shape[1])
        what = names[column] if len(names) > 1 else ""
        told = text(y, node, column), text(chosen, node, column)
        worst.append(ErrorRecord(str(dataset.ids[node]), what, *told, far))
    return tuple(worst)


def label_counts(
    predicted: Tensor, dataset: NodeDataset, test: Tensor, readout: Readout
) -> np.ndarray:
    """Of each label: the test nodes that have it, those predicted to, and those with both."""
    y, chosen = dataset.data.y[test], readout.choose(predicted)[test] > 0
    labelled, has = ~torch.isnan(y), y > 0.5
    parts = (has.sum(0), (chosen & labelled).sum(0), (has & chosen).sum(0))
    return torch.stack(parts, 1).double().numpy()


def drawn_scores(
    predicted: Sequence[tuple[Tensor, Readout | None]],
    dataset: NodeDataset,
    fitted: Sequence[Fitted],
) -> list[dict[str, float]]:
    """The mean score of the repeats on draws of their test nodes, with replacement; nothing where
    they have different ones, which say more than draws.

    Args:
        predicted: by each repeat, and how it is read.
        dataset: whose nodes these are.
        fitted: the repeats, which know the test nodes.
    """
    mask = fitted[0].split.test
    if any(not torch.equal(fit.split.test, mask) for fit in fitted):
        return []
    test, generator = mask.cpu().nonzero()[:, 0], torch.Generator().manual_seed(0)
    draws = []
    for _ in range(min(BOOTSTRAP, BOOTSTRAPPED // max(len(test), 1)) if len(test) else 0):
        drawn = test[torch.randint(len(test), (len(test),), generator=generator)]
        scores = [score(p, dataset, drawn, readout) for p, readout in predicted]
        shared = set.intersection(*(set(one) for one in scores))
        draws.append({metric: float(np.mean([s[metric] for s in scores])) for metric in shared})
    return draws


def over_nodes(
    summary: Mapping[str, Summary], draws: Sequence[Mapping[str, float]]
) -> dict[str, Summary]:
    """Means with the intervals of draws of test nodes, where there are any."""
    found = dict(summary)
    for metric, mean in summary.items():
        values = [draw[metric] for draw in draws if metric in draw]
        if values:
            low, high = np.quantile(values, [0.025, 0.975]).tolist()
            found[metric] = dataclasses.replace(mean, low=low, high=high, over_nodes=True)
    return found
