"""The steps from data and a configuration to a trained model and its predictions.

:class:`~longnn.training.Job` puts them in order; nobody else builds a model or a population for
itself. Nothing here touches files.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from longnn.config import Config
from longnn.data import DataError, NodeDataset, Split
from longnn.data._convert import undirected
from longnn.data._scaling import Scaling
from longnn.graphs._adjacency import SelfLoops
from longnn.metrics import METRICS, headline, score_classes, score_labels, score_numbers
from longnn.nn import Directed, Model, truncate_filters
from longnn.nn._ensemble import Ensemble
from longnn.nn._inputs import WithInputs, input_table
from longnn.nn._transform import seeded
from longnn.nn._truncate import count_products
from longnn.registry import find_model, get_model
from longnn.store._ranks import Ranks
from longnn.training._intervals import Intervals, Opinion
from longnn.training._known import KnownFilter, Told
from longnn.training._memory import require_room
from longnn.training._population import Member, Population, Result, behind_inputs
from longnn.training._problem import (
    EVERY,
    Problem,
    loss_weights,
    require_row_degree,
    self_loops_of,
)
from longnn.training._readout import (
    Readout,
    balancing_factors,
    best_threshold,
    class_counts,
    fit_shift,
    fit_temperature,
    frequency_shift,
)

#: Rows of stored terms that are predicted at once.
ROWS = 8192


def choose_device(name: str) -> torch.device:
    """The device of a name; ``"auto"`` is the GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    unknown = ValueError(f"Expected `device` to be auto, cpu or cuda (got {name!r})")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise unknown from error
    if device.type not in ("cpu", "cuda"):
        raise unknown
    count = torch.cuda.device_count() if device.type == "cuda" else 0
    if device.type == "cuda" and (device.index or 0) >= count:
        has = f"{count}" if count else "none"
        raise ValueError(f"Expected a CUDA device for device={name!r} (this machine has {has})")
    return device


def make_problem(
    dataset: NodeDataset,
    config: Config,
    scaling: Scaling,
    *,
    device: torch.device | None = None,
    members: Sequence[Config] = (),
    memory: int | None = None,
    ranks: Ranks | None = None,
) -> Problem:
    """Features, operator and labels as the model wants them, on the device.

    Args:
        dataset: whose backing has the features and the graph.
        config: of the model; it decides on the precision.
        scaling: of the features.
        device: where to train; by default the configuration's.
        members: what is trained in its place: they share features and graph, and may treat self
            loops otherwise.
        memory: bytes that computing stored terms may use.
        ranks: who computes and trains; by default the caller alone.

    Raises:
        DataError: on disk for a model that has no form on rows.
    """
    dataset = _as_directed(dataset, config)
    backing = dataset.backing
    own = self_loops_of(config)
    degrees: dict[SelfLoops, int] = {own: 0}
    for member in members or [config]:
        degree = require_row_degree(member) if backing.by_rows else 0
        loops = self_loops_of(member)
        degrees[loops] = max(degree, degrees.get(loops, 0))
    features, variants = backing.inputs(
        scaling,
        degrees,
        dtype=torch.float64 if config.precision == "float64" else torch.float32,
        device=device if device is not None else choose_device(config.device),
        memory=memory,
        ranks=ranks,
    )
    y = dataset.data.y if dataset.data.y is not None else torch.full((dataset.num_nodes,), -1)
    kind: dict[str, Any] = {"task": dataset.task, "classes": dataset.outputs}
    made = Problem.make(features, variants[own], y, **kind)
    rounded = config.precision == "tf32"
    ranks, weight = Ranks() if ranks is None else ranks, dataset.node_weight
    weight = None if weight is None else weight.to(made.device, made.dtype)
    return dataclasses.replace(made, variants=variants, rounded=rounded, ranks=ranks, weight=weight)


def decide_direction(config: Config, dataset: NodeDataset) -> Config:
    """The configuration with ``direction="auto"`` decided: the double cover where there are arcs.

    Raises:
        DataError: for an operator of arcs on a graph that has none.
    """
    if config.direction == "auto" and dataset.directed:
        return config.replace(direction="cover")
    _as_directed(dataset, config)
    return config


def _as_directed(dataset: NodeDataset, config: Config) -> NodeDataset:
    """The graph as directed or not as the configuration wants it."""
    wanted = config.direction == "cover"
    if wanted and not dataset.directed:
        raise DataError(
            f"Expected a graph that keeps its arcs for direction={config.direction!r} (got the "
            f"undirected {dataset.name!r}); load it with directed=true"
        )
    if dataset.directed and config.direction == "auto":
        raise DataError(
            "Expected an undirected graph, as the models were trained on (got arcs); load it with "
            "directed=false"
        )
    if wanted or not dataset.directed:
        return dataset
    if dataset.backing.by_rows:
        raise DataError(
            "Expected direction=cover, since this graph is on disk with its arcs (got "
            f"{config.direction!r}); load it with directed=false"
        )
    return undirected(dataset)


