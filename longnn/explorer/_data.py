"""Runs as the plain data of one page: graphs once, and every run with its models and its history.

Of several repeats the page has as many as there is room for. Reads runs, and never trains.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from longnn import report
from longnn._base.version import __version__
from longnn.explain import Shift, neighbours
from longnn.explorer._arrays import pack
from longnn.explorer._graph import describe_graph, describe_operators
from longnn.explorer._models import describe_model
from longnn.explorer._sample import find_node, nodes_around
from longnn.graphs import GraphOperator
from longnn.nn import Ensemble, Model
from longnn.records import History, RunRecord
from longnn.registry import find_model
from longnn.runs import Run

#: Most nodes on a page, and most numbers of a filter's path.
NODES, PATH_NUMBERS = 5000, 200_000
#: Most characters of packed arrays of one run: where they are reached, repeats are left out.
CHARACTERS = 16_000_000


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
    found = []
    for run, record in zip(runs, records, strict=True):
        run.dataset.require_whole("to explore a run on it")
        key = record.data.fingerprint
        operators = _operators(run)
        if key not in graphs:
            base = neighbours(run.problem.operator)
            centre = None if node is None else find_node(run.dataset.ids, node)
            shown[key] = nodes_around(base, centre, limit)
            graphs[key] = describe_graph(run.dataset, operators, shown[key])
        else:
            graphs[key]["operators"] |= describe_operators(operators, shown[key])
        found.append(_describe_run(run, record, shown[key]) | {"graph": list(graphs).index(key)})
    return {
        "version": __version__,
        "node": node,
        "graphs": list(graphs.values()),
        "runs": found,
    }


def _kind(run: Run) -> str:
    """What the operators of a run are called: nothing of an undirected graph."""
    return "" if run.problem.operator.direction == "none" else "cover "


def _operators(run: Run) -> Mapping[str, GraphOperator]:
    """The operators by kind and treatment of self loops, that of the leading model first."""
    own, problem, kind = run.trained.models[0].self_loops, run.problem, _kind(run)
    every = {own: problem.operator} | dict(problem.variants)
    return {f"{kind}{loops}": operator for loops, operator in every.items()}


def _describe_run(run: Run, record: RunRecord, shown: np.ndarray) -> dict[str, Any]:
    """A run with its first repeat, and the others that there is room for."""
    headline, *_ = report.text_summary(record)
    first = _describe_repeat(run, record, 0, shown)
    room = CHARACTERS // max(_characters(first), 1)
    others = range(1, min(len(record.repeats), max(room, 1)))
    return {
        "name": record.name,
        "headline": headline,
        "metric": report.metric_name(record.metric),
        "score": _score(record),
        "repeats": len(record.repeats),
        "notes": list(record.missing),
        "spectrum": _spectrum(record),
        "direction": run.problem.operator.direction,
        **first,
        "others": [_describe_repeat(run, record, number, shown) for number in others],
    }


def _describe_repeat(run: Run, record: RunRecord, number: int, shown: np.ndarray) -> dict[str, Any]:
    split, readout = run.splits[number], run.trained.readouts[number]
    sets = np.zeros(run.dataset.num_nodes, dtype=np.uint8)
    for kind, mask in enumerate((split.train, split.val, split.test), start=1):
        sets[mask.numpy()] = kind
    predicted = run.predicted[number]
    chosen = None
    if record.data.task != "regression":
        chosen = pack(readout.choose(predicted).numpy()[shown], "i4")
    return {
        "set": pack(sets[shown], "u1"),
        "predicted": pack(predicted.reshape(len(predicted), -1).numpy()[shown]),
        "chosen": chosen,
        "shift": list(readout.shift),  # of the scores, of an ensemble of the averaged ones
        "without": _without_shift(run, number, shown),
        "offset": list(readout.offset),
        "scale": list(readout.scale),
        "history": _history(record) if number == 0 else None,  # the path is that of the first
        "models": _models(run, record, number, shown),
    }


def _without_shift(run: Run, number: int, shown: np.ndarray) -> dict[str, Any] | None:
    """The classes that would be predicted without the shift; None where there is none."""
    if not run.trained.readouts[number].shift:
        return None
    found = Shift(run.trained, [run.predicted[number]], [number])
    return pack(found.without.numpy()[shown], "i4")


def _characters(data: Any) -> int:
    """How many characters the arrays in some plain data take.

    >>> _characters({"x": pack(np.zeros(3), "u1"), "rest": [1, "text"]})
    4
    """
    if isinstance(data, dict):
        own = len(data["data"]) if {"data", "kind"} <= data.keys() else 0
        return own or sum(map(_characters, data.values()))
    return sum(map(_characters, data)) if isinstance(data, list) else 0


def _score(record: RunRecord) -> str:
    found = record.score()
    return "" if found is None else report.interval_text(found, metric=record.metric, short=True)


def _models(run: Run, record: RunRecord, number: int, shown: np.ndarray) -> list[dict[str, Any]]:
    """The model of a repeat, or every member of an ensemble with a vote, the leading one first."""
    model, readout = run.trained.models[number], run.trained.readouts[number]
    repeat, kind = record.repeats[number], _kind(run)
    if not isinstance(model, Ensemble):
        title = find_model(record.model).title
        named: list[tuple[str, Model, float, float]] = [(title, model, 1.0, readout.temperature)]
        leader = title
    else:
        temperatures = dict(zip(model.members, model.temperatures.tolist(), strict=True))
        shares, leader = model.shares, model.leader
        order = sorted(shares, key=lambda name: (name != leader, -shares[name], name))
        named = [(n, _member(model, n), shares[n], temperatures[n]) for n in order]
    own = {member.name: member for member in repeat.members}
    found = []
    for name, one, share, temperature in named:
        member = own.get(name)
        found.append(
            {
                "name": name,
                "leading": name == leader,
                "share": share,
                "temperature": temperature,
                "words": (repeat.filters[0].words if repeat.filters else "")
                if member is None
                else member.words,
                "best_epoch": (repeat if member is None else member).best_epoch,
                **describe_model(one, run.problem, shown, kind),
            }
        )
    return found


def _member(model: Ensemble, name: str) -> Model:
    member = model.members[name]
    assert isinstance(member, Model)
    return member


def _spectrum(record: RunRecord) -> dict[str, Any] | None:
    if record.data.density is None:
        return None
    eigenvalues, density = record.data.density
    few = record.data.outliers
    return {
        "eigenvalue": pack(eigenvalues, "f8"),
        "density": pack(density, "f8"),
        "top": report.density_top(eigenvalues, density),
        "outliers": None if few is None else few.tolist(),
    }


def _history(record: RunRecord) -> dict[str, Any] | None:
    """The epochs of the first repeat, thinned where the path of the filter is long."""
    history, path = record.history, record.path
    if history is None:
        return None
    own = history.of(0)
    best = record.repeats[0].best_epoch
    epochs = own["epoch"].astype(int)
    size = 1 if path is None else int(np.prod(path.beta.shape[1:]))
    kept = _thinned(len(epochs), PATH_NUMBERS // size, int(np.searchsorted(epochs, best)))
    columns = {
        name: pack(own[name][kept], "f8")
        for name in ("train_loss", "val_loss", "val_score", "amplitude", "a", "b")
        if _has(own, name)
    }
    beta = None
    if path is not None and np.isin(epochs[kept], path.epochs).all():
        rows = np.searchsorted(path.epochs, epochs[kept])
        beta = pack(path.beta[rows])  # (epochs, degree + 1, channels)
    return {"epoch": pack(epochs[kept], "i4"), "best": best, "beta": beta, **columns}


def _has(history: History, name: str) -> bool:
    return name in history.columns and history.has(name)


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
