"""Studies: each asks one question, computes a record, and makes tables and figures of it alone.

A study is a public module or folder of this package, with a ``TITLE`` and three functions:
``run(context)``, ``tables(folder)`` and ``draw(folder)`` (:class:`Study`). It is found by looking
at the package: to add a study is to add a file. What studies share is in ``_core``.

>>> study_names()
['ablation', 'accuracy', 'basis', ...]
"""

from lab.studies._core._catalog import (
    get_study,
    rebuild_study,
    run_study,
    sorted_studies,
    study_names,
)
from lab.studies._core._context import Context, Study
from lab.studies._core._table import ResultTable

__all__ = [
    "Context",
    "ResultTable",
    "Study",
    "get_study",
    "rebuild_study",
    "run_study",
    "sorted_studies",
    "study_names",
]
