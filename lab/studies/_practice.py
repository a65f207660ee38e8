"""What a practitioner would try on a table with edges: boosting, and a tuned deep GCN.

Boosting is scikit-learn's, on a node's own columns; with those of its neighbours; and with what the
latter leaves unexplained at labelled neighbours. Nothing here uses this package's filters.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from torch import Tensor

from lab.studies._training import fit_all, headline_scores
from longnn.config import Config
from longnn.data import NodeDataset, Split

#: Parts for out-of-fold residuals, and strengths that validation nodes choose from.
FOLDS, STRENGTHS = 5, (0.0, 0.25, 0.5, 0.75, 1.0)
#: Random draws of the deep GCN.
DRAWS = 12


def averages(dataset: NodeDataset) -> list[sp.csr_matrix]:
    """Row-normalised adjacency, of arcs one along and one against them."""
    row, col = dataset.data.edge_index.numpy()
    n = dataset.num_nodes
    forth = sp.csr_matrix((np.ones(len(row)), (row, col)), shape=(n, n))
    found = [forth, forth.T.tocsr()] if dataset.directed else [forth.maximum(forth.T)]
    return [sp.diags(1 / np.maximum(np.asarray(a.sum(1)).ravel(), 1)) @ a for a in found]


def neighbour_columns(dataset: NodeDataset) -> np.ndarray:
    """Own columns, degree, means over one and two hops, and the spread over one."""
    x = dataset.data.x
    own = (x.to_dense() if x.layout is not torch.strided else x).numpy().astype(np.float64)
    parts = [own]
    for mean in averages(dataset):
        once = mean @ own
        spread = np.sqrt(np.maximum(mean @ own**2 - once**2, 0))
        parts += [np.diff(mean.indptr)[:, None], once, mean @ once, spread]
    return np.concatenate(parts, 1)


def boost(x: np.ndarray, y: np.ndarray, rows: np.ndarray, task: str) -> np.ndarray:
    """Values (nodes,) or probabilities (nodes, classes) of trees fitted to some rows."""
    if task == "regression":
        return HistGradientBoostingRegressor(random_state=0).fit(x[rows], y[rows]).predict(x)
    made = HistGradientBoostingClassifier(random_state=0).fit(x[rows], y[rows])
    said = np.zeros((len(x), int(y.max()) + 1))
    said[:, made.classes_] = made.predict_proba(x)
    return said


def with_residuals(dataset: NodeDataset, x: np.ndarray, split: Split) -> np.ndarray:
    """Boosting, and what it leaves unexplained at labelled neighbours of one and two hops; how much
    of that is added, validation nodes choose."""
    y, task = dataset.data.y.numpy(), dataset.task
    train, val = split.train.numpy(), split.val.numpy()
    said = boost(x, y, np.flatnonzero(train), task)
    true = y if task == "regression" else np.eye(said.shape[1])[y]
    honest, part = said.copy(), np.random.default_rng(split.seed).integers(FOLDS, size=len(y))
    for k in range(FOLDS):
        own = train & (part == k)
        honest[own] = boost(x, y, np.flatnonzero(train & ~own), task)[own]
    rest = (true - honest).reshape(len(y), -1)

    def around(known: np.ndarray) -> np.ndarray:
        total = np.zeros_like(rest)
        for mean in averages(dataset):
            for walk in (mean, mean @ mean):
                walk = walk.tolil()
                walk.setdiag(0)
                weight = walk.tocsr() @ known[:, None].astype(float)
                total += walk.tocsr() @ (rest * known[:, None]) / np.maximum(weight, 0.2)
        return (total / (2 * len(averages(dataset)))).reshape(said.shape)

    def loss(strength: float) -> float:
        off = true - (said + strength * around(train))
        return float((off[val] ** 2).mean())

    found = said + min(STRENGTHS, key=loss) * around(train | val)
    return found if task == "regression" else np.clip(found, 1e-6, None)


def predict_by_boosting(name: str, dataset: NodeDataset, split: Split) -> Tensor:
    """Of "boosting", "neighbours" or "residuals"."""
    x = neighbour_columns(dataset)
    if name == "boosting":
        x = x[:, : dataset.data.x.shape[1]]
    if name == "residuals":
        said = with_residuals(dataset, x, split)
    else:
        said = boost(x, dataset.data.y.numpy(), np.flatnonzero(split.train.numpy()), dataset.task)
    return torch.from_numpy(said).float()


def tuned_gcn(dataset: NodeDataset, splits: Sequence[Split], device: str) -> dict[str, Any]:
    """The best of random draws by validation nodes, on each split."""
    draw = np.random.default_rng(0)
    configs = [
        Config.from_dict(
            {
                "model": "gcn-deep",
                "monitor": "loss",
                "known_answers": "none",
                "hidden_channels": int(draw.choice([64, 128])),
                "blocks": int(draw.choice([1, 2, 4])),
                "dropout": float(draw.choice([0.0, 0.2, 0.5])),
                "lr_transform": float(draw.choice([0.001, 0.003, 0.01])),
                "wd_transform": float(draw.choice([0.0, 5e-4])),
                "patience": 100,
                **({"direction": "cover"} if dataset.directed else {}),
            }
        )
        for _ in range(DRAWS)
    ]
    runs = fit_all(dataset, configs, splits, device=device)
    scores = [headline_scores(dataset, [f.predicted for f in run], splits) for run in runs]
    best = [int(np.argmax([val[k] for val, _ in scores])) for k in range(len(splits))]
    return {
        "val": [scores[i][0][k] for k, i in enumerate(best)],
        "test": [scores[i][1][k] for k, i in enumerate(best)],
    }
