"""Training: one loop for a population of one or more models, its settings, metrics, checkpoints."""

from longnn.training.checkpoint import load_checkpoint, save_checkpoint, saved_members
from longnn.training.memory import count_fitting, fits, is_out_of_memory
from longnn.training.metrics import (
    bootstrap_interval,
    classification_scores,
    regression_scores,
    summarize,
)
from longnn.training.population import FIELDS, Member, Population, Result
from longnn.training.problem import Problem, Task
from longnn.training.settings import ROLES, Settings

__all__ = [
    "FIELDS",
    "ROLES",
    "Member",
    "Population",
    "Problem",
    "Result",
    "Settings",
    "Task",
    "bootstrap_interval",
    "classification_scores",
    "count_fitting",
    "fits",
    "is_out_of_memory",
    "load_checkpoint",
    "regression_scores",
    "save_checkpoint",
    "saved_members",
    "summarize",
]
