"""Inputs with a known verdict, to try the fuzzer on: run as a program, it prints what it found."""

import collections
import ctypes
import json
import pickle
import sys
import time

import numpy as np

from longnn.config._values import parse_assignment
from longnn.data import DataError, load
from tests.fuzz import campaign
from tests.fuzz.archives import canary
from tests.fuzz.cases import Case


def _hold_memory():
    try:
        np.ones(2**29)  # four gigabytes
    except MemoryError as error:
        raise DataError("Expected less") from error


def _write(folder, content):
    path = folder / "graph.npz"
    path.write_bytes(content)
    return path


#: Each is named after its verdict, or begins with it.
PLANTED = {
    "fine": lambda draw, folder: Case(lambda: 1, lambda found: found + 1),
    "clean": lambda draw, folder: Case(
        lambda: load(_write(folder, b"x")), None, ("graph.npz",), "a word"
    ),
    "clean-setting": lambda draw, folder: Case(lambda: parse_assignment("x")),
    "raw": lambda draw, folder: Case(lambda: {}["x"]),
    "raw-foreign": lambda draw, folder: Case(lambda: np.zeros(3).reshape(2, 2), None, ("reshape",)),
    "raw-printed": lambda draw, folder: Case(
        lambda: print("Traceback (most recent call last):", file=sys.stderr)
    ),
    "unnamed": lambda draw, folder: Case(lambda: parse_assignment("x"), None, ("settings.toml",)),
    "crash": lambda draw, folder: Case(lambda: ctypes.string_at(0)),
    "crash-exit": lambda draw, folder: Case(lambda: __import__("os")._exit(3)),
    "time": lambda draw, folder: Case(lambda: collections.deque(iter(int, 1), maxlen=0)),
    "time-asleep": lambda draw, folder: Case(lambda: time.sleep(1000)),
    "memory": lambda draw, folder: Case(lambda: np.ones(2**29)),
    "memory-hidden": lambda draw, folder: Case(_hold_memory),
    "code": lambda draw, folder: Case(
        lambda: pickle.loads(_write(folder, canary(folder)).read_bytes())
    ),
    "fuzzer": lambda draw, folder: 1 / 0,
}


def main(keep):
    """Run everything with little patience, and print the verdicts as JSON."""
    campaign.SECONDS, campaign.PATIENCE = 1, 2
    inputs = [(name, 0) for name in PLANTED]
    options = {"keep": keep, "formats": PLANTED, "prepare": lambda folder: None}
    found = campaign.run_campaign(inputs, 0, **options)
    print(json.dumps([[name, number, verdict.kind] for name, number, verdict in found]))


if __name__ == "__main__":
    main(sys.argv[1])