def make_model(
    config: Config,
    in_channels: int,
    out_channels: int,
    *,
    types: int = 0,
    table: Tensor | None = None,
) -> Model:
    """A model, its weights drawn from ``config.seed``; the global generators are left alone.

    Args:
        config: what model.
        in_channels, out_channels: features and outputs.
        types: of edges, for which a model that can tell them apart has filters of their own.
        table: of the inputs, where they are not the features, see
            :func:`~longnn.nn._inputs.input_table`.

    Raises:
        ValueError: where there is no room for it, or for trees on other inputs.
    """
    cls = find_model(config.model).model
    if config.inputs != "columns" and not cls.by_steps:
        raise ValueError(
            f"Expected inputs=columns for model={config.model!r}, which has thresholds and counts "
            f"of neighbours of its own (got {config.inputs!r})"
        )
    inputs, options = in_channels if table is None else len(table), dict(config.options)
    require_room(config, 0, inputs, out_channels)
    directed = config.direction == "cover" and cls.uses_graph
    if directed and cls.joins_copies:
        options["copies"] = 2
    elif directed:
        inputs *= 2
    if cls.takes_types:
        options["types"] = types
    with seeded(config.seed):
        model = get_model(config.model, inputs, config.hidden_channels, out_channels, **options)
    model = Directed(model) if directed else model
    return model if table is None else WithInputs(model, in_channels, config.inputs, table)


def _table_of(config: Config, problem: Problem) -> Tensor | None:
    """The table of the inputs of a model; None where they are the features."""
    if config.inputs == "columns":
        return None
    copies = 2 if problem.operator.direction == "cover" else 1
    return input_table(config.inputs, problem.features, problem.operator, copies)


def make_members(
    configs: Sequence[Config],
    problem: Problem,
    splits: Sequence[Split],
    *,
    classes: Sequence[str] = (),
) -> list[Member]:
    """One member per configuration and split, its model built; ``config.seed`` is its own.

    ``classes`` are the names that ``class_weight`` may use.
    """
    sizes = (problem.features.shape[1], problem.outputs)
    types = len(problem.operator.types)
    members = []
    kinds = {config.inputs: config for config in configs}
    tables = {kind: _table_of(config, problem) for kind, config in kinds.items()}
    for config, split in zip(configs, splits, strict=True):
        weight = loss_weights(problem, split.train, config.settings.class_weight, classes)
        nodes = problem.features.shape[0]
        if problem.by_rows:
            nodes = min(nodes, config.settings.batch_rows)
        require_room(config, nodes, *sizes)
        model = make_model(config, *sizes, types=types, table=tables[config.inputs])
        members.append(Member(model, config.settings, config.seed, split.train, split.val, weight))
    return members


def make_population(
    configs: Sequence[Config],
    problem: Problem,
    splits: Sequence[Split],
    *,
    record_filters: bool = False,
) -> Population:
    """A population of one member per configuration and split."""
    members, seen = behind_inputs(make_members(configs, problem, splits), problem)
    return Population(members, seen, record_filters=record_filters)


@dataclasses.dataclass(frozen=True, eq=False)
class Fitted:
    """A trained member: what was asked, what came of it, and what it predicts."""

    config: Config
    split: Split
    result: Result
    model: Model  # with the best weights, in evaluation mode
    start: tuple[dict[str, float], ...]  # each filter's basis before training: a and b
    readout: Readout  # how its outputs become predictions
    predicted: Tensor  # probabilities (nodes, classes), or values (nodes,); on the CPU
    members: tuple["FittedMember", ...] = ()  # of an ensemble, those without a vote too
    intervals: Intervals | None = None  # what validation nodes say of its errors
    disagreement: Tensor | None = None  # of an ensemble's members, in the unit of its values
    known: KnownFilter | None = None  # how known answers correct predictions
    told: Told | None = None  # these answers, where the filter is used
    plain: Tensor | None = None  # what it predicts without them, where they change it

    @property
    def opinion(self) -> Opinion:
        """What it predicts, and how far its members disagree."""
        return Opinion(self.predicted, self.disagreement)

    @property
    def is_sound(self) -> bool:
        """Whether there was anything to keep."""
        return self.result.best_epoch > 0 and bool(torch.isfinite(self.predicted).all())

    def check(self) -> None:
        """Raise ValueError where training diverged before there was anything to keep."""
        if not self.is_sound:
            raise ValueError(
                f"Expected training to stay finite (with seed {self.config.seed} it diverged in "
                f"epoch {self.result.epochs}); lower the learning rates, e.g. lr_transform=0.001"
            )


