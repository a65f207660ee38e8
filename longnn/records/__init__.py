"""The schema of saved results: a run and a study, each written and read by one typed class."""

from longnn.records._history import FilterPath, History
from longnn.records._run import (
    RECORD,
    RUN,
    FilterRecord,
    GraphRecord,
    RepeatRecord,
    Request,
    RunRecord,
    Scores,
    SplitRecord,
    Summary,
    summarize_repeats,
    summary_dict,
)
from longnn.records._schema import KEEP_NONE, Schema
from longnn.records._study import Machine, Made, StudyRecord

__all__ = [
    "KEEP_NONE",
    "RECORD",
    "RUN",
    "FilterPath",
    "FilterRecord",
    "GraphRecord",
    "History",
    "Machine",
    "Made",
    "RepeatRecord",
    "Request",
    "RunRecord",
    "Schema",
    "Scores",
    "SplitRecord",
    "StudyRecord",
    "Summary",
    "summarize_repeats",
    "summary_dict",
]
