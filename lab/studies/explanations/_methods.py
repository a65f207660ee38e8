"""Ways to rank the nodes of a graph by what they give to one prediction."""

import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.explain import Explainer, GNNExplainer

from lab.studies.explanations._graphs import Subject
from longnn.explain import explain_nodes

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
    """All of them by name.

    >>> list(methods(1))
    ['exact', 'gnnexplainer', 'gnnexplainer-tuned', 'saliency', 'random']
    """
    return {
        "exact": exact,
        "gnnexplainer": gnn_explainer(epochs),
        "gnnexplainer-tuned": gnn_explainer(epochs, TUNED),
        "saliency": saliency,
        "random": by_chance,
    }


def timed(rank: Ranking, subject: Subject, node: int) -> tuple[np.ndarray, float]:
    """A ranking and the seconds that it took."""
    started = time.perf_counter()
    found = rank(subject, node)
    return found, time.perf_counter() - started