@dataclasses.dataclass(frozen=True, eq=False)
class FittedMember:
    """A member of an ensemble: its name, its weight (0 without a vote), and itself."""

    name: str
    weight: float
    fitted: Fitted


def load_weights(model: Model, state: Mapping[str, Tensor]) -> Model:
    """The model with given weights, ready to evaluate."""
    missing = [name for name, _ in model.named_parameters() if name not in state]
    if missing:
        raise ValueError(f"Expected weights for {missing[0]!r} (got none)")
    kinds = [value.dtype for value in state.values() if value.is_floating_point()]
    model = model.to(kinds[0]) if kinds else model
    parameters = dict(model.named_parameters())
    for name, value in state.items():
        parameter = parameters.get(name)
        text = parameter is not None and parameter.dtype == torch.uint8  # of trees, of any length
        if parameter is None or (parameter.shape != value.shape and not text):
            raise ValueError(f"Expected other weights than {name!r} {tuple(value.shape)}")
        with torch.no_grad():
            parameter.data = value.clone() if text else parameter.data.copy_(value)
    return model.eval()


@torch.no_grad()
def raw_scores(model: Model, problem: Problem) -> Tensor:
    """The outputs of a model (nodes, outputs), on the CPU; dropout is off."""
    own = problem.ranks.share(problem.num_nodes)
    scores = torch.cat(list(score_batches(model, problem, rows=own)))
    return problem.ranks.join(scores, problem.num_nodes)


def score_batches(
    model: Model, problem: Problem, size: int = ROWS, *, rows: slice = EVERY
) -> Iterator[Tensor]:
    """The same of some nodes after the other; a graph in memory is one batch."""
    return (scores for scores, _ in heard_batches(model, problem, size, rows=rows))


@torch.no_grad()
def heard_batches(
    model: Model, problem: Problem, size: int = ROWS, *, rows: slice = EVERY
) -> Iterator[tuple[Tensor, Tensor | None]]:
    """The same, and how far members of an ensemble disagree on them; None for a single model."""
    model = model.eval().to(problem.device, problem.dtype)
    for x in problem.batches(size, rows):
        if isinstance(model, Ensemble):
            each = model.scores_of_each(x, problem.variants.__getitem__)
            yield model.join(each).cpu(), model.disagreement(each).cpu()
        else:
            yield model.scores(x, problem.operator).cpu(), None


def predict(model: Model, problem: Problem, readout: Readout | None = None) -> Tensor:
    """Probabilities (nodes, classes), or values (nodes,), on the CPU; dropout is off.

    >>> from longnn.graphs import GraphOperator
    >>> from longnn.nn import MLP
    >>> P = GraphOperator.from_edge_index(torch.tensor([[0, 1], [1, 0]]))
    >>> problem = Problem.make(torch.eye(2), P, torch.tensor([0, 1]))
    >>> torch.allclose(predict(MLP(2, 4, 2), problem).sum(1), torch.ones(2))
    True
    """
    readout = Readout(problem.task) if readout is None else readout
    return readout.predict(raw_scores(model, problem))


def fit_readout(
    config: Config,
    problem: Problem,
    result: Result,
    scores: Tensor,  # (nodes, outputs), on the CPU
    split: Split,
) -> Readout:
    """What is learned on the validation nodes after training: temperature, shift, threshold; and
    the factors of unequal classes."""
    readout = Readout(problem.task, offset=result.offset, scale=result.scale)
    labels, val = problem.labels.cpu(), split.val.cpu()
    if problem.task == "regression" or not bool(torch.isfinite(scores).all()):
        return readout
    if problem.task == "classification":
        val = val & (labels >= 0)
        readout = dataclasses.replace(readout, positive=problem.positive)
    weight = None if problem.weight is None else problem.weight.cpu()
    weighs = None if weight is None else weight[val] / weight[val].mean()
    delta = _shift_of(config, problem, split)
    if delta is not None:
        temperature, shift = fit_shift(scores[val], labels[val], delta)
        readout = dataclasses.replace(readout, temperature=temperature, shift=shift)
    elif config.calibrate and bool(val.any()):
        temperature = fit_temperature(scores[val], labels[val], problem.task, weighs)
        readout = dataclasses.replace(readout, temperature=temperature)
    if config.threshold:
        return dataclasses.replace(readout, threshold=config.threshold)
    headline_of = METRICS[problem.metric].headline
    if "unequal classes" in headline_of and config.settings.class_weight == "none":
        known = class_counts(labels, (split.train | split.val).cpu(), problem.outputs, weight)
        return dataclasses.replace(readout, factors=balancing_factors(known))
    if "rare class" not in headline_of or problem.outputs != 2:
        return readout
    hit = labels[val] == problem.positive
    if problem.task != "classification" or not bool(hit.any()):
        return readout
    probability = readout.predict(scores[val])[:, problem.positive]
    return dataclasses.replace(readout, threshold=best_threshold(probability, hit, weighs))


