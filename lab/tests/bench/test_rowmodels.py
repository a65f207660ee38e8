"""Learned filters against SGC and SIGN on rows: what each is, and that a filter finds its band."""

import dataclasses

import numpy as np
import torch

from lab.bench import Sign, compare_on_rows
from longnn.graphs import GraphOperator
from longnn.nn import OnRows, Terms
from tests.nn.test_terms import dense_terms
from tests.store.stored import small, write_graph


def band_graph(folder, band, nodes=1500):
    """Labels are the sign of the first feature filtered to high, or to mixed, frequencies."""
    dataset = small(nodes, 4, phi=0.0)
    P = GraphOperator.from_edge_index(dataset.data.edge_index, num_nodes=nodes)
    x = torch.randn(nodes, 4, generator=torch.Generator().manual_seed(0))
    terms = dense_terms(P, x[:, :1], 4)[..., 0]
    y = {"high": terms[0] - 2 * terms[1] + terms[2], "mixed": terms[1] - 2 * terms[3]}[band]
    data = dataset.data.clone()
    data.x, data.y = x, (y > 0).long()
    write_graph(folder, dataclasses.replace(dataset, data=data))


def test_sign_is_a_map_of_each_term():
    values, place = torch.randn(3, 5, 2), OnRows("keep", 5, torch.device("cpu"), torch.float32)
    model = Sign(2, 4, 3, degree=2).eval()
    first, last = model.mlp.transform.first, model.mlp.transform.last
    parts = first.weight.view(3, 2, 4)
    h = torch.relu(sum(t @ w for t, w in zip(values, parts, strict=True)) + first.bias)
    found = model.scores(Terms({"keep": values}, {"keep": torch.ones(3, 5)}), place)
    assert torch.allclose(found, h @ last.weight + last.bias, atol=1e-6)


def test_a_learned_filter_finds_what_one_power_cannot(tmp_path):
    band_graph(tmp_path / "g", "mixed")
    found = compare_on_rows(tmp_path / "g", degree=4, hidden=16, epochs=40, batch_rows=128)
    score = {one.name: one.score for one in found}
    assert score["learned filter"] > score["SGC"] + 0.15
    assert score["learned filter"] > score["MLP"] + 0.15
    size = {one.name: one.parameters for one in found}
    assert size["learned filter"] < size["SIGN"]
    assert all(np.isfinite(one.seconds) for one in found)
