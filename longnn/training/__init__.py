"""Training: one loop for a population of one or more models, its metrics and checkpoints.

:func:`fit` is what every face calls; :class:`Trained` is what it leaves behind.
"""

from longnn.training._ensemble import DRAWS, PRIOR, ROUNDS, combine, ensemble_weights
from longnn.training._files import load_checkpoint, save_checkpoint, saved_members
from longnn.training._fit import (
    SHARES,
    Fitted,
    FittedMember,
    TruncatedScore,
    choose_device,
    make_members,
    make_model,
    make_population,
    make_problem,
    predict,
    score,
    truncation_curve,
)
from longnn.training._group import VARYING, architecture_of, shape_of
from longnn.training._history import FIELDS
from longnn.training._job import Job, fit
from longnn.training._memory import fits, is_out_of_memory
from longnn.training._objective import Objective
from longnn.training._population import Member, Population, Result
from longnn.training._presets import (
    FREE,
    PATIENCE,
    SEED_STEP,
    SEEDS,
    complete,
    data_defaults,
    keys_of_one,
    left_out_note,
    members_of,
    portfolio,
    preset_of,
)
from longnn.training._problem import Problem, row_degree_of, self_loops_of
from longnn.training._readout import (
    Readout,
    class_counts,
    fit_shift,
    frequency_shift,
    shifted,
)
from longnn.training._trained import Trained, mean_prediction
from longnn.training._trees import TreeGroup
from longnn.training._watcher import StopTraining, Watcher

__all__ = [
    "DRAWS",
    "FIELDS",
    "FREE",
    "PATIENCE",
    "PRIOR",
    "ROUNDS",
    "SEEDS",
    "SEED_STEP",
    "SHARES",
    "VARYING",
    "Fitted",
    "FittedMember",
    "Job",
    "Member",
    "Objective",
    "Population",
    "Problem",
    "Readout",
    "Result",
    "StopTraining",
    "Trained",
    "TreeGroup",
    "TruncatedScore",
    "Watcher",
    "architecture_of",
    "choose_device",
    "class_counts",
    "combine",
    "complete",
    "data_defaults",
    "ensemble_weights",
    "fit",
    "fit_shift",
    "fits",
    "frequency_shift",
    "is_out_of_memory",
    "keys_of_one",
    "left_out_note",
    "load_checkpoint",
    "make_members",
    "make_model",
    "make_population",
    "make_problem",
    "mean_prediction",
    "members_of",
    "portfolio",
    "predict",
    "preset_of",
    "row_degree_of",
    "save_checkpoint",
    "saved_members",
    "score",
    "self_loops_of",
    "shape_of",
    "shifted",
    "truncation_curve",
]
