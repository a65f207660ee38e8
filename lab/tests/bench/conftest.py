"""Small graphs and a record with invented numbers."""

import copy

import pytest

from lab.bench import DATASETS, BenchRecord
from longnn.data import csbm


@pytest.fixture(scope="session")
def small():
    """A graph on which every model learns."""
    return csbm(num_nodes=150, num_features=30, phi=0.6)


def summary(value):
    return {"median": value, "low": 0.9 * value, "high": 1.1 * value}


def made_up(device="cpu", *, ms=None, ratios=None, datasets=DATASETS, population=None):
    """A record as `run_bench` makes it, with the same numbers on each dataset."""
    ms = {"single": 2.0, "population": 0.5, "textbook": 40.0, "gcn": 5.0, **(ms or {})}
    ratios = {"population": 4.0, "textbook": 20.0, "gcn": 2.5, **(ratios or {})}
    population = population or {"cpu": 10, "cuda": 64}[device]
    result = {
        "nodes": 10,
        "edges": 20,
        "features": 5,
        "density": 0.5,
        "classes": 3,
        "contenders": {
            key: {
                "models": population if key == "population" else 1,
                "ms": summary(value),
                "calls": {"operators": 7, "sparse_products": 3},
            }
            for key, value in ms.items()
        },
        "ratios": {key: summary(value) for key, value in ratios.items()},
        "memory_mib": {"single": 3.0, "population": 20.0, "textbook": 70.0, "gcn": None},
        "failed": {},
    }
    record = {
        "format": "longnn.bench/1",
        "created": "2026-01-02T03:04:05+00:00",
        "machine": {
            "platform": "Linux",
            "cpu": "a processor",
            "cores": 2,
            "threads": 2,
            "device": device,
            "gpu": "a GPU" if device == "cuda" else None,
            "longnn": "0",
            "torch": "0",
        },
        "code": {"commit": "abc", "dirty": True},
        "settings": {
            "degree": 10,
            "hidden": 64,
            "dropout": 0.5,
            "lr": 0.001,
            "weight_decay": 0.0005,
            "population": population,
            "quick": False,
            "rounds": 9,
            "seconds": 0.25,
            "rest_rounds": 5,
            "rest_seconds": 0.05,
            "contenders": dict.fromkeys(ms, "words"),
        },
        "datasets": {name: copy.deepcopy(result) for name in datasets},
        "scaling": [
            {
                "what": "it",
                "axis": "edges",
                "fixed": "2 channels",
                "x": [1, 2, 4],
                "ms": [1.0, 2.0, 4.0],
                "exponent": 1.0,
                "factor": 1.0,
                "from": 2,
            }
        ],
    }
    return BenchRecord.from_dict(record)
