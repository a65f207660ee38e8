"""A run as a program of torch: features and graph arrays in, predictions out, longnn not needed.

The program is recorded by ``torch.export`` for any number of nodes and arcs. It holds all that
happens to encoded features: scaling, self loops, normalisation of the graph, the models of all
repeats and the mean of what they predict.
"""

import copy
import importlib.metadata
import io
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from longnn._base.files import atomic_path, writing
from longnn._base.version import __version__
from longnn.filters import PolynomialFilter
from longnn.graphs import Operator
from longnn.graphs._adjacency import SelfLoops
from longnn.graphs._edges import EdgeOperator
from longnn.nn import Model
from longnn.nn._ensemble import Ensemble
from longnn.nn._trees import BoostedTrees
from longnn.training import Readout, Trained, mean_prediction

#: The name of the description inside the file.
DESCRIPTION = "longnn.json"


class FixedFilter(nn.Module):
    """A polynomial filter as it is now: its Chebyshev coefficients, one number each."""

    beta: Tensor

    def __init__(self, trained: PolynomialFilter) -> None:
        super().__init__()
        self.register_buffer("beta", trained.chebyshev_coefficients().detach().contiguous())

    def forward(self, operator: Operator, signal: Tensor) -> Tensor:
        assert isinstance(operator, EdgeOperator)
        return operator.apply_filter(signal, self.beta)


class Program(nn.Module):
    """What a run predicts as a function of plain arrays, made of torch's own operations.

    Shapes:
        - input: x (nodes, features) float32, edge_index (2, arcs) int64, edge_weight (arcs,)
          float32; see :func:`describe_program`
        - output: probabilities (nodes, classes), or values (nodes,) or (nodes, targets)
    """

    def __init__(self, trained: Trained) -> None:
        super().__init__()
        self.trained = trained
        self.dtype = torch.float64 if trained.config.precision == "float64" else torch.float32
        self.models = nn.ModuleList(_fixed(model, self.dtype) for model in trained.models)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        trained = self.trained
        features = trained.scaling.formula(x).to(self.dtype)

        def operator_of(loops: SelfLoops) -> EdgeOperator:
            make = EdgeOperator.from_arcs if trained.directed else EdgeOperator.from_edge_index
            return make(edge_index, edge_weight, x.shape[0], self_loops=loops, dtype=self.dtype)

        each = []
        for model, readout in zip(self.models, trained.readouts, strict=True):
            assert isinstance(model, Model)
            if isinstance(model, Ensemble):
                scores = model.scores_on(features, operator_of)
            else:
                scores = model.scores(features, operator_of(model.self_loops))
            each.append(readout.predict(scores))
        return mean_prediction(each)


def _fixed(model: Model, dtype: torch.dtype) -> Model:
    """A copy of a model for the CPU, its filters fixed."""
    made = copy.deepcopy(model).cpu()
    if isinstance(made, Ensemble):  # a name with a comma would end up in the program
        members = enumerate(made.members.values())
        made.members = nn.ModuleDict({f"member_{i}": member for i, member in members})
    for parent in list(made.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, PolynomialFilter):
                setattr(parent, name, FixedFilter(child))
    made = made.to(dtype)
    for module in [*made.modules()]:
        if isinstance(module, BoostedTrees):
            module.plant()  # after the rest is rounded: thresholds stay as they are
    return made.eval().requires_grad_(False)


def describe_program(trained: Trained) -> dict[str, Any]:
    """What a reader of the program needs to know: its inputs, its output, its classes."""
    names, readout = list(trained.feature_names), Readout.mean(trained.readouts)
    threshold = readout.threshold
    two = threshold is not None and trained.task == "classification" and len(trained.classes) == 2
    return {
        "longnn": __version__,
        "torch": importlib.metadata.version("torch"),
        "model": trained.config.model,
        "repeats": trained.repeats,
        "task": trained.task,
        "inputs": {
            "x": f"float32 (nodes, {trained.features}): encoded features, not scaled"
            + (", columns in the order of `features`" if names else ""),
            **_edge_inputs(trained),
        },
        "output": _output(trained),
        "classes": list(trained.classes),
        "targets": list(trained.targets),
        "threshold": threshold,
        "factors": list(readout.factors),
        "positive": trained.classes[readout.positive] if two else None,
        "features": names,
        "scaling": f"{trained.scaling.kind}, done by the program",
        "known_answers": "none: not in the program"
        if any(one.used for one in trained.known)
        else "none",
        "self_loops": f"{_self_loops(trained)}, done by the program",
    }


def _edge_inputs(trained: Trained) -> dict[str, str]:
    """What the program takes as the graph."""
    if trained.directed:
        return {
            "edge_index": "int64 (2, arcs): arcs from the first row to the second, each once",
            "edge_weight": "float32 (arcs,): weights; ones without any",
        }
    return {
        "edge_index": "int64 (2, arcs): undirected edges, both directions of each listed once",
        "edge_weight": "float32 (arcs,): weights, alike in both directions; ones without any",
    }


def _self_loops(trained: Trained) -> str:
    """What becomes of self loops; members of an ensemble may differ in it."""
    members = [m for model in trained.models for m in model.modules() if isinstance(m, Model)]
    single = [m for m in members if not isinstance(m, Ensemble)]
    return " or ".join(sorted({m.self_loops for m in single}))


def _output(trained: Trained) -> str:
    if trained.classes:
        return f"probabilities (nodes, {len(trained.classes)}), columns in the order of `classes`"
    values = len(trained.readouts[0].offset)
    if values > 1:
        return f"values (nodes, {values}), columns in the order of `targets`"
    return "values (nodes,)"


def export_trained(trained: Trained, path: Path) -> Path:
    """Record the program of trained models and write it to a file ``.pt2``.

    Args:
        trained: the models of a run.
        path: the file; its folder exists.

    Raises:
        ValueError: for a path of another kind.
        OSError: where it cannot be written.
    """
    if path.suffix != ".pt2":
        raise ValueError(f"Expected a path that ends in .pt2 (got {path})")
    if not path.parent.is_dir():
        raise ValueError(f"Expected a path in an existing folder (got {path.parent})")
    if trained.edge_types:
        raise ValueError(
            "Expected a run whose edges are all alike, to export it (got "
            f"{len(trained.edge_types)} types of edges): a program takes one list of edges"
        )
    nodes, arcs = (torch.export.Dim(name, min=0) for name in ("nodes", "arcs"))
    ring = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])
    with torch.no_grad():
        program = torch.export.export(
            Program(trained).eval(),
            (torch.ones(5, trained.features), ring, torch.ones(6)),
            dynamic_shapes={"x": {0: nodes}, "edge_index": {1: arcs}, "edge_weight": {0: arcs}},
            strict=False,
        )
    description = json.dumps(describe_program(trained), indent=1, ensure_ascii=False)
    file = io.BytesIO()
    torch.export.save(program, file, extra_files={DESCRIPTION: description})
    with writing(path), atomic_path(path) as temporary:
        temporary.write_bytes(file.getvalue())
    return path
