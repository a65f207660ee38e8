"""Every kind of run keeps the same laws: loaded, in another order, as a program, and resumed.

What a kind learns, and what only one of them has, is in the tests of that kind.
"""

import numpy as np
import pytest
import torch

import longnn
from longnn.data import load
from longnn.runs import load_run, resume
from longnn.runs._export import Program
from longnn.runs._folder import Keeper
from tests.commands import without_report

NODES = 90
BRIEF = {"epochs": 6, "baselines": False, "device": "cpu"}
#: Of each kind what is set, and what its edges have.
KINDS = {
    "filter": ({"preset": "fast"}, ""),
    "blocks": ({"model": "lon-deep", "blocks": 2, "degree": 3}, ""),
    "arcs": ({"preset": "fast"}, "arcs"),
    "gcn on arcs": ({"model": "gcn"}, "arcs"),
    "types": ({"preset": "fast"}, "types"),
    "trees": ({"model": "trees"}, ""),
    "trees on arcs": ({"model": "trees"}, "arcs"),
    "pieces": ({"preset": "fast", "inputs": "pieces"}, ""),
    "structure": ({"preset": "fast", "inputs": "structure"}, ""),
    "structure on arcs": ({"preset": "fast", "inputs": "structure"}, "arcs"),
    "portfolio": ({"preset": "default", "epochs": 4}, ""),
}
#: Compiling a program takes seconds: of the others, what is compiled is asked. Of a filter on
#: columns ``test_doors.py`` compiles one.
EXPORTED = ("trees on arcs", "structure")


def write_graph(path, edges_have, order=None, seed=0):
    """Two numbers, a truth value, and two classes that follow a number; a random graph."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(NODES, 3)).astype(np.float32)
    x[:, 2] = x[:, 2] > 0
    y = (x[:, 0] + 0.5 * random.normal(size=NODES) > 0).astype(np.int64)
    ends = random.integers(0, NODES, (2, 3 * NODES))
    ends = ends[:, ends[0] != ends[1]]
    if edges_have != "arcs":
        ends = np.unique(np.sort(ends, axis=0), axis=1)
    types = {"edge_type": ends.sum(0) % 2} if edges_have == "types" else {}
    order = np.arange(NODES) if order is None else order
    np.savez(path, x=x[order], y=y[order], edge_index=np.argsort(order)[ends], **types)
    return load(path, directed=edges_have == "arcs")


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def run(kind, tmp_path_factory):
    table, edges_have = KINDS[kind]
    folder = tmp_path_factory.mktemp("kinds")
    source = write_graph(folder / "graph.npz", edges_have).source
    with without_report():
        return longnn.train(source, {**BRIEF, **table}, folder / "run")


def predicted(run, graph):
    return run.trained.predict(run.trained.problem(graph))


def test_a_loaded_run_predicts_the_same_bits(run):
    again = load_run(run.folder)
    assert again.config == run.config
    assert torch.equal(predicted(again, run.dataset), predicted(run, run.dataset))


def test_the_order_of_nodes_does_not_matter(run, kind, tmp_path):
    order = np.random.default_rng(1).permutation(NODES)
    moved = write_graph(tmp_path / "moved.npz", KINDS[kind][1], order)
    before = predicted(run, run.dataset)[order]
    torch.testing.assert_close(predicted(run, moved), before, atol=1e-4, rtol=0)


def test_a_program_predicts_what_the_run_predicts(run, kind, tmp_path):
    if kind == "types":
        return  # no program takes them, see test_relations.py
    other = write_graph(tmp_path / "other.npz", KINDS[kind][1], seed=1)
    program = Program(run.trained)
    if kind in EXPORTED:
        program = torch.export.load(run.export(tmp_path / "model.pt2")).module()
    for graph in (run.dataset, other):
        x, edges = graph.data.x, graph.data.edge_index
        said = program(x, edges, torch.ones(edges.shape[1]))
        torch.testing.assert_close(said, predicted(run, graph), atol=1e-4, rtol=1e-4)


def test_an_interrupted_run_goes_on_to_the_same_end(run, kind, tmp_path, monkeypatch, ctrl_c):
    calls = []

    def interrupted(plain):
        def method(self, *arguments):
            calls.append(1)
            if len(calls) == 3:
                ctrl_c()
            plain(self, *arguments)

        return method

    table = {**BRIEF, **KINDS[kind][0]}
    with without_report():
        with monkeypatch.context() as patch:
            for name in ("watch", "check"):
                patch.setattr(Keeper, name, interrupted(getattr(Keeper, name)))
            with pytest.raises(longnn.runs.Interrupted):
                longnn.train(run.source, table, tmp_path / "cut", checkpoint_every=0.0)
        again = resume(tmp_path / "cut")
    assert again.record.to_dict()["repeats"] == run.record.to_dict()["repeats"]
    assert torch.equal(again.predicted[0], run.predicted[0])
