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

from lab.bench._scalerecord import Contest
from lab.generator import generate
from longnn.config import Config
from longnn.data import Split, make_split
from longnn.nn import MLP, Model, Terms, seeded
from longnn.registry import FEATURES_FORM, get_model
from longnn.store import load_stored
from longnn.training import Job, Member, Population, Problem, predict

#: What all contenders have in common.
DROPOUT: Mapping[str, Any] = {"input_dropout": 0.0, "dropout": 0.2}
RATES = {"lr_transform": 0.005, "lr_coefficients": 0.005, "lr_basis": 0.005}
#: The power of the operator that SGC takes, as in its paper.
POWER = 2
#: Kinds of labels: how they lie on the graph. In pairs of classes that seek each other, homophily
#: near 0 is a label of high frequency; 0.9 for one of a pair and 0.1 for the other mixes both.
LABELS: Mapping[str, Mapping[str, Any]] = {
    "labels of low frequency": {"homophily": 0.8, "pattern": "uniform"},
    "labels of mixed frequency": {"homophily": (0.9, 0.1), "pattern": "pairs"},
    "labels of high frequency": {"homophily": 0.1, "pattern": "pairs"},
}


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


@dataclasses.dataclass(frozen=True)
class Contender:
    """One model on one graph: its test score, how long it took, and its size."""

    name: str
    score: float
    seconds: float
    epochs: int
    parameters: int


def compare_on_rows(
    folder: str | Path,
    *,
    degree: int = 10,
    hidden: int = 64,
    epochs: int = 50,
    patience: int = 10,
    batch_rows: int = 4096,
    seed: int = 0,
) -> list[Contender]:
    """Train each contender on the rows of a prepared graph; its terms are computed if needed.

    Args:
        folder: a prepared graph with classes.
        degree: K of the terms.
        hidden: units of each contender.
        epochs, patience, batch_rows: of each training.
        seed: of the split, the weights and dropout.

    Returns:
        accuracy on the test nodes, seconds of training and number of weights of each.
    """
    rows = load_stored(folder, rows=True)
    values = {"epochs": epochs, "patience": patience, "batch_rows": batch_rows, "monitor": "loss"}
    table: Mapping[str, Any] = {**FEATURES_FORM, **DROPOUT, **RATES, **values, "degree": degree}
    config = Config.from_dict({**table, "hidden_channels": hidden, "seed": seed})
    split = make_split(rows, None, seed)
    problem = Job(rows, [config], [split]).problem_of(0)
    sizes = (problem.features.shape[1], hidden, problem.outputs)
    form: dict[str, Any] = {**FEATURES_FORM, **DROPOUT, "filter_dropout": 0.0}
    filtered = {**form, "degree": degree}
    with seeded(seed):
        models = {
            "learned filter": get_model("lon", *sizes, **filtered),
            "learned filter per unit": get_model(
                "lon", *sizes, degree=degree, shared=False, **form
            ),
            "SGC": get_model("sgc", *sizes, degree=POWER, transform="mlp", **form),
            "SIGN": Sign(*sizes, degree),
            "MLP": MLP(*sizes, **DROPOUT),
        }
    return [_train(name, model, config, problem, split) for name, model in models.items()]


def _train(name: str, model: Model, config: Config, problem: Problem, split: Split) -> Contender:
    member = Member(model, config.settings, config.seed, split.train, split.val)
    began = time.perf_counter()
    (result,) = Population([member], problem).run()
    seconds = time.perf_counter() - began
    model.load_state_dict(result.state, strict=False)
    chosen = predict(model, problem).argmax(1)
    right = (chosen == problem.labels.cpu())[split.test]
    size = sum(p.numel() for p in model.parameters())
    return Contender(name, float(right.float().mean()), seconds, result.epochs, size)


def contenders_text(found: list[Contender]) -> str:
    """A table of contenders, one line each.

    >>> print(contenders_text([Contender("SGC", 0.5, 1.0, 3, 10)]))
    model                       accuracy  seconds  epochs   weights
    SGC                           50.0 %      1.0       3        10
    """
    lines = [f"{'model':<26}  {'accuracy':>8}  {'seconds':>7}  {'epochs':>6}  {'weights':>8}"]
    for one in found:
        score = f"{100 * one.score:.1f} %"
        numbers = f"{one.seconds:>7.1f}  {one.epochs:>6}  {one.parameters:>8,}"
        lines.append(f"{one.name:<26}  {score:>8}  {numbers}")
    return "\n".join(lines)


@dataclasses.dataclass(frozen=True)
class Field:
    """The graphs that models are compared on, and how long they are trained.

    >>> print(Field(nodes=1000, edges=5000, labelled=100))
    1,000 nodes, 5,000 edges, 16 features, 10 classes, 100 labelled nodes, degree 10
    """

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


def measure_contests(folder: Path, field: Field, tell: Callable[[str], None]) -> list[Contest]:
    """All contenders on each kind of labels; each seed has a graph of its own.

    Args:
        folder: for files.
        field: sizes and budgets.
        tell: hears of each kind.
    """
    shape = {key: getattr(field, key) for key in ("nodes", "edges", "features", "classes")}
    budget = {key: getattr(field, key) for key in ("degree", "epochs", "patience", "batch_rows")}
    contests = []
    for name, kind in LABELS.items():
        tell(f"models: {name}")
        found: list[list[Contender]] = []
        for seed in field.seeds:
            generate(folder, **shape, **kind, labelled=field.labelled, seed=seed)
            found.append(compare_on_rows(folder, **budget, seed=seed))
            shutil.rmtree(folder)
        for several in zip(*found, strict=True):
            scores, seconds = ([getattr(c, key) for c in several] for key in ("score", "seconds"))
            contests.append(
                Contest(
                    graph=name,
                    model=several[0].name,
                    scores=scores,
                    seconds=seconds,
                    weights=several[0].parameters,
                )
            )
    return contests
