"""What is raised where the packages of the search are not installed."""


class MissingPackageError(ImportError, ValueError):
    """An optional package is not installed; the message says how to install it."""
