"""The command that makes a program of a run."""

from pathlib import Path
from typing import Annotated

import typer

import longnn
from longnn.cli._base import Run, out


def export(
    run: Run,
    path: Annotated[
        Path | None, typer.Argument(help="File to write (default: model.pt2 in the run folder).")
    ] = None,
) -> None:
    """Write a run as a torch.export program that predicts on any graph, without longnn.

    It takes encoded features; scaling and normalisation are inside.
    """
    found = longnn.runs.load_run(run)
    written = found.export(path)
    about = longnn.runs.describe_program(found.trained)
    inputs = ", ".join(f"{name} {text.partition(':')[0]}" for name, text in about["inputs"].items())
    output = about["output"].partition(", columns")[0]
    out.print(f"program: {written}", markup=False)
    out.print(f"call: torch.export.load(...).module()({inputs}) -> {output}", markup=False)
