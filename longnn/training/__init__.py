"""Training: one loop for a population of one or more models, its metrics and checkpoints."""

from longnn.data import Scaling
from longnn.training._checkpoint import load_checkpoint, save_checkpoint, saved_members
from longnn.training._fit import (
    choose_device,
    describe_filters,
    make_model,
    make_population,
    make_problem,
    predict,
    run_chunked,
    score,
    trained_model,
)
from longnn.training._memory import count_fitting, fits, is_out_of_memory
from longnn.training._metrics import (
    bootstrap_interval,
    classification_scores,
    regression_scores,
    summarize,
)
from longnn.training._objective import Objective
from longnn.training._population import FIELDS, Member, Population, Result
from longnn.training._problem import Problem, Task

__all__ = [
    "FIELDS",
    "Member",
    "Objective",
    "Population",
    "Problem",
    "Result",
    "Scaling",
    "Task",
    "bootstrap_interval",
    "choose_device",
    "classification_scores",
    "count_fitting",
    "describe_filters",
    "fits",
    "is_out_of_memory",
    "load_checkpoint",
    "make_model",
    "make_population",
    "make_problem",
    "predict",
    "regression_scores",
    "run_chunked",
    "save_checkpoint",
    "saved_members",
    "score",
    "summarize",
    "trained_model",
]
