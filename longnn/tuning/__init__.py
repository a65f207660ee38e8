"""Search for hyperparameters: many trials trained at once as populations, no test node used.

Needs Optuna: ``pip install "longnn[tune]"``.
"""

try:
    import optuna  # noqa: F401
    import sqlalchemy  # noqa: F401
except ModuleNotFoundError as error:
    if error.name not in ("optuna", "sqlalchemy"):
        raise

    class MissingPackageError(ImportError, ValueError):
        """An optional package is not installed; the message says how to install it."""

    raise MissingPackageError(
        f"Expected the package {error.name} for a search (it is not installed); "
        'pip install "longnn[tune]"',
        name=error.name,
    ) from None

from longnn.tuning._record import read_record
from longnn.tuning._space import SearchSpace, load_space
from longnn.tuning._splits import confirm
from longnn.tuning._tune import tune

__all__ = ["SearchSpace", "confirm", "load_space", "read_record", "tune"]
