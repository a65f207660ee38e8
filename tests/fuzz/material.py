"""Whole files of every kind that longnn writes itself, made once, for inputs to be made from."""

import contextlib
from pathlib import Path

from longnn import LONGNNClassifier
from longnn.data import Source
from longnn.graphs import GraphOperator
from longnn.runs import train
from longnn.tuning import load_space, tune
from tests.commands import without_report
from tests.fuzz.cases import QUICK

#: Where they are; set before inputs are made.
place = Path()
SMALL = {"num_nodes": 24, "num_features": 4}
EDGES = "source,target\n" + "".join(f"{i},{(i + 1) % 12}\n" for i in range(12))
NODES = "id,size,hue,label\n" + "".join(
    f"{i},{i / 2},{('red', 'blue')[i % 2]},{('cat', 'dog')[i // 2 % 2]}\n" for i in range(12)
)


class _StopError(Exception):
    pass


@without_report()
def prepare(folder):
    """Train, stop a training, fit an estimator, search: everything small."""
    graph = folder / "graph"
    graph.mkdir()
    (graph / "edges.csv").write_text(EDGES)
    (graph / "nodes.csv").write_text(NODES)
    train(graph, {**QUICK, "repeat": 2, "baselines": True}, folder / "run")
    named = Source.resolve("csbm", options=SMALL)

    def stop(population):
        if population.epoch == 2:
            raise _StopError

    with contextlib.suppress(_StopError):
        train(named, {**QUICK, "epochs": 4}, folder / "stopped", checkpoint_every=0, on_epoch=stop)
    dataset = named.load()
    options = {"epochs": 2, "hidden_channels": 4, "degree": 2, "device": "cpu"}
    for name in ("estimator", "operator"):
        (folder / name).mkdir()
    fitted = LONGNNClassifier(**options).fit(dataset)
    fitted.save(folder / "estimator" / "estimator.safetensors")
    operator = GraphOperator.from_data(dataset.data, normalization="random_walk")
    operator.save(folder / "operator" / "operator.safetensors")
    space = {"epochs": 2, "degree": 2, "hidden_channels": 4, "a": {"choices": [0.0, 1.0]}}
    how = {"trials": 2, "repeats": 1, "batch": 2, "finalists": 0, "device": "cpu"}
    tune(dataset, load_space(space), folder=folder / "search", **how)
