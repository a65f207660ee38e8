"""Experiments: each a configuration in, a record out; tables are made from records alone."""

from longnn.studies._paper import (
    EXPERIMENTS,
    Context,
    Experiment,
    get_experiment,
    rebuild,
    run_experiment,
)
from longnn.studies._table import Table

__all__ = [
    "EXPERIMENTS",
    "Context",
    "Experiment",
    "Table",
    "get_experiment",
    "rebuild",
    "run_experiment",
]
