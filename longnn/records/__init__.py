"""The schema of a saved run: each part is written and read by one typed class."""

from longnn.records._graph import GraphRecord
from longnn.records._history import FilterPath, History
from longnn.records._members import MemberRecord
from longnn.records._repeat import FilterRecord, RepeatRecord, SplitRecord
from longnn.records._run import RECORD, RUN, Request, RunRecord
from longnn.records._schema import KEEP_NONE, Schema, from_plain, to_plain
from longnn.records._summary import Scores, Summary, summarize_repeats, summary_dict
from longnn.records._trust import (
    BaselineRecord,
    Bins,
    Calibration,
    FrequencyShift,
    PrecisionRecall,
    Residuals,
)

__all__ = [
    "KEEP_NONE",
    "RECORD",
    "RUN",
    "BaselineRecord",
    "Bins",
    "Calibration",
    "FilterPath",
    "FilterRecord",
    "FrequencyShift",
    "GraphRecord",
    "History",
    "MemberRecord",
    "PrecisionRecall",
    "RepeatRecord",
    "Request",
    "Residuals",
    "RunRecord",
    "Schema",
    "Scores",
    "SplitRecord",
    "Summary",
    "from_plain",
    "summarize_repeats",
    "summary_dict",
    "to_plain",
]
