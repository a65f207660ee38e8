"""The schema of a saved run: each part is written and read by one typed class."""

from longnn.records._history import FilterPath, History
from longnn.records._repeat import (
    Bins,
    Calibration,
    FilterRecord,
    FrequencyShift,
    MemberRecord,
    PrecisionRecall,
    RepeatRecord,
    Residuals,
    Scores,
    SplitRecord,
)
from longnn.records._run import (
    RECORD,
    RUN,
    BaselineRecord,
    Density,
    GraphRecord,
    Request,
    RunRecord,
    Summary,
    summarize_repeats,
)

__all__ = [
    "RECORD",
    "RUN",
    "BaselineRecord",
    "Bins",
    "Calibration",
    "Density",
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
    "Scores",
    "SplitRecord",
    "Summary",
    "summarize_repeats",
]