def _shift_of(config: Config, problem: Problem, split: Split) -> Tensor | None:
    """How frequencies of classes shift from training to validation nodes, if that is to be used.

    Not where classes are weighted, or scored alike: then frequencies are not to matter. Nor where
    nodes are: how often chance makes such a difference is known of counts.
    """
    wanted = config.calibrate and config.frequencies == "auto"
    unequal = "unequal classes" in METRICS[problem.metric].headline
    alike = config.settings.class_weight != "none" or unequal
    if problem.task != "classification" or not wanted or alike or problem.weight is not None:
        return None
    labels, sets = problem.labels.cpu(), (split.train.cpu(), split.val.cpu())
    return frequency_shift(*(class_counts(labels, mask, problem.outputs) for mask in sets))


def score(
    predicted: Tensor, dataset: NodeDataset, mask: Tensor, readout: Readout | None = None
) -> dict[str, float]:
    """Scores of predictions over the masked nodes; ``readout`` says which class is predicted."""
    y, mask, weight = dataset.data.y.cpu(), mask.cpu(), dataset.node_weight
    p, known = predicted.cpu()[mask], y[mask]
    weight = None if weight is None else weight[mask]
    if dataset.task == "regression":
        return score_numbers(p, known, targets=dataset.targets, weight=weight)
    chosen = None if readout is None else readout.choose(predicted).cpu()[mask]
    if dataset.task == "multilabel":
        return score_labels(p, known, chosen=chosen, weight=weight)
    # A later graph may have more of what was the rarer class.
    positive = headline(y, dataset.task)[1] if readout is None else readout.positive
    return score_classes(p, known, chosen=chosen, positive=positive, weight=weight)


def basis_of(f: object) -> dict[str, float]:
    """The numbers of a filter's basis."""
    values = f.basis_parameters()  # type: ignore[attr-defined]
    return {name: float(v.detach()) for name, v in values.items() if v.dim() == 0}


#: Shares of the squared norm at which a model is measured.
SHARES = (1.0, 0.9999, 0.999, 0.99, 0.97, 0.95, 0.9, 0.8, 0.5)


@dataclasses.dataclass(frozen=True)
class TruncatedScore:
    """A model with truncated filters: what was kept, what it costs, how well it predicts."""

    share: float  # of each filter's squared norm
    degrees: tuple[int, ...]  # of the filters, in the order of the blocks
    products: int  # with the graph, in all: the sum of the degrees
    val: dict[str, float]  # scores on the validation nodes
    test: dict[str, float]


def truncation_curve(
    model: Model,
    problem: Problem,
    dataset: NodeDataset,
    split: Split,
    readout: Readout | None = None,
    *,
    shares: Sequence[float] = SHARES,
) -> list[TruncatedScore]:
    """The scores of a trained model against the number of products, from all filters to short ones.

    Args:
        model: trained, with filters in orthonormal bases.
        problem, dataset, split: what it was trained on.
        readout: how its outputs become predictions.
        shares: of each filter's squared norm to keep.

    Raises:
        ValueError: as :func:`~longnn.nn.truncate_filters`.

    >>> from longnn.config import Config
    >>> from longnn.data import csbm, make_split
    >>> from longnn.training import Job
    >>> data = csbm(num_nodes=40, num_features=8)
    >>> table = {"model": "lon-deep", "blocks": 2, "degree": 3, "epochs": 3, "device": "cpu"}
    >>> job = Job(data, [Config.from_dict(table)], [make_split(data, None, 0)])
    >>> (one,) = job.run()
    >>> curve = truncation_curve(one.model, job.problem_of(0), data, one.split, one.readout)
    >>> curve[0].products, curve[0].products > curve[-1].products
    (6, True)
    """
    points = []
    for share in shares:
        shorter = truncate_filters(model, share)
        predicted = predict(shorter, problem, readout)
        val, test = (score(predicted, dataset, mask, readout) for mask in (split.val, split.test))
        degrees = tuple(f.degree for f in shorter.filters())
        points.append(TruncatedScore(share, degrees, count_products(shorter), val, test))
    return points
