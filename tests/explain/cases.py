"""Trained models without training, on a small graph and on one of arcs."""

import copy
import dataclasses

import torch
from torch_geometric.data import Data

from longnn.data import from_data
from longnn.data._scaling import Scaling
from longnn.nn._ensemble import Ensemble
from tests.helpers import random_tensor
from tests.test_arcs import random_arcs
from tests.test_export import FEATURES, HERE, THERE, make_trained

__all__ = ["ARROWS", "COUNT", "HERE", "THERE", "double_model", "make_ensemble", "make_trained"]

COUNT = HERE.num_nodes


def arrows(edges, weight):
    """A graph that keeps its arcs, with as many nodes and features as the other."""
    x = random_tensor(COUNT, FEATURES, seed=5).float()
    data = Data(x=x, edge_index=edges, edge_weight=weight, y=torch.arange(COUNT) % 3)
    return from_data(data, directed=True)


_ARCS = random_arcs(COUNT, isolated=1, seed=3)
ARROWS = arrows(_ARCS, 1.0 + (_ARCS[0] + 2 * _ARCS[1]) % 3)


def double_model(trained, graph=HERE):
    """The model of the first repeat in float64, and its operator and features."""
    config = trained.config.replace(precision="float64")
    problem = dataclasses.replace(trained, config=config).problem(graph)
    return copy.deepcopy(trained.models[0]).double().eval(), problem


def make_ensemble(*models, task="classification", repeats=1, **table):
    """A trained ensemble of models by name, with unequal weights and temperatures."""
    members = [make_trained(name, task=task, repeats=repeats, **table) for name in models]
    names = [f"m{k}" for k in range(len(models))]
    shares = torch.arange(1.0, len(models) + 1)
    shares = dict(zip(names, (shares / shares.sum()).tolist(), strict=True))
    heat = {name: 0.7 + 0.4 * k for k, name in enumerate(names)}
    states = []
    for r in range(repeats):
        built = {n: t.models[r] for n, t in zip(names, members, strict=True)}
        joined = Ensemble(built, shares, heat, task)
        states.append({n: p.detach().clone() for n, p in joined.named_parameters()})
    return dataclasses.replace(
        members[0],
        states=tuple(states),
        readouts=members[0].readouts,
        members={n: t.config for n, t in zip(names, members, strict=True)},
        scaling=Scaling.fit("standard", HERE),
    )
