"""Small graphs and records with invented numbers."""

import copy

import pytest

from lab.bench import DATASETS
from longnn.data._synthetic import csbm

MACHINE = {"platform": "Linux", "cpu": "a processor", "cores": 2, "load": None, "threads": 2}


@pytest.fixture(scope="session")
def small():
    """A graph on which every model learns."""
    return csbm(num_nodes=150, num_features=30, phi=0.6)


def spread(value):
    return {"median": value, "low": 0.9 * value, "high": 1.1 * value}


def made_up(device="cpu", *, ms=None, ratios=None, datasets=DATASETS, population=None):
    """A record of epochs with the same numbers on each dataset."""
    ms = {"single": 2.0, "population": 0.5, "textbook": 40.0, "gcn": 5.0, **(ms or {})}
    ratios = {"population": 4.0, "textbook": 20.0, "gcn": 2.5, **(ratios or {})}
    population = population or {"cpu": 10, "cuda": 64}[device]
    calls = {"operators": 7, "sparse_products": 3}
    result = {
        "nodes": 10,
        "contenders": {key: {"ms": spread(value), "calls": calls} for key, value in ms.items()},
        "ratios": {key: spread(value) for key, value in ratios.items()},
        "memory_mib": {"single": 3.0, "population": 20.0, "textbook": 70.0, "gcn": None},
        "failed": {},
    }
    sweep = {"what": "it", "axis": "edges", "fixed": "2 channels", "x": [1, 2, 4]}
    line = {"ms": [1.0, 2.0, 4.0], "exponent": 1.0, "factor": 1.0, "from": 2}
    settings = {"degree": 10, "hidden": 64, "dropout": 0.5, "population": population}
    settings |= {"quick": False, "rounds": 9, "contenders": dict.fromkeys(ms, "words")}
    return {
        "format": "longnn.bench/1",
        "created": "2026-01-02T03:04:05+00:00",
        "machine": {**MACHINE, "device": device, "gpu": "a GPU" if device == "cuda" else None},
        "code": {"commit": "abc", "dirty": True},
        "settings": settings,
        "datasets": {name: copy.deepcopy(result) for name in datasets},
        "scaling": [{**sweep, **line}],
        "goals": [],
    }
