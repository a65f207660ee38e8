"""From data and configurations to trained models: group by shape, train, predict.

The command line, the estimator, the search and the studies all come through here; none of them
builds a model or a population for itself. Nothing here touches files.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from longnn.config import Config
from longnn.data import NodeDataset, Scaling, Split
from longnn.graphs import GraphOperator
from longnn.nn import Model, seeded
from longnn.registry import find_model, get_model
from longnn.training._memory import count_fitting, fits, require_room
from longnn.training._metrics import classification_scores, multilabel_scores, regression_scores
from longnn.training._objective import check_metric
from longnn.training._population import Member, Population, Result
from longnn.training._problem import Problem, headline
from longnn.training._readout import Readout, best_threshold, fit_temperature
from longnn.training._shape import shape_of
from longnn.training._weights import loss_weights

OnEpoch = Callable[[Population], None]
#: Trains a population, given the number of its first member among all.
Run = Callable[[Population, int], list[Result]]


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
    dataset: NodeDataset, config: Config, scaling: Scaling, *, device: torch.device | None = None
) -> Problem:
    """Features, operator and labels as the model wants them, on the device."""
    data = dataset.data
    dtype = torch.float64 if config.precision == "float64" else torch.float32
    operator = GraphOperator.from_edge_index(
        data.edge_index,
        data.edge_weight if "edge_weight" in data else None,
        dataset.num_nodes,
        self_loops=_self_loops(config),
        dtype=dtype,
    )
    y = data.y if data.y is not None else torch.full((dataset.num_nodes,), -1)
    return Problem.make(
        scaling.apply(data.x).to(dtype),
        operator.to(device if device is not None else choose_device(config.device)),
        y,
        task=dataset.task,
        classes=dataset.outputs,
    )


def _self_loops(config: Config) -> Any:
    """What becomes of self loops, by the option of the model or by the model."""
    return config.options.get("self_loops", find_model(config.model).model.self_loops)


def make_model(config: Config, in_channels: int, out_channels: int) -> Model:
    """A model, its weights drawn from ``config.seed``; the global generators are left alone.

    Raises:
        ValueError: where there is no room for it.
    """
    require_room(config, 0, in_channels, out_channels)
    with seeded(config.seed):
        return get_model(
            config.model, in_channels, config.hidden_channels, out_channels, **config.options
        )


def make_members(
    configs: Sequence[Config],
    problem: Problem,
    splits: Sequence[Split],
    *,
    classes: Sequence[str] = (),
    weights: Sequence[Tensor | None] | None = None,
) -> list[Member]:
    """One member per configuration and split, its model built; ``config.seed`` is its own.

    ``classes`` are the names that ``class_weight`` may use, ``weights`` those of nodes (nodes,).
    """
    sizes = (problem.features.shape[1], problem.outputs)
    given = [None] * len(configs) if weights is None else weights
    members = []
    for config, split, own in zip(configs, splits, given, strict=True):
        chosen = config.settings.class_weight
        weight = loss_weights(problem, split.train, chosen, classes, own)
        require_room(config, problem.features.shape[0], *sizes)
        model = make_model(config, *sizes)
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
    members = make_members(configs, problem, splits)
    return Population(members, problem, record_filters=record_filters)


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

    def check(self) -> None:
        """Raise ValueError where training diverged before there was anything to keep."""
        if self.result.best_epoch == 0 or not bool(torch.isfinite(self.predicted).all()):
            raise ValueError(
                f"Expected training to stay finite (with seed {self.config.seed} it diverged in "
                f"epoch {self.result.epochs}); lower the learning rates, e.g. lr_transform=0.001"
            )


class Job:
    """Trainings on one dataset, prepared: splits, problems and models are made, nothing is trained.

    What is wrong with a configuration is found when a job is made.

    Args:
        dataset: what to learn.
        configs, splits: one of each per member; ``config.seed`` is the member's own.
        device: where to train; by default each configuration's own.
        weights: of each member's nodes in the loss, (nodes,), or None for equal weights.
        record_filters: keep the first filter's coefficients at every epoch.
    """

    def __init__(
        self,
        dataset: NodeDataset,
        configs: Sequence[Config],
        splits: Sequence[Split],
        *,
        device: str | None = None,
        weights: Sequence[Tensor | None] | None = None,
        record_filters: bool = False,
    ) -> None:
        self.dataset, self.configs, self.splits = dataset, configs, splits
        self.record_filters = record_filters
        for config in configs:
            if config.settings.monitor not in ("score", "loss"):
                check_metric(config.settings.monitor, dataset.task)
        groups: dict[object, list[int]] = {}
        for i, config in enumerate(configs):
            groups.setdefault(shape_of(config), []).append(i)
        self.groups = list(groups.values())
        self.scalings: list[Scaling] = []
        self.problems: list[Problem] = []
        self.members: dict[int, Member] = {}
        self.starts: dict[int, tuple[dict[str, float], ...]] = {}
        known: dict[object, tuple[Scaling, Problem]] = {}
        for places in self.groups:
            first = configs[places[0]]
            where = choose_device(first.device if device is None else device)
            key = (first.scale, first.precision, _self_loops(first), where)
            if key not in known:
                scaling = Scaling.fit(first.scale, dataset)
                known[key] = scaling, make_problem(dataset, first, scaling, device=where)
            scaling, problem = known[key]
            made = make_members(
                [configs[i] for i in places],
                problem,
                [splits[i] for i in places],
                classes=dataset.classes,
                weights=None if weights is None else [weights[i] for i in places],
            )
            self.scalings.append(scaling)
            self.problems.append(problem)
            for i, member in zip(places, made, strict=True):
                self.members[i] = member
                self.starts[i] = tuple(_scalars(f) for f in member.model.filters())

    def problem_of(self, member: int) -> Problem:
        """What a member is trained on, by its number."""
        (group,) = (i for i, places in enumerate(self.groups) if member in places)
        return self.problems[group]

    def run(
        self, *, begun: Mapping[int, int] | None = None, run: Run | None = None
    ) -> list[Fitted]:
        """Train all members, those of one shape together as far as memory allows, and predict.

        Args:
            begun: chunks that were begun before, as {first member: how many}; they are kept.
            run: trains a population, given the number of its first member.

        Returns:
            the trained members, in the order of the configurations.

        Raises:
            MemoryError: where a single member does not fit.
        """
        fitted: dict[int, Fitted] = {}
        for places, problem in zip(self.groups, self.problems, strict=True):
            results = run_chunked(
                [self.members[i] for i in places],
                problem,
                record_filters=self.record_filters,
                begun={places.index(i): n for i, n in (begun or {}).items() if i in places},
                run=None if run is None else functools.partial(_numbered, run, places),
            )
            for i, result in zip(places, results, strict=True):
                fitted[i] = self._fitted(i, problem, result)
        return [fitted[i] for i in range(len(self.configs))]

    def _fitted(self, i: int, problem: Problem, result: Result) -> Fitted:
        model = self.members[i].model
        assert isinstance(model, Model)  # training knows it by less
        load_weights(model, result.state)
        config, split = self.configs[i], self.splits[i]
        scores = raw_scores(model, problem)
        readout = fit_readout(config, problem, result, scores, split.val)
        predicted = readout.predict(scores)
        return Fitted(config, split, result, model, self.starts[i], readout, predicted)


def _numbered(run: Run, places: Sequence[int], population: Population, first: int) -> list[Result]:
    """Train members of one shape, the first by its number among all."""
    return run(population, places[first])


def fit(
    dataset: NodeDataset,
    configs: Sequence[Config],
    splits: Sequence[Split],
    *,
    device: str | None = None,
    weights: Sequence[Tensor | None] | None = None,
    record_filters: bool = False,
    on_epoch: OnEpoch | None = None,
) -> list[Fitted]:
    """Train each configuration on its split, those of one shape together; see :class:`Job`.

    >>> from longnn.data import csbm, make_split
    >>> data = csbm(num_nodes=40, num_features=8)
    >>> (one,) = fit(data, [Config.from_dict({"epochs": 3})], [make_split(data, None, 0)])
    >>> one.predicted.shape
    torch.Size([40, 2])
    """
    job = Job(
        dataset, configs, splits, device=device, weights=weights, record_filters=record_filters
    )
    return job.run(run=lambda population, _: population.run(on_epoch))


def run_chunked(
    members: Sequence[Member],
    problem: Problem,
    *,
    record_filters: bool = False,
    begun: Mapping[int, int] | None = None,
    run: Run | None = None,
) -> list[Result]:
    """Train members together as far as memory allows; results in the order of the members.

    Usually that is one population. Where memory is short it is several, one after the other; a
    member's result does not depend on who is trained with it. Arguments as in :meth:`Job.run`.
    """

    def make(start: int, count: int) -> Population:
        chunk = members[start : start + count]
        return Population(chunk, problem, record_filters=record_filters)

    results: list[Result] = []
    begun = begun or {}
    size = begun.get(0) or count_fitting(lambda n: make(0, n), len(members), problem.device)
    while len(results) < len(members):
        start = len(results)
        size = min(begun.get(start, size), len(members) - start)

        def train(start: int = start, size: int = size) -> None:
            population = make(start, size)
            results.extend(population.run() if run is None else run(population, start))

        if fits(train, problem.device):
            continue
        if size == 1:
            raise MemoryError(
                f"Expected room for one model on {problem.device} (it ran out of memory); use "
                "fewer hidden channels or another device"
            )
        begun = {first: count for first, count in begun.items() if first != start}
        size //= 2
    return results


def load_weights(model: Model, state: Mapping[str, Tensor]) -> Model:
    """The model with given weights, ready to evaluate."""
    missing = [name for name, _ in model.named_parameters() if name not in state]
    if missing:
        raise ValueError(f"Expected weights for {missing[0]!r} (got none)")
    model = model.to(next(iter(state.values())).dtype)
    parameters = dict(model.named_parameters())
    for name, value in state.items():
        if name not in parameters or parameters[name].shape != value.shape:
            raise ValueError(f"Expected other weights than {name!r} {tuple(value.shape)}")
        with torch.no_grad():
            parameters[name].copy_(value)
    return model.eval()


@torch.no_grad()
def raw_scores(model: Model, problem: Problem) -> Tensor:
    """The outputs of a model (nodes, outputs), on the CPU; dropout is off."""
    model = model.eval().to(problem.device, problem.dtype)
    return model.scores(problem.features, problem.operator).cpu()


def predict(model: Model, problem: Problem, readout: Readout | None = None) -> Tensor:
    """Probabilities (nodes, classes), or values (nodes,), on the CPU; dropout is off."""
    readout = Readout(problem.task) if readout is None else readout
    return readout.predict(raw_scores(model, problem))


def fit_readout(
    config: Config,
    problem: Problem,
    result: Result,
    scores: Tensor,  # (nodes, outputs), on the CPU
    val: Tensor,  # (nodes,) bool
) -> Readout:
    """What is learned on the validation nodes after training: temperature and threshold."""
    readout = Readout(problem.task, offset=result.offset, scale=result.scale)
    labels, val = problem.labels.cpu(), val.cpu()
    if problem.task == "regression" or not bool(torch.isfinite(scores).all()):
        return readout
    if problem.task == "classification":
        val = val & (labels >= 0)
        readout = dataclasses.replace(readout, positive=problem.positive)
    if config.calibrate and bool(val.any()):
        temperature = fit_temperature(scores[val], labels[val], problem.task)
        readout = dataclasses.replace(readout, temperature=temperature)
    if config.threshold:
        return dataclasses.replace(readout, threshold=config.threshold)
    if problem.metric != "average_precision" or problem.outputs != 2:
        return readout
    hit = labels[val] == problem.positive
    if problem.task != "classification" or not bool(hit.any()):
        return readout
    probability = readout.predict(scores[val])[:, problem.positive]
    return dataclasses.replace(readout, threshold=best_threshold(probability, hit))


def score(
    predicted: Tensor, dataset: NodeDataset, mask: Tensor, readout: Readout | None = None
) -> dict[str, float]:
    """Scores of predictions over the masked nodes; ``readout`` says which class is predicted."""
    y = dataset.data.y
    if dataset.task == "regression":
        return regression_scores(predicted, y, mask, targets=dataset.targets)
    chosen = None if readout is None else readout.choose(predicted)
    if dataset.task == "multilabel":
        return multilabel_scores(predicted, y, mask, chosen=chosen)
    positive = headline(y, dataset.task)[1]
    return classification_scores(predicted, y, mask, chosen=chosen, positive=positive)


def _scalars(f: object) -> dict[str, float]:
    """The numbers of a filter's basis."""
    values = f.basis_parameters()  # type: ignore[attr-defined]
    return {name: float(v.detach()) for name, v in values.items() if v.dim() == 0}
