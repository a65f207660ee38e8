"""What is raised where the packages of the search are not installed."""


class MissingPackageError(ImportError, ValueError):
    """An optional package is not installed; the message says how to install it.

    >>> raise MissingPackageError("optuna")
    Traceback (most recent call last):
    ...
    longnn.tuning._errors.MissingPackageError: Expected the package optuna for a search (it is not
    installed); pip install "longnn[tune]"
    """

    def __init__(self, package: str) -> None:
        super().__init__(
            f"Expected the package {package} for a search (it is not installed); "
            'pip install "longnn[tune]"',
            name=package,
        )
