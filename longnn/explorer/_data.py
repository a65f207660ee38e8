"""Runs as the plain data of one page: graphs once, and every run with its models and its history.

Of a graph the page has who is shown and where, the operators, and signals to filter. Of several
repeats it has as many as there is room for. Reads runs, and never trains. Scores and how they split
are those of :class:`longnn.explain.Subject`: what the page shows of a node is what ``longnn
explain`` says of it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longnn import report
from longnn._base.version import __version__
from longnn.data import NodeDataset
from longnn.data._coordinates import coordinates_of
from longnn.explain._subject import Subject, find_ids, neighbours
from longnn.explorer._layout import place_nodes
from longnn.explorer._page import pack
from longnn.filters import PolynomialFilter
from longnn.graphs import GraphOperator
from longnn.matrices import csr_to_scipy, take_columns
from longnn.metrics import metric_of
from longnn.nn._ensemble import Ensemble
from longnn.polynomials import Jacobi
from longnn.records import RunRecord
from longnn.registry import find_model
from longnn.report._filters import density_top
from longnn.runs import Run

#: Most nodes on a page, and most numbers of a filter's path.
NODES, PATH_NUMBERS = 5000, 200_000
#: Most characters of packed arrays of one run: where they are reached, repeats are left out.
CHARACTERS = 16_000_000
#: Features that can be chosen as a signal: all up to here, else those that vary most.
FEATURES = 24


def collect(runs: Sequence[Run], *, limit: int = NODES, node: str | None = None) -> dict[str, Any]:
    """All that the page shows of some runs, as plain data.

    Args:
        runs: finished runs; a graph that several share is kept once.
        limit: most nodes of a graph; of a larger one those nearest to ``node`` are shown.
        node: the id of a node; it is selected, too.

    Raises:
        DataError: where a graph cannot be read again, or no node has the id.
        ValueError: where the limit is below 1.
    """
    if limit < 1:
        raise ValueError(f"Expected --limit of at least 1 node (got {limit})")
    records = report.name_apart([run.record for run in runs])
    graphs: dict[str, dict[str, Any]] = {}
    shown: dict[str, np.ndarray] = {}
    described = []
    for run, record in zip(runs, records, strict=True):
        key, dataset = record.data.fingerprint, run.dataset
        if key not in shown:
            centre = None if node is None else int(find_ids(dataset.ids, [node])[0])
            shown[key] = dataset.backing.nearest(centre, limit)
        first = Subject(run.trained, dataset, 0, nodes=shown[key], known="run")
        places = np.searchsorted(first.inside, shown[key])
        operators = _operators(run, first)
        if key not in graphs:
            graphs[key] = describe_graph(first.dataset, operators, places)
            graphs[key] |= {"nodes": dataset.num_nodes, "edges": dataset.num_edges}
        else:
            graphs[key]["operators"] |= describe_operators(operators, places)
        data = _describe_run(run, record, first, places)
        described.append(data | {"graph": list(graphs).index(key)})
    return {
        "version": __version__,
        "node": node,
        "graphs": list(graphs.values()),
        "runs": described,
    }


def _operator_name(subject: Subject, self_loops: str) -> str:
    """What an operator is called on the page: another where arcs are kept."""
    return self_loops if subject.direction == "none" else f"cover {self_loops}"


def _operators(run: Run, subject: Subject) -> Mapping[str, GraphOperator]:
    """The operators by kind and treatment of self loops, that of the leading model first."""
    problem = subject.problem
    every = {run.trained.models[0].self_loops: problem.operator} | dict(problem.variants)
    return {_operator_name(subject, loops): operator for loops, operator in every.items()}


def _describe_run(
    run: Run, record: RunRecord, subject: Subject, shown: np.ndarray
) -> dict[str, Any]:
    """A run with its first repeat, and the others that there is room for."""
    first, score = _describe_repeat(run, record, 0, subject, shown), record.score()
    room = CHARACTERS // max(_characters(first), 1)
    others = range(1, min(len(record.repeats), max(room, 1)))
    nodes = subject.inside[shown]
    each = [
        (number, Subject(run.trained, run.dataset, number, nodes=nodes, known="run"))
        for number in others
    ]
    return {
        "name": record.name,
        "headline": report.answer_text(record),
        "metric": metric_of(record.metric).name,
        "score": "" if score is None else report.interval_text(score, record.metric),
        "repeats": len(record.repeats),
        "notes": list(record.missing),
        "spectrum": _spectrum(record),
        "direction": subject.direction,
        **first,
        "others": [_describe_repeat(run, record, k, other, shown) for k, other in each],
    }


def _describe_repeat(
    run: Run, record: RunRecord, number: int, subject: Subject, shown: np.ndarray
) -> dict[str, Any]:
    split, readout = run.splits[number], run.trained.readouts[number]
    sets = np.zeros(run.dataset.num_nodes, dtype=np.uint8)
    for kind, mask in enumerate((split.train, split.val, split.test), start=1):
        sets[mask.numpy()] = kind
    sets = sets[subject.inside]
    predicted = subject.predicted
    chosen = None
    if record.data.task != "regression":
        chosen = pack(subject.chosen.numpy()[shown], "i4")
    without = None  # the classes that would be predicted without the shift
    if subject.shift is not None and subject.shift.there:
        without = pack(subject.shift.without.numpy()[shown], "i4")
    change = None  # what known answers add to values, or to logarithms of probabilities
    if subject.known is not None:
        change = pack(subject.known.changes[number].numpy()[shown])
    return {
        "change": change,
        "set": pack(sets[shown], "u1"),
        "predicted": pack(predicted.reshape(len(predicted), -1).numpy()[shown]),
        "chosen": chosen,
        "interval": _interval(run, number, subject, shown),
        "shift": list(readout.shift),  # of the scores, of an ensemble of the averaged ones
        "without": without,
        "offset": list(readout.offset),
        "scale": list(readout.scale),
        "history": _history(record) if number == 0 else None,  # the path is that of the first
        "models": _models(run, record, number, subject, shown),
    }


def _interval(run: Run, number: int, subject: Subject, shown: np.ndarray) -> dict[str, Any] | None:
    """How far predictions may be off, or what is plausible; None where the run does not know."""
    if not run.trained.intervals:
        return None
    coverage, degrees = run.config.coverage, run.dataset.degrees[torch.from_numpy(subject.inside)]
    forecast = run.trained.forecast(subject.opinions, coverage, degrees, repeat=number)
    numbers: dict[str, Any] = {"coverage": coverage}
    for name, kind in (("low", "f4"), ("high", "f4"), ("plausible", "u1")):
        values = getattr(forecast, name)
        if values is not None:
            numbers[name] = pack(values.reshape(len(values), -1).numpy()[shown], kind)
    return numbers


def _characters(data: Any) -> int:
    """How many characters the arrays in some plain data take.

    >>> _characters({"x": pack(np.zeros(3), "u1"), "rest": [1, "text"]})
    4
    """
    if isinstance(data, dict):
        if {"data", "kind"} <= data.keys():
            return len(data["data"])
        return sum(map(_characters, data.values()))
    return sum(map(_characters, data)) if isinstance(data, list) else 0


#: Why a model's scores are no sums over nodes, by how many filters it has.
NO_SUM = (
    "This model has no polynomial filter. So there is no sum over nodes to show.",
    "Something that is not linear follows the filter of this model. So its score is not a sum over "
    "nodes. The weights below say how much the filter takes from each node, no more.",
    "This model filters more than once, with something that is not linear in between. So its score "
    "is not a sum over nodes. The weights below are those of its first filter, no more.",
)


def _models(
    run: Run, record: RunRecord, number: int, subject: Subject, shown: np.ndarray
) -> list[dict[str, Any]]:
    """The model of a repeat, or every member of an ensemble with a vote, the leading one first."""
    whole, repeat = run.trained.models[number], record.repeats[number]
    if isinstance(whole, Ensemble):
        names, leader, shares = list(whole.members), whole.leader, whole.shares
        temperatures = whole.temperatures.tolist()
    else:
        leader = find_model(record.model).title
        names, shares = [leader], {leader: 1.0}
        temperatures = [run.trained.readouts[number].temperature]
    members = {member.name: member for member in repeat.members}
    described = {}
    parts = zip(names, subject.question.models, subject.forms, temperatures, strict=True)
    for name, model, form, temperature in parts:
        if name not in shares:
            continue
        member, filters = members.get(name), model.filters()
        words = repeat.filters[0].words if repeat.filters else ""
        sums, alone = form.exact and bool(filters), None
        if form.hops == 0 and not sums:  # the score of a node is its own, but for a constant
            each = torch.eye(form.scores.shape[1], dtype=torch.float64)
            nodes = np.zeros(len(each), dtype=np.int64)
            alone = pack(form.explain(nodes, each, features=False).constant, "f8")
        described[name] = {
            "name": name,
            "leading": name == leader,
            "share": shares[name],
            "temperature": temperature,
            "words": words if member is None else member.words,
            "best_epoch": (repeat if member is None else member).best_epoch,
            "operator": _operator_name(subject, model.self_loops),
            "scores": pack(form.scores.numpy()[shown]),
            "filter": describe_filter(filters[0]) if filters else None,
            "form": _sum_form(form, rows_of(subject.problem.operator, shown)) if sums else None,
            "alone": alone,
            "why": "" if sums else NO_SUM[min(len(filters), 2)],
        }
    order = sorted(shares, key=lambda name: (name != leader, -shares[name], name))
    return [described[name] for name in order]


def _sum_form(form: Any, rows: np.ndarray) -> dict[str, Any]:
    r"""The numbers of a score that is a sum over nodes: t, W and r of the page.

    .. math:: s_{ic} = r_c + \sum_v \sum_h g_h(P)_{iv}\, t_{vh}\, W_{hc}

    On arcs every node has two copies: the signal t has a row for each.
    """
    signal, mix = form.signal, form.mix
    if mix is not None and form.filter.channels == 1:  # g(P) t W = g(P) (t W)
        signal, mix = signal @ mix, None
    return {
        "signal": pack(signal.numpy()[rows]),
        "mix": None if mix is None else pack(mix.numpy()),
        "base": pack(form.constant.detach().numpy()),
    }


def describe_filter(f: PolynomialFilter) -> dict[str, Any]:
    """A filter as plain data: Chebyshev coefficients (K+1, channels), and a and b of its basis.

    >>> described = describe_filter(PolynomialFilter("jacobi", degree=2))
    >>> [described[key] for key in ("basis", "degree", "a", "weight")]
    ['jacobi', 2, 0.0, 'paper']
    """
    numbers = {name: v.detach() for name, v in f.basis_parameters().items() if v.dim() == 0}
    jacobi = isinstance(f.basis, Jacobi) and f.basis.is_orthonormal
    return {
        "basis": f.basis.name,
        "orthonormal": jacobi,
        "degree": f.degree,
        "weight": f.basis.weight if isinstance(f.basis, Jacobi) else "probability",
        "learned": f.learn_basis,
        "a": float(numbers["a"]) if jacobi else 0.0,
        "b": float(numbers["b"]) if jacobi else 0.0,
        "beta": pack(f.chebyshev_coefficients().detach().cpu().numpy(), "f8"),
    }


def _spectrum(record: RunRecord) -> dict[str, Any] | None:
    if record.data.density is None:
        return None
    eigenvalues, density = record.data.density
    few = record.data.outliers
    return {
        "eigenvalue": pack(eigenvalues, "f8"),
        "density": pack(density, "f8"),
        "top": density_top(eigenvalues, density),
        "outliers": None if few is None else few.tolist(),
    }


def _history(record: RunRecord) -> dict[str, Any] | None:
    """The epochs of the first repeat, thinned where the path of the filter is long."""
    history, path = record.history, record.path
    if history is None:
        return None
    rows = history.of(0)
    best = record.repeats[0].best_epoch
    epochs = rows["epoch"].astype(int)
    size = 1 if path is None else int(np.prod(path.beta.shape[1:]))
    kept = _thinned(len(epochs), PATH_NUMBERS // size, int(np.searchsorted(epochs, best)))
    columns: dict[str, Any] = {
        name: pack(rows[name][kept], "f8")
        for name in ("train_loss", "val_loss", "val_score", "amplitude", "a", "b")
        if name in rows.columns and rows.has(name)
    }
    beta = None
    if path is not None and np.isin(epochs[kept], path.epochs).all():
        at = np.searchsorted(path.epochs, epochs[kept])
        beta = pack(path.beta[at])  # (epochs, degree + 1, channels)
    return {"epoch": pack(epochs[kept], "i4"), "best": best, "beta": beta, **columns}


def _thinned(count: int, most: int, best: int) -> np.ndarray:
    """At most about ``most`` of ``count`` places, the first, the last and the best among them.

    >>> _thinned(10, 4, 5).tolist(), _thinned(3, 4, 1).tolist()
    ([0, 3, 5, 6, 9], [0, 1, 2])
    """
    most = max(most, 2)
    if count <= most:
        return np.arange(count)
    even = np.linspace(0, count - 1, most).round().astype(int)
    return np.unique(np.append(even, min(best, count - 1)))


def rows_of(operator: GraphOperator, shown: np.ndarray) -> np.ndarray:
    """The rows of some nodes in an operator: on arcs those of both copies, one after the other."""
    return np.concatenate([copy * operator.num_nodes + shown for copy in range(operator.copies)])


def describe_graph(
    dataset: NodeDataset, operators: Mapping[str, GraphOperator], shown: np.ndarray
) -> dict[str, Any]:
    """The shown part of a graph as plain data."""
    whole = neighbours(next(iter(operators.values())))
    kept = whole[shown][:, shown].tocsr()
    missing = np.diff(whole.indptr)[shown] - np.diff(kept.indptr)
    y = dataset.data.y.cpu().numpy()[shown]
    classes = dataset.task == "classification"
    return {
        "name": dataset.name,
        "task": dataset.task,
        "outputs": list(dataset.classes or dataset.targets) or ["value"],
        "nodes": dataset.num_nodes,
        "edges": dataset.num_edges,
        "directed": dataset.directed,
        "ids": [str(dataset.ids[i]) for i in shown],
        "position": pack(_positions(dataset, kept, shown)),
        "missing": pack(missing, "i4"),  # neighbours that are not on the page
        # Class numbers with -1 for unknown, or numbers (nodes, outputs) with NaN.
        "label": pack(y, "i4") if classes else pack(y.reshape(len(shown), -1)),
        "operators": describe_operators(operators, shown),
        "features": _features(dataset, shown),
    }


def _positions(dataset: NodeDataset, kept: Any, shown: np.ndarray) -> np.ndarray:
    """Where the shown nodes are drawn: as on a map, where they have coordinates."""
    found = coordinates_of(dataset)
    if found is None:
        return place_nodes(kept)
    xy = found.xy[shown] * [1, -found.aspect]  # the page counts downwards
    low, high = xy.min(0), xy.max(0)
    return np.asarray((2 * xy - low - high) / max(float((high - low).max()), 1e-9))


def describe_operators(operators: Mapping[str, GraphOperator], shown: np.ndarray) -> dict[str, Any]:
    """Rows and columns of the shown nodes, on arcs of both copies of each, by name.

    The values keep the degrees of the whole graph: a product in the page counts exactly the paths
    that stay on the page.
    """
    described = {}
    for name, operator in operators.items():
        rows = rows_of(operator, shown)
        matrix = operator.matrix.to_scipy()[rows][:, rows].tocsr()
        described[name] = {
            "copies": operator.copies,
            "direction": operator.direction,
            "start": pack(matrix.indptr, "i4"),  # (copies nodes + 1,)
            "column": pack(matrix.indices, "i4"),  # (arcs,)
            "value": pack(matrix.data),  # (arcs,)
        }
    return described


def _features(dataset: NodeDataset, shown: np.ndarray) -> list[dict[str, Any]]:
    """A few columns to choose a signal from."""
    x, count = dataset.data.x, dataset.num_features
    chosen = np.arange(count)
    if count > FEATURES:
        chosen = np.sort(np.argsort(-_variances(x), kind="stable")[:FEATURES])
    values = take_columns(x, chosen.tolist()).to_dense().cpu().numpy()[shown]
    names = dataset.feature_names or [f"feature {k}" for k in range(count)]
    return [{"name": names[k], "value": pack(values[:, i])} for i, k in enumerate(chosen)]


def _variances(x: Tensor) -> np.ndarray:  # (nodes, features) -> (features,)
    if x.layout is torch.strided:
        return np.asarray(x.var(0, correction=0).cpu().numpy())
    matrix = csr_to_scipy(x)
    return np.asarray(matrix.power(2).mean(axis=0) - np.square(matrix.mean(axis=0))).ravel()
