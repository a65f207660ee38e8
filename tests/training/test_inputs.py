"""What models see of the features: pieces and structure, in training and for another graph."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import longnn
from longnn.data import DataError, from_data
from longnn.graphs import GraphOperator, directed_operator
from longnn.nn import MLP
from longnn.nn._inputs import PIECES, WithInputs, input_table
from longnn.runs import load_run
from tests.helpers import changing

pytestmark = pytest.mark.usefixtures("no_report")

BRIEF = {"epochs": 20, "baselines": False}


def market(nodes=120, *, directed=False, seed=0):
    """Numbers and a truth value; the answer is a band of the first number, and the degree."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(nodes, 3)).astype(np.float32)
    x[:, 2] = x[:, 2] > 0
    ends = random.integers(0, nodes, (2, 3 * nodes))
    ends = torch.from_numpy(ends[:, ends[0] != ends[1]])
    both = torch.unique(ends if directed else torch.cat([ends, ends.flip(0)], 1), dim=1)
    y = torch.from_numpy((np.abs(x[:, 0]) < 0.5).astype(np.int64))
    data = Data(x=torch.from_numpy(x), edge_index=both, y=y)
    return from_data(data, directed=directed)


def scores(run, graph):
    return run.trained.predict(run.trained.problem(graph))


def test_pieces_rise_between_quantiles_and_truth_values_stay():
    x = market().data.x
    table = input_table("pieces", x, None, 1)
    model = WithInputs(MLP(len(table), 2, 1), 3, "pieces", table)
    z = model.encode(x, None)
    assert z.shape[1] == 2 * PIECES + 1
    torch.testing.assert_close(z.mean(0), torch.zeros(17), atol=1e-5, rtol=0)
    torch.testing.assert_close(z.std(0, correction=0), torch.ones(17), atol=1e-4, rtol=0)
    piece = z[:, 3] * table[3, 4] + table[3, 3]  # the fourth piece of the first column
    low, high = np.quantile(x[:, 0].numpy(), [3 / 8, 4 / 8])
    torch.testing.assert_close(piece, x[:, 0].clamp(low, high), atol=1e-5, rtol=0)
    assert len(z[:, 16].unique()) == 2


@pytest.mark.parametrize("directed", [False, True])
def test_structure_counts_neighbours_both_ways(directed):
    data = market(40, directed=directed)
    index, n = data.data.edge_index, data.num_nodes
    make = directed_operator if directed else GraphOperator.from_edge_index
    operator, copies = make(index, None, n), 2 if directed else 1
    table = input_table("structure", data.data.x, operator, copies)
    inside = MLP(len(table), 2, 1)
    inside.direction = "cover" if directed else "none"
    z = WithInputs(inside, 3, "structure", table).encode(data.data.x, operator)
    plain = z * table[:, 4] + table[:, 3]
    A = torch.zeros(n, n)
    A[index[0], index[1]] = 1
    for way in range(copies):
        count = (A if way == 0 else A.T).sum(1)
        torch.testing.assert_close(plain[:, 3 + way * 10], count.log1p(), atol=1e-4, rtol=0)


@pytest.mark.parametrize("inputs", ["pieces", "structure"])
def test_nodes_far_away_change_no_prediction(inputs):
    """Inputs of another graph are made by the numbers of training, and from its own edges."""
    data, n = market(), 120
    run = longnn.train(data, {**BRIEF, "inputs": inputs})
    x = torch.cat([data.data.x, 100 + torch.rand(30, 3)])
    ring = torch.arange(30)
    ends = torch.stack([ring, (ring + 1) % 30]) + n
    index = torch.cat([data.data.edge_index, ends, ends.flip(0)], 1)
    y = torch.cat([data.data.y, torch.zeros(30, dtype=torch.int64)])
    wider = from_data(Data(x=x, edge_index=index, y=y))
    torch.testing.assert_close(scores(run, wider)[:n], scores(run, data), atol=1e-4, rtol=0)


def test_a_band_of_one_column_is_learned_in_pieces():
    data = market(600)
    found = {}
    for inputs in ("columns", "pieces"):
        table = {"model": "gcn", "inputs": inputs, "epochs": 60, "baselines": False}
        found[inputs] = longnn.train(data, table).record.score("test").mean
    assert found["pieces"] > found["columns"] + 0.02


def test_damaged_inputs_are_one_clear_error(tmp_path):
    run = longnn.train(market(), {**BRIEF, "inputs": "pieces"}, tmp_path / "run")
    (path,) = (tmp_path / "run").glob("weights*")
    with changing(path) as (tensors, _):
        tensors["0/table"][0, 0] = 7
    with pytest.raises(DataError, match="Expected a table of inputs that are pieces of 3 columns"):
        load_run(tmp_path / "run")
    assert run.trained.features == 3


def test_trees_take_the_columns_alone():
    with pytest.raises(ValueError, match="Expected inputs=columns for model='trees'"):
        longnn.train(market(), {"model": "trees", "inputs": "pieces"})
