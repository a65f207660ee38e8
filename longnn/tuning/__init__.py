"""Search for hyperparameters over populations: many trials trained at once, none on test nodes."""

from longnn.tuning.finalists import confirm
from longnn.tuning.page import write_page
from longnn.tuning.result import TuningProgress, TuningResult
from longnn.tuning.search import tune
from longnn.tuning.space import SearchSpace, draw_random, load_space, shipped_spaces
from longnn.tuning.storage import open_storage
from longnn.tuning.training import Halving

__all__ = [
    "Halving",
    "SearchSpace",
    "TuningProgress",
    "TuningResult",
    "confirm",
    "draw_random",
    "load_space",
    "open_storage",
    "shipped_spaces",
    "tune",
    "write_page",
]
