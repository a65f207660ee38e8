r"""The contenders: each is one function that trains one epoch and evaluates.

All do the same work on the same data: one training step with dropout on the training nodes, then
the validation accuracy without dropout. The rivals are written the way their users write them.
Where there is a choice, it favours them: the accuracy is never read back from the device, nodes are
selected by index and not by mask, and no copy of the best weights is kept (a population keeps one).
"""

import dataclasses
import gc
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import APPNP, ChebConv, GCNConv

from lab.bench._measure import growth, run_module
from lab.textbook import TextbookLONGNN
from longnn import training
from longnn.config import Config
from longnn.config._config import RATES
from longnn.data import NodeDataset, make_split
from longnn.data._scaling import Scaling
from longnn.data._synthetic import csbm
from longnn.registry import PAPER_FORM
from longnn.training import Population, Problem

#: The most epochs that a contender can run.
EPOCHS = 2000
#: Epochs to the peak of memory: the second has the state of Adam, the third is a CUDA graph.
PEAK_EPOCHS = {"cpu": 2, "cuda": 5}

#: Names of the contenders, in the order of the tables.
LABELS = {
    "single": "LON-GNN",
    "population": "LON-GNN population",
    "textbook": "textbook LON-GNN",
    "gcn": "PyG GCN",
    "gcn_cached": "PyG GCN cached",
    "appnp": "PyG APPNP",
    "cheb": "PyG ChebConv",
}
#: What each contender is; stored in the record.
DESCRIPTIONS = {
    "single": "one model: Population.step() of a population of one",
    "population": "several models at once, time per model; member i has seed i and split i",
    "textbook": "lab.textbook: message passing, dense features, torch.optim.Adam",
    "gcn": "two GCNConv with their defaults (cached=False), dense features",
    "gcn_cached": "the same with cached=True, which PyG allows on one fixed graph",
    "appnp": "Linear-ReLU-Linear and APPNP(K, alpha=0.1), dense features",
    "cheb": "two ChebConv(K=3), dense features",
}


@dataclasses.dataclass(frozen=True)
class Workload:
    """The work of one epoch: the same for every contender.

    The learning rate is low, so that weights stay finite in long timings. The precision is that of
    our model.
    """

    degree: int = 10
    hidden: int = 64
    dropout: float = 0.5
    lr: float = 1e-3
    weight_decay: float = 5e-4
    precision: str = "float32"
    epochs: int = EPOCHS

    def config(self, seed: int = 0, *, device: str = "cpu") -> Config:
        """This workload as a configuration of LON-GNN in the form of the textbook model."""
        options: dict[str, Any] = {"hidden_channels": self.hidden, "degree": self.degree}
        options |= {**PAPER_FORM, "filter_dropout": 0.0}
        options |= {"input_dropout": self.dropout, "dropout": self.dropout}
        options |= {k: self.lr if k.startswith("lr") else self.weight_decay for k in RATES}
        options |= {"seed": seed, "device": device, "precision": self.precision}
        options |= {"epochs": self.epochs, "patience": self.epochs}
        return Config.from_dict({"model": "lon", **options})


@dataclasses.dataclass(frozen=True)
class Contender:
    """A contender that is ready to run: it trains and evaluates one epoch of all its models."""

    epoch: Callable[[], Any]
    models: int = 1


def make_problem(dataset: NodeDataset, workload: Workload, device: torch.device) -> Problem:
    """Features, operator and labels of a dataset in the form that populations take."""
    config = workload.config(device=device.type)
    return training.make_problem(dataset, config, Scaling("none"), device=device)


def make_population(
    dataset: NodeDataset,
    workload: Workload,
    device: torch.device,
    members: int,
    *,
    problem: Problem | None = None,
) -> Population:
    """A population of LON-GNN; member i has seed i and the published split i."""
    problem = problem or make_problem(dataset, workload, device)
    configs = [workload.config(i, device=device.type) for i in range(members)]
    splits = [make_split(dataset, "published", i) for i in range(members)]
    return training.make_population(configs, problem, splits)


def make_contender(
    key: str, dataset: NodeDataset, workload: Workload, device: torch.device, *, population: int
) -> Contender:
    """Make a contender of :data:`LABELS` for a dataset, on a device; a population has so many
    members.
    """
    if key in ("single", "population"):
        members = population if key == "population" else 1
        return Contender(make_population(dataset, workload, device, members).step, members)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        sizes = (dataset.num_features, workload.hidden, dataset.num_classes)
        model = RIVALS[key](*sizes, workload)
    return Contender(plain_epoch(model.to(device), dataset, workload))


