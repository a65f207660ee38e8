"""The schema of saved results: a run and a study, each written and read by one typed class."""

from longnn.records._run import (
    RECORD,
    RUN,
    SETS,
    FilterPath,
    FilterRecord,
    GraphRecord,
    History,
    RepeatRecord,
    Request,
    RunRecord,
    Scores,
    SplitRecord,
    Summary,
    summarize_repeats,
    summary_dict,
)

__all__ = [
    "RECORD",
    "RUN",
    "SETS",
    "FilterPath",
    "FilterRecord",
    "GraphRecord",
    "History",
    "RepeatRecord",
    "Request",
    "RunRecord",
    "Scores",
    "SplitRecord",
    "Summary",
    "summarize_repeats",
    "summary_dict",
]
