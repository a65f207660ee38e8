r"""Does learning the basis pay its way? Filters against SGC and SIGN on the same stored terms.

All read the same rows, have the same hidden units and stop by the same rule. SGC knows one power
of the operator; SIGN has a linear map of each term,

.. math:: \hat Y = \mathrm{MLP}([T_0(P) X, \dots, T_K(P) X]),

K+1 times the weights and products of a filter that is learned.
"""

import dataclasses
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from lab.generator import generate
from longnn.config import Config
from longnn.data import make_split
from longnn.nn import MLP, Model, Terms, seeded
from longnn.registry import FEATURES_FORM, get_model
from longnn.store import load_stored
from longnn.training import Job, Member, Population, predict

#: What all models have in common, and the power of the operator that SGC takes in its paper.
DROPOUT: Mapping[str, Any] = {"input_dropout": 0.0, "dropout": 0.2}
RATES = {"lr_transform": 0.005, "lr_coefficients": 0.005, "lr_basis": 0.005}
HIDDEN, POWER = 64, 2
#: Kinds of labels: how they lie on the graph. In pairs of classes that seek each other, homophily
#: near 0 is a label of high frequency; 0.9 for one of a pair and 0.1 for the other mixes both.
LABELS: Mapping[str, Mapping[str, Any]] = {
    "labels of low frequency": {"homophily": 0.8, "pattern": "uniform"},
    "labels of mixed frequency": {"homophily": (0.9, 0.1), "pattern": "pairs"},
    "labels of high frequency": {"homophily": 0.1, "pattern": "pairs"},
}


@dataclasses.dataclass(frozen=True)
class Field:
    """The graphs that models are compared on, and how long they are trained."""

    nodes: int
    edges: int
    labelled: int
    features: int = 16
    classes: int = 10
    degree: int = 10
    epochs: int = 50
    patience: int = 6
    batch_rows: int = 1024
    seeds: tuple[int, ...] = (0, 1, 2)

    def __str__(self) -> str:
        return (
            f"{self.nodes:,} nodes, {self.edges:,} edges, {self.features} features, "
            f"{self.classes} classes, {self.labelled:,} labelled nodes, degree {self.degree}"
        )


class Sign(Model):
    """An MLP of all terms side by side; `SIGN <https://arxiv.org/abs/2004.11198>`_ (Frasca et al.,
    2020), whose powers of the operator span what the terms span."""

    def __init__(self, features: int, hidden: int, outputs: int, degree: int) -> None:
        super().__init__(features, hidden, outputs)
        self.degree = degree
        self.mlp = MLP((degree + 1) * features, hidden, outputs, **DROPOUT)

    @property
    def row_degree(self) -> int:
        """That of the terms."""
        return self.degree

    def scores(self, x: Any, operator: Any) -> Tensor:
        """Logits of rows of terms, (rows, outputs)."""
        assert isinstance(x, Terms)
        values = x.values[operator.self_loops][: self.degree + 1]  # (K+1, rows, features)
        return self.mlp.scores(values.movedim(0, 1).flatten(1), operator)


def measure_contests(
    folder: Path, field: Field, tell: Callable[[str], None]
) -> list[dict[str, Any]]:
    """All models on each kind of labels; each seed has a graph of its own in the folder."""
    shape = {key: getattr(field, key) for key in ("nodes", "edges", "features", "classes")}
    contests: list[dict[str, Any]] = []
    for name, kind in LABELS.items():
        tell(f"models: {name}")
        by_model: dict[str, dict[str, Any]] = {}
        for seed in field.seeds:
            generate(folder, **shape, **kind, labelled=field.labelled, seed=seed)
            for model, (score, seconds, weights) in train_on_rows(folder, field, seed).items():
                new = {"graph": name, "model": model, "scores": [], "seconds": []}
                contest = by_model.setdefault(model, {**new, "weights": weights})
                contest["scores"].append(score)
                contest["seconds"].append(seconds)
            shutil.rmtree(folder)
        contests += by_model.values()
    return contests


def train_on_rows(
    folder: Path, field: Field, seed: int, hidden: int = HIDDEN
) -> dict[str, tuple[float, float, int]]:
    """Train each model on the rows of a prepared graph; its terms are computed if needed.

    Returns:
        accuracy on the test nodes, seconds of training and number of weights of each.
    """
    rows, degree = load_stored(folder, rows=True), field.degree
    settings = {key: getattr(field, key) for key in ("degree", "epochs", "patience", "batch_rows")}
    common = {"hidden_channels": hidden, "seed": seed, "monitor": "loss"}
    config = Config.from_dict({**FEATURES_FORM, **DROPOUT, **RATES, **settings, **common})
    split = make_split(rows, None, seed)
    problem = Job(rows, [config], [split]).problem_of(0)
    sizes = (problem.features.shape[1], hidden, problem.outputs)
    form: dict[str, Any] = {**FEATURES_FORM, **DROPOUT, "filter_dropout": 0.0}
    filtered = {**form, "degree": degree}
    with seeded(seed):
        models = {
            "learned filter": get_model("lon", *sizes, **filtered),
            "learned filter per unit": get_model("lon", *sizes, shared=False, **filtered),
            "SGC": get_model("sgc", *sizes, degree=POWER, transform="mlp", **form),
            "SIGN": Sign(*sizes, degree),
            "MLP": MLP(*sizes, **DROPOUT),
        }
    measured = {}
    for name, model in models.items():
        member = Member(model, config.settings, config.seed, split.train, split.val)
        began = time.perf_counter()
        (result,) = Population([member], problem).run()
        seconds = time.perf_counter() - began
        model.load_state_dict(result.state, strict=False)
        right = (predict(model, problem).argmax(1) == problem.labels.cpu())[split.test]
        weights = sum(p.numel() for p in model.parameters())
        measured[name] = (float(right.float().mean()), seconds, weights)
    return measured
