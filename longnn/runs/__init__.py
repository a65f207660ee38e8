"""A training run: train it, resume it, load it, predict, evaluate, compare."""

from longnn.runs._run import Run, load_run
from longnn.runs._train import Interrupted, resume, train

__all__ = [
    "Interrupted",
    "Run",
    "load_run",
    "resume",
    "train",
]
