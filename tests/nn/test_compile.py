"""``torch.compile`` gives what plain calls give; recording a model with its graph is refused."""

import pytest
import torch
from torch import nn

from longnn import GraphOperator, LONConv, apply_filter, get_model
from longnn.graphs._lanczos import lanczos_basis
from longnn.registry import NETWORKS

from ..helpers import random_graph, random_tensor

NODES, FEATURES = 30, 6
EDGES = random_graph(NODES, isolated=2)
X = random_tensor(NODES, FEATURES, dtype=torch.float32)
#: torch's compiler makes one for every autograd function that it meets.
TORCHS_OWN = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")


@pytest.fixture(autouse=True)
def _fresh_compiler():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def build(name, **options):
    torch.manual_seed(0)
    return get_model(name, FEATURES, 8, 3, **options)


def graph_of(model, form):
    return EDGES if form == "edges" else model.make_operator(EDGES, num_nodes=NODES)


def gradients(model, call, graph, x=X):
    """Output and gradients of a training step, dropout drawn from the same seed."""
    torch.manual_seed(1)
    model.zero_grad()
    out = call(x, graph)
    out.square().sum().backward()
    return out.detach(), {n: p.grad for n, p in model.named_parameters() if p.grad is not None}


def check_compiled(model, form, backend, x=X):
    """One whole graph: no break where the graph is built or applied."""
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    graph = graph_of(model, form)
    out, found = gradients(model, compiled, graph, x)
    expected, grads = gradients(model, model, graph, x)
    torch.testing.assert_close(out, expected)
    assert found.keys() == grads.keys()
    for name, gradient in grads.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-4, atol=1e-4)


@TORCHS_OWN
@pytest.mark.parametrize("form", ["operator", "edges"])
@pytest.mark.parametrize(
    "name", [n if n == "lon" else pytest.param(n, marks=pytest.mark.slow) for n in NETWORKS]
)
def test_training_step_compiles_whole(name, form):
    check_compiled(build(name, **({"degree": 3} if name == "lon" else {})), form, "aot_eager")


@TORCHS_OWN
def test_evaluation_compiles_and_takes_another_graph():
    model = build("gcn").eval()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True, dynamic=True)
    for nodes in (NODES, 17):
        edges, x = random_graph(nodes, seed=nodes), random_tensor(nodes, FEATURES).float()
        torch.testing.assert_close(compiled(x, edges), model(x, edges))


@TORCHS_OWN
def test_checks_of_the_graph_stay_when_compiled():
    model = build("gcn").eval()
    compiled = torch.compile(model, backend="aot_eager")
    with pytest.raises(ValueError, match="Expected an undirected graph"):
        compiled(X, torch.tensor([[0], [1]]))


class OnOneGraph(nn.Module):
    """A model with its graph closed over."""

    def __init__(self, call):
        super().__init__()
        self.call = call

    def forward(self, x):
        return self.call(x)


OPERATOR = GraphOperator.from_edge_index(EDGES, num_nodes=NODES)
BETA = torch.ones(3, 1)
MODULES = (build("gcn").eval(), build("lon").eval(), LONConv(FEATURES))
PLAIN, LEARNED, LAYER = (module.requires_grad_(False) for module in MODULES)
RECORDED = {
    "model": lambda x: LEARNED(x, OPERATOR),
    "edges": lambda x: PLAIN(x, EDGES),
    "scores": lambda x: PLAIN.scores(x, OPERATOR),
    "layer": lambda x: LAYER(x, OPERATOR),
    "filter": lambda x: apply_filter(OPERATOR, x, BETA),
    "product": lambda x: OPERATOR @ x,
    "lanczos": lambda x: lanczos_basis(OPERATOR, x, 2)[1],
}


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("record", [torch.export.export, torch.jit.trace])
@pytest.mark.parametrize("what", RECORDED)
def test_recording_a_graph_is_refused(what, record):
    with pytest.raises(ValueError, match=r"serve this graph alone.*`longnn export RUN`"):
        record(OnOneGraph(RECORDED[what]), (X,))


def test_an_operator_is_no_input_of_a_program():
    with pytest.raises(Exception, match=r"GraphOperator"):
        torch.export.export(PLAIN, (X, OPERATOR))