def plain_epoch(model: nn.Module, dataset: NodeDataset, workload: Workload) -> Callable[[], Tensor]:
    """The training loop of a PyG tutorial as one function that returns the validation accuracy."""
    device, data = next(model.parameters()).device, dataset.data
    split = make_split(dataset, "published", 0)
    x, edges, y = (t.to(device) for t in (data.x.to_dense(), data.edge_index, data.y))
    train, val = (mask.nonzero()[:, 0].to(device) for mask in (split.train, split.val))
    y_train, y_val = y[train], y[val]
    optimizer = torch.optim.Adam(
        model.parameters(), lr=workload.lr, weight_decay=workload.weight_decay
    )

    def epoch() -> Tensor:
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x, edges)[train], y_train)
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            return (model(x, edges)[val].argmax(1) == y_val).float().mean()

    return epoch


class TwoLayers(nn.Module):
    """Two graph convolutions of PyG, ReLU between them, dropout before each."""

    def __init__(self, first: nn.Module, second: nn.Module, dropout: float) -> None:
        super().__init__()
        self.first, self.second, self.dropout = first, second, dropout

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        h = F.dropout(x, self.dropout, self.training)
        h = torch.relu(self.first(h, edges))
        return self.second(F.dropout(h, self.dropout, self.training), edges)


class PredictThenPropagate(nn.Module):
    """Linear, ReLU, Linear, then PyG's APPNP."""

    def __init__(self, features: int, hidden: int, classes: int, workload: Workload) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(features, hidden), nn.Linear(hidden, classes)
        self.propagate, self.dropout = APPNP(K=workload.degree, alpha=0.1), workload.dropout

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        h = F.dropout(x, self.dropout, self.training)
        h = F.dropout(torch.relu(self.first(h)), self.dropout, self.training)
        return self.propagate(self.second(h), edges)


def _two_layers(layer: Callable[..., nn.Module], **options: Any) -> Callable[..., nn.Module]:
    return lambda features, hidden, classes, workload: TwoLayers(
        layer(features, hidden, **options), layer(hidden, classes, **options), workload.dropout
    )


#: Models by contender; each is made of its features, hidden channels, classes and workload.
RIVALS: dict[str, Callable[..., nn.Module]] = {
    "textbook": lambda features, hidden, classes, workload: TextbookLONGNN(
        features, hidden, classes, workload.degree, dropout=workload.dropout
    ),
    "gcn": _two_layers(GCNConv),
    "gcn_cached": _two_layers(GCNConv, cached=True),
    "appnp": PredictThenPropagate,
    "cheb": _two_layers(ChebConv, K=3),
}


def peak_memory(
    dataset: NodeDataset,
    keys: Sequence[str],
    workload: Workload,
    device: torch.device,
    *,
    population: int,
) -> dict[str, float]:
    r"""Peak memory of each contender in MiB, above what was in use before.

    On a GPU torch counts the memory that it allocates. On a CPU only the operating system sees all
    memory (NumPy, MKL and the allocator have their own), so each contender loads its data and
    trains in a process of its own, which says by how much its resident memory grew.
    """
    if device.type == "cuda":
        found = {}
        for key in keys:
            gc.collect()
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(device)
            before = torch.cuda.memory_allocated(device)
            _train(key, dataset, workload, device, population)
            torch.cuda.synchronize(device)
            found[key] = (torch.cuda.max_memory_allocated(device) - before) / 2**20
        return found
    order: dict[str, Any] = {"population": population, "workload": dataclasses.asdict(workload)}
    order |= {"threads": torch.get_num_threads(), "classes": list(dataset.classes)}
    data = dataset.data
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dataset.pt"  # plain tensors
        torch.save({"x": data.x, "edge_index": data.edge_index, "y": data.y}, path)
        orders = {key: json.dumps({**order, "key": key, "path": str(path)}) for key in keys}
        module = "lab.bench._contenders"
        return {key: float(run_module(module, text)) for key, text in orders.items()}


def _train(
    key: str, dataset: NodeDataset, workload: Workload, device: torch.device, population: int
) -> None:
    count = PEAK_EPOCHS[device.type]
    workload = dataclasses.replace(workload, epochs=2 * count)
    contender = make_contender(key, dataset, workload, device, population=population)
    for _ in range(count):
        contender.epoch()


def _child(order: dict[str, Any]) -> None:
    torch.set_num_threads(order["threads"])
    data, classes = Data(**torch.load(order["path"], weights_only=True)), tuple(order["classes"])
    dataset = NodeDataset("it", data, classes=classes, default_split="published")
    key, workload, cpu = order["key"], Workload(**order["workload"]), torch.device("cpu")
    _train(key, csbm(num_nodes=60, num_features=4), workload, cpu, 2)  # loads the libraries
    print(growth(lambda: _train(key, dataset, workload, cpu, order["population"])))


if __name__ == "__main__":
    _child(json.loads(sys.argv[1]))
