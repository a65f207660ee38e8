"""Explanations of single nodes: ask every model, add up, sort by source."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from longnn.data import NodeDataset
from longnn.explain._case import Case
from longnn.explain._exact import ExactForm
from longnn.explain._explanation import Explanation, NodeExplanation
from longnn.explain._part import Part
from longnn.explain._rings import distances
from longnn.training import Trained

#: Numbers per array that a block of explained nodes may take.
BLOCK = 2**22


def explain_nodes(
    trained: Trained,
    dataset: NodeDataset,
    places: Sequence[int] | np.ndarray,
    *,
    output: Any = None,
    against: Any = None,
    repeat: int | None = None,
    features: bool = True,
) -> Explanation:
    r"""Split the scores of nodes into contributions of nodes, distances, terms and features.

    In LON-GNN's own form :math:`score[i, c] = \sum_v g_c(P)[i, v]\,t(x_v)[c]` the split is exact;
    so it is wherever all that follows the filter is linear. Other models are split by integrated
    gradients. ``Explanation.method`` says which was used, and the gap is in the summary.

    Args:
        trained: the models.
        dataset: the graph: the one of training, or another with the same features.
        places: positions of the nodes to explain.
        output: name of the class, label or target; by default the predicted class, the most
            probable label, the first target.
        against: another one, whose score is subtracted: why the first rather than the second.
        repeat: explain one repeat; by default the average over all.
        features: split by feature, too.

    Raises:
        ValueError: for nodes or names that are not there, and where Captum is needed and absent.

    >>> from longnn import LONGNNClassifier, data
    >>> graph = data.csbm(num_nodes=60, num_features=8)
    >>> model = LONGNNClassifier(preset="fast", epochs=5).fit(graph)
    >>> found = explain_nodes(model.trained_, graph, [3])
    >>> found.method, abs(found[0].gap) < 1e-9
    ('exact', True)
    """
    nodes = np.asarray(places, dtype=np.int64)
    if nodes.ndim != 1 or not len(nodes):
        raise ValueError(f"Expected at least one node to explain (got shape {nodes.shape})")
    outside = nodes[(nodes < 0) | (nodes >= dataset.num_nodes)]
    if len(outside):
        raise ValueError(f"Expected nodes in 0..{dataset.num_nodes - 1} (got {outside[0]})")
    case = Case(trained, dataset, repeat)
    size = max(1, BLOCK // dataset.num_nodes)
    blocks = [nodes[k : k + size] for k in range(0, len(nodes), size)]
    found = [e for block in blocks for e in _explain(case, block, output, against, features)]
    what, method, notes = case.describe()
    if features and any(e.features is None for e in found):
        notes.append(
            "no split by feature: it needs captum here, which is not installed "
            "(pip install 'longnn[explain]')"
        )
    rather = "" if against is None else f", minus that of {against}"
    return Explanation(
        nodes=found,
        model=trained.config.model if not trained.members else "ensemble",
        what=what + rather,
        method=method,
        exact=case.exact,
        notes=notes,
        feature_names=case.feature_names,
        basis=_basis_name(case),
    )


def _basis_name(case: Case) -> str:
    """The basis of the one filter, if there is one."""
    form = case.forms[0]
    if len(case.forms) > 1 or not isinstance(form, ExactForm) or form.filter is None:
        return ""
    return form.filter.basis.name


def _explain(
    case: Case, nodes: np.ndarray, output: Any, against: Any, features: bool
) -> Iterator[NodeExplanation]:
    chosen = case.default_outputs(nodes)
    if output is not None:
        chosen = torch.full((len(nodes),), case.number_of(output))
    other = None if against is None else case.number_of(against)
    places = torch.from_numpy(nodes)
    z = [scores[places] for scores in case.scores]
    number, at_zero, A = case.question.ask(z, chosen, other)
    parts = [
        form.explain(nodes, q, features=features) for form, q in zip(case.forms, A, strict=True)
    ]
    total = join(parts)
    hops = distances(case.adjacency, nodes, case.hops)
    names, probable = case.outputs, case.trained.task != "regression"
    for k, node in enumerate(nodes):
        used = np.union1d(np.flatnonzero(total.contributions[k]), node)  # itself at any rate
        at = int(chosen[k])

        def pick(values: np.ndarray | None, k: int = k, used: np.ndarray = used) -> Any:
            return None if values is None else values[k, used]

        yield NodeExplanation(
            node=case.ids[int(node)],
            predicted=_predicted(case, int(node)),
            probability=float(case.predicted[node, at]) if probable else None,
            output=names[at],
            score=float(number[k]),
            constant=float(at_zero[k]) + float(total.constant[k]),
            sources=[case.ids[int(v)] for v in used],
            distance=hops[k, used],
            contribution=total.contributions[k, used],
            weight=pick(total.weight),
            says=pick(total.says),
            base=float(total.base[k]),
            features=None if total.features is None else total.features[k],
            chebyshev=None if total.chebyshev is None else total.chebyshev[k],
            terms=None if total.terms is None else total.terms[k],
            ways=None if total.ways is None else total.ways[k],
            **_shifted(case, int(node)),
        )


def _shifted(case: Case, node: int) -> dict[str, Any]:
    """What the shift of probabilities changes, if it makes the predicted class another."""
    shift = case.shift
    if shift is None or shift.without[node] == shift.chosen[node]:
        return {}
    return {"without": case.outputs[int(shift.without[node])], "shift": shift.log_odds(node)}


def _predicted(case: Case, node: int) -> str:
    """What is predicted of a node, in words."""
    task, names = case.trained.task, case.outputs
    if task == "classification":
        return names[int(case.chosen[node])]
    if task == "multilabel":
        said = [n for n, yes in zip(names, case.chosen[node].tolist(), strict=True) if yes]
        return ", ".join(said) or "none"
    return ", ".join(f"{v:.4g}" for v in case.predicted[node].reshape(-1).tolist())


def join(parts: Sequence[Part]) -> Part:
    """The sum of the parts of several models; what only one model can have is dropped."""
    if len(parts) == 1:
        return parts[0]
    split = [part.features for part in parts if part.features is not None]
    series = [part.chebyshev for part in parts if part.chebyshev is not None]
    ways = [part.ways for part in parts if part.ways is not None]
    return Part(
        contributions=np.sum([part.contributions for part in parts], axis=0),
        constant=np.sum([part.constant for part in parts], axis=0),
        base=np.sum([part.base for part in parts], axis=0),
        features=np.sum(split, axis=0) if len(split) == len(parts) else None,
        chebyshev=_add_series(series) if len(series) == len(parts) else None,
        ways=np.sum(ways, axis=0) if len(ways) == len(parts) else None,
    )


def _add_series(series: Sequence[np.ndarray]) -> np.ndarray:
    """Chebyshev series of different degrees, (explained, degree + 1), added."""
    total = np.zeros((len(series[0]), max(s.shape[1] for s in series)))
    for s in series:
        total[:, : s.shape[1]] += s
    return total
