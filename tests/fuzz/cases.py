"""What an input is, and the list of formats that make them."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longnn.data import describe
from longnn.runs import train

#: Every format by name: a function of a :class:`~tests.fuzz.draw.Draw` and a new folder.
FORMATS: dict[str, Callable[[Any, Path], "Case"]] = {}
#: Formats whose inputs take a second or more: one of them for this many of the others.
RARE = {"report": 5}
#: A training of milliseconds.
QUICK = {"epochs": 2, "degree": 2, "hidden_channels": 4, "device": "cpu", "baselines": False}


@dataclass(frozen=True)
class Case:
    """One input, and what longnn is to do with it.

    Args:
        read: reads the input.
        use: is given what was read, and does something with it.
        names: of which an error of ``read`` must name one; empty where there is no file.
        what: the input in words, where it is no file.
    """

    read: Callable[[], Any]
    use: Callable[[Any], object] | None = None
    names: tuple[str, ...] = ()
    what: str = ""


def fuzzed(name):
    """Enter a function that makes inputs of a format."""

    def enter(make):
        assert name not in FORMATS
        FORMATS[name] = make
        return make

    return enter


def load_formats():
    """All formats: their modules enter them."""
    for module in ("tables", "arrays", "folders", "settings", "memory"):
        importlib.import_module(f"tests.fuzz.{module}")
    return FORMATS


def learn(dataset):
    """Describe a graph, and train on it for a moment."""
    describe(dataset)
    dataset.fingerprint()
    train(dataset, QUICK)
