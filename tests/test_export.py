"""The program of a run gives the run's predictions on any graph, without longnn."""

import dataclasses
import json
import subprocess
import sys

import pytest
import torch
from torch_geometric.data import Data

from longnn.config import Config
from longnn.data import from_data
from longnn.data._scaling import Scaling
from longnn.registry import MODELS
from longnn.runs import load_run, train
from longnn.runs._export import Program, describe_program, export_trained
from longnn.training import Readout, Trained, make_model

from .commands import FAST, TINY, fail, succeed
from .helpers import one_per_architecture, random_graph, random_tensor

FEATURES = 6


def graph(nodes, seed):
    """Weighted, with self loops and isolated nodes."""
    edges = random_graph(nodes, isolated=2, seed=seed)
    loops = torch.tensor([[0, 3], [0, 3]])
    edges = torch.cat([edges, loops], 1)
    weight = 1.0 + (edges[0] * edges[1] % 4)
    x = random_tensor(nodes, FEATURES, seed=seed).float() * torch.tensor([1, 10, 0.1, 5, 1, 0.0])
    return from_data(Data(x=x, edge_index=edges, edge_weight=weight, y=torch.arange(nodes) % 3))


HERE, THERE = graph(23, 1), graph(31, 2)


def make_trained(
    model, *, scale="standard", task="classification", repeats=2, outputs=None, **table
):
    """Trained models without the training: weights away from their start."""
    config = Config.from_dict({"model": model, "hidden_channels": 5, "device": "cpu", **table})
    outputs = outputs or (1 if task == "regression" else 3)
    regression = {"offset": (3.0, 1.0)[:outputs], "scale": (2.0, 0.5)[:outputs]}
    own = regression if task == "regression" else {"temperature": 1.5, "threshold": 0.3}
    states = []
    for seed in range(repeats):
        made = make_model(config.replace(seed=seed), FEATURES, outputs)
        generator = torch.Generator().manual_seed(seed)
        dtype = getattr(torch, config.precision)
        states.append(
            {
                name: p.detach().to(dtype) + 0.1 * torch.randn(p.shape, generator=generator)
                for name, p in made.named_parameters()
            }
        )
    return Trained(
        config=config,
        task=task,
        classes=() if task == "regression" else ("a", "b", "c")[:outputs],
        features=FEATURES,
        feature_names=(),
        scaling=Scaling.fit(scale, HERE),
        states=tuple(states),
        readouts=(Readout(task), Readout(task, **own))[-repeats:],
        targets=("low", "high")[:outputs] if task == "regression" else (),
    )


def arrays(dataset):
    return dataset.data.x, dataset.data.edge_index, dataset.data.edge_weight


def check(program, trained, dataset):
    expected = trained.predict(trained.problem(dataset))
    torch.testing.assert_close(program(*arrays(dataset)), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", one_per_architecture(MODELS))
def test_program_is_the_prediction(name):
    trained = make_trained(name)
    with torch.no_grad():
        for dataset in (HERE, THERE):
            check(Program(trained), trained, dataset)


@pytest.mark.parametrize("options", [{"placement": "both"}, {"self_loops": "add"}])
@pytest.mark.parametrize("scale", ["none", "row", "columns", "standard"])
def test_program_scales_and_treats_loops_as_the_run(scale, options):
    trained = make_trained("lon", scale=scale, repeats=1, **options)
    check(Program(trained), trained, THERE)


def exported(trained, path):
    return torch.export.load(export_trained(trained, path)).module()


def test_exported_program_takes_any_graph(tmp_path):
    """And follows the validation nodes: two repeats, each with a shift of its own."""
    plain = make_trained("lon", degree=2)
    shifts = [(0.4, -0.9, 0.2), (2.0, 0.0, -1.0)]
    readouts = tuple(Readout("classification", temperature=1.5, shift=s) for s in shifts)
    trained = dataclasses.replace(plain, readouts=readouts)
    program = exported(trained, tmp_path / "model.pt2")
    far = program(*arrays(THERE)) - plain.predict(plain.problem(THERE))
    assert far.abs().max() > 0.1
    for dataset in (HERE, THERE):
        check(program, trained, dataset)
    nothing = torch.zeros(2, 0, dtype=torch.int64)
    for nodes in (1, 2):  # no size is special
        alone = program(torch.ones(nodes, FEATURES), nothing, torch.ones(0))
        assert alone.shape == (nodes, 3)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_exported(name, tmp_path):
    trained = make_trained(name)
    program = exported(trained, tmp_path / "model.pt2")
    for dataset in (HERE, THERE):
        check(program, trained, dataset)


CONSUMER = """
import json, sys, torch
found = {"longnn.json": ""}
program = torch.export.load(sys.argv[1], extra_files=found).module()
inputs = torch.load(sys.argv[2])
torch.save(program(*inputs), sys.argv[3])
assert "longnn" not in sys.modules
print(found["longnn.json"])
"""


def test_command_writes_a_program_that_needs_no_longnn(tmp_path, no_report):
    folder = tmp_path / "run"
    succeed("train", *TINY, *FAST, "--repeat", "2", "--output", folder)
    printed = succeed("export", folder)
    assert f"program: {folder / 'model.pt2'}" in printed
    assert "(x float32 (nodes, 8), edge_index int64 (2, arcs), edge_weight float32 (arcs,))" in (
        printed
    )
    run = load_run(folder)
    x, edges = run.dataset.data.x, run.dataset.data.edge_index
    torch.save((x, edges, torch.ones(edges.shape[1])), tmp_path / "inputs.pt")
    paths = (folder / "model.pt2", tmp_path / "inputs.pt", tmp_path / "outputs.pt")
    done = subprocess.run(
        [sys.executable, "-I", "-c", CONSUMER, *map(str, paths)],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    found = torch.load(tmp_path / "outputs.pt")
    torch.testing.assert_close(found, run.trained.predict(run.problem), rtol=1e-5, atol=1e-6)
    assert json.loads(done.stdout) == describe_program(run.trained)
    assert describe_program(run.trained)["classes"] == list(run.trained.classes)
    assert "Expected a path that ends in .pt2" in fail("export", folder, tmp_path / "m.onnx")
    assert "in an existing folder" in fail("export", folder, tmp_path / "no" / "model.pt2")


def test_a_run_without_a_folder_needs_a_path():
    run = train(HERE, {"epochs": 1, "device": "cpu"})
    with pytest.raises(ValueError, match="Expected a path for a run without a folder"):
        run.export()


def test_description_of_values():
    about = describe_program(make_trained("gcn", task="regression", repeats=1))
    assert about["output"] == "values (nodes,)"
    assert about["scaling"] == "standard, done by the program"
    assert about["self_loops"] == "add, done by the program"
    two = describe_program(make_trained("gcn", task="regression", repeats=1, outputs=2))
    assert two["output"] == "values (nodes, 2), columns in the order of `targets`"
    assert two["targets"] == ["low", "high"]
