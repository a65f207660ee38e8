"""From data and a configuration to trained models: the steps that every face shares.

The command line, the estimator and the experiments all come through here; none of them builds a
model or a population by itself. Nothing here touches files.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from longnn.config import Config
from longnn.data import NodeDataset, Scaling, Split
from longnn.graphs import GraphOperator
from longnn.nn import Model
from longnn.registry import MODELS, get_model
from longnn.training._memory import count_fitting, fits
from longnn.training._metrics import classification_scores, regression_scores
from longnn.training._population import Member, Population, Result
from longnn.training._problem import Problem


def choose_device(name: str) -> torch.device:
    """``"auto"`` is the GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"Expected `device` to be auto, cpu or cuda (got {name!r})") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"Expected a CUDA device for device={name!r} (this machine has none)")
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
        self_loops=config.options.get("self_loops", MODELS[config.model].model.self_loops),
        dtype=dtype,
    )
    y = data.y if data.y is not None else torch.full((dataset.num_nodes,), -1)
    return Problem.make(
        scaling.apply(data.x).to(dtype),
        operator.to(device if device is not None else choose_device(config.device)),
        y,
        task=dataset.task,
        classes=max(dataset.num_classes, 1),
    )


def make_model(config: Config, in_channels: int, out_channels: int, seed: int) -> Model:
    """A model with weights drawn from the seed; the global generator is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return get_model(
            config.model,
            in_channels,
            config.hidden_channels,
            out_channels,
            **config.options,
        )


def make_population(
    configs: Sequence[Config],
    problem: Problem,
    splits: Sequence[Split],
    *,
    record_filters: bool = False,
) -> Population:
    """One member per configuration and split; ``config.seed`` is the member's own."""
    members = [
        Member(
            make_model(config, problem.features.shape[1], problem.outputs, config.seed),
            config.settings,
            config.seed,
            split.train,
            split.val,
        )
        for config, split in zip(configs, splits, strict=True)
    ]
    return Population(members, problem, record_filters=record_filters)


def run_chunked(
    configs: Sequence[Config],
    problem: Problem,
    splits: Sequence[Split],
    *,
    record_filters: bool = False,
    begun: Mapping[int, int] | None = None,
    run: Callable[[Population, int], list[Result]] | None = None,
) -> list[Result]:
    """Train members together as far as memory allows; results in the order of the members.

    Usually that is one population. Where memory is short it is several, one after the other; a
    member's result does not depend on who is trained with it.

    Args:
        configs, splits: of the members, as in :func:`make_population`.
        begun: chunks that were begun before, as {first member: how many}; they are kept.
        run: trains a population, given the number of its first member.

    Raises:
        MemoryError: where a single member does not fit.
    """

    def make(start: int, count: int) -> Population:
        part = slice(start, start + count)
        return make_population(configs[part], problem, splits[part], record_filters=record_filters)

    results: list[Result] = []
    begun = begun or {}
    size = begun.get(0) or count_fitting(lambda n: make(0, n), len(configs), problem.device)
    while len(results) < len(configs):
        start = len(results)
        size = min(begun.get(start, size), len(configs) - start)

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


def trained_model(
    config: Config, in_channels: int, out_channels: int, state: dict[str, Tensor]
) -> Model:
    """A model with given weights, ready to evaluate."""
    model = make_model(config, in_channels, out_channels, config.seed)
    missing = [name for name, _ in model.named_parameters() if name not in state]
    if missing:
        raise ValueError(f"Expected weights for {missing[0]!r} (got none)")
    parameters = dict(model.named_parameters())
    for name, value in state.items():
        if name not in parameters or parameters[name].shape != value.shape:
            raise ValueError(f"Expected other weights than {name!r} {tuple(value.shape)}")
        with torch.no_grad():
            parameters[name].copy_(value)
    return model.eval()


@torch.no_grad()
def predict(model: Model, problem: Problem, *, offset: float = 0.0, scale: float = 1.0) -> Tensor:
    """Probabilities (nodes, classes), or values (nodes,), on the CPU; dropout is off."""
    model = model.eval().to(problem.device, problem.dtype)
    scores = model.scores(problem.features, problem.operator)
    if problem.task == "classification":
        return torch.softmax(scores, dim=1).cpu()
    return (offset + scale * scores[:, 0]).cpu()


def score(predicted: Tensor, dataset: NodeDataset, mask: Tensor) -> dict[str, float]:
    """Scores of predictions over the masked nodes."""
    if dataset.task == "classification":
        return classification_scores(predicted, dataset.data.y, mask)
    return regression_scores(predicted, dataset.data.y, mask)


def describe_filters(model: Model, start: Model, *, points: int = 101) -> list[dict[str, Any]]:
    """What each filter of a model has become: response, norm, basis; plain numbers."""
    grid = torch.linspace(0, 2, points, dtype=torch.float64)
    described = []
    for f, initial in zip(model.filters(), start.filters(), strict=True):
        with torch.no_grad():
            response = f.response(grid).cpu()
            norm = f.norm().cpu()
        described.append(
            {
                "basis": f.basis.name,
                "degree": f.degree,
                "channels": f.channels,
                "learned": _scalars(f.basis_parameters()) if f.learn_basis else {},
                "start": _scalars(initial.basis_parameters()),
                "eigenvalues": grid.tolist(),
                "response": response.tolist(),
                "norm": norm.tolist(),
            }
        )
    return described


def _scalars(values: dict[str, Tensor]) -> dict[str, float]:
    return {name: float(v.detach()) for name, v in values.items() if v.dim() == 0}
