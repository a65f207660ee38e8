"""Trained models without training, on one small graph."""

import dataclasses

import torch

from longnn.data._scaling import Scaling
from longnn.nn._ensemble import Ensemble
from longnn.training import make_model
from tests.test_export import FEATURES, HERE, THERE, make_trained

__all__ = ["HERE", "THERE", "double_model", "make_ensemble", "make_trained"]


def double_model(trained, repeat=0):
    """The model of a repeat in float64, and its operator and features, made apart."""
    problem = dataclasses.replace(
        trained, config=trained.config.replace(precision="float64")
    ).problem(HERE)
    model = make_model(
        trained.config, FEATURES, problem.outputs if trained.task != "regression" else 1
    )
    model = model.double().eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(trained.states[repeat][name].double())
    return model, problem


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
