"""A training run: train it, resume it, load it, predict, evaluate, compare."""

from longnn.runs._export import Program, describe_program, export_trained
from longnn.runs._folder import default_folder, find_run, folder_name, read_record
from longnn.runs._predictions import (
    predictions_table,
    stream_predictions,
    write_predictions,
    write_stream,
)
from longnn.runs._run import Run, load_run
from longnn.runs._train import CHECKPOINT_EVERY, Interrupted, resume, train

__all__ = [
    "CHECKPOINT_EVERY",
    "Interrupted",
    "Program",
    "Run",
    "default_folder",
    "describe_program",
    "export_trained",
    "find_run",
    "folder_name",
    "load_run",
    "predictions_table",
    "read_record",
    "resume",
    "stream_predictions",
    "train",
    "write_predictions",
    "write_stream",
]
