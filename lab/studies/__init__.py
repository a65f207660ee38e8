"""Studies: each asks one question, computes records, and makes tables, figures and sentences of
them alone.

A study is a public module or folder of this package. It is found by looking: to add a study is to
add a file. It has a ``TITLE`` and

``cells(context)``
    yields every :class:`Cell` that it needs, in order, and gets its values back. Cells that are
    recorded are not computed again. A study without it is history: its comparison will not be
    computed again, its records and pages stay.
``tables(folder)``
    the tables that the records of a folder give.

and may have ``figures(folder)``, figures by name; ``facts(folder)``, the numbers of its sentences
in ``docs/results`` by name; ``files(results)``, texts elsewhere that follow from the records;
``ORDER``, a number by which studies are listed; ``AFTER``, the studies whose records it reads.
What studies share is in private modules: ``_engine`` (the loop, the files), ``_views`` (tables and
figures of scores), ``_training`` and ``_search`` (scores of configurations).

>>> study_names()
['ablation', 'accuracy', 'basis', ...]
"""

from lab.studies._engine import (
    Cell,
    Cells,
    Context,
    build,
    get_study,
    is_history,
    run_study,
    sorted_studies,
    study_names,
    write_files,
)
from lab.studies._views import ResultTable

__all__ = [
    "Cell",
    "Cells",
    "Context",
    "ResultTable",
    "build",
    "get_study",
    "is_history",
    "run_study",
    "sorted_studies",
    "study_names",
    "write_files",
]
