"""Search for hyperparameters: many trials trained at once as populations, no test node used.

Needs Optuna: ``pip install "longnn[tune]"``.
"""

from longnn.tuning._errors import MissingPackageError

try:  # the first of these modules that loads Optuna
    from longnn.tuning._storage import open_storage, shown_url
except ModuleNotFoundError as error:
    if error.name not in ("optuna", "sqlalchemy"):
        raise
    raise MissingPackageError(error.name) from None

from longnn.tuning._cost import Estimate, time_text
from longnn.tuning._page import write_page
from longnn.tuning._record import (
    DatasetRecord,
    FinalistRecord,
    Finalists,
    SearchRecord,
    SpaceRecord,
    Start,
    TrialRecord,
    TuningProgress,
    read_record,
)
from longnn.tuning._space import SearchSpace, draw_random, load_space, shipped_spaces
from longnn.tuning._splits import confirm, tuning_seeds
from longnn.tuning._start import ONLY, STEPS, read_config, space_around
from longnn.tuning._training import Halving
from longnn.tuning._tune import TuningResult, tune

__all__ = [
    "ONLY",
    "STEPS",
    "DatasetRecord",
    "Estimate",
    "FinalistRecord",
    "Finalists",
    "Halving",
    "MissingPackageError",
    "SearchRecord",
    "SearchSpace",
    "SpaceRecord",
    "Start",
    "TrialRecord",
    "TuningProgress",
    "TuningResult",
    "confirm",
    "draw_random",
    "load_space",
    "open_storage",
    "read_config",
    "read_record",
    "shipped_spaces",
    "shown_url",
    "space_around",
    "time_text",
    "tune",
    "tuning_seeds",
    "write_page",
]
