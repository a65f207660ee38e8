"""Search for hyperparameters over populations: many trials trained at once, none on test nodes."""

from longnn.tuning._finalists import confirm
from longnn.tuning._page import write_page
from longnn.tuning._result import TuningProgress, TuningResult
from longnn.tuning._search import tune
from longnn.tuning._space import SearchSpace, architecture, draw_random, load_space, shipped_spaces
from longnn.tuning._splits import tuning_seeds
from longnn.tuning._storage import open_storage
from longnn.tuning._training import Halving

__all__ = [
    "Halving",
    "SearchSpace",
    "TuningProgress",
    "TuningResult",
    "architecture",
    "confirm",
    "draw_random",
    "load_space",
    "open_storage",
    "shipped_spaces",
    "tune",
    "tuning_seeds",
    "write_page",
]
