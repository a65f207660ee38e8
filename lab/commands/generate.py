"""The command that makes a random graph of any size."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from lab.generator import generate as write_graph
from longnn.cli import _display as display
from longnn.cli._base import Json, Quiet, err, interruptible
from longnn.cli._disk import STARTS_OVER, Memory, show

Seed = Annotated[int, typer.Option(help="Seed.")]


def generate(
    nodes: Annotated[int, typer.Option(help="Number of nodes, e.g. 10_000_000.", parser=int)],
    edges: Annotated[int, typer.Option(help="Edges drawn; repeats are merged.", parser=int)],
    output: Annotated[Path, typer.Option(help="Folder to make.")] = Path("generated"),
    features: Annotated[int, typer.Option(help="Features per node.")] = 64,
    classes: Annotated[int, typer.Option(help="Classes, of equal size.")] = 10,
    homophily: Annotated[
        str,
        typer.Option(help="Share of edges within a class, 0 to 1; 0.9,0.1 for classes in turn."),
    ] = "0.8",
    pattern: Annotated[
        str,
        typer.Option(help="Other edges lead to any class (uniform) or to a partner's (pairs)."),
    ] = "uniform",
    labelled: Annotated[
        float, typer.Option(help="Labelled nodes: a share up to 1, or a number.")
    ] = 1.0,
    signal: Annotated[
        float, typer.Option(help="Distance of the class means from 0; the noise has deviation 1.")
    ] = 1.0,
    exponent: Annotated[float, typer.Option(help="Exponent of the degrees, above 2.")] = 2.5,
    seed: Seed = 0,
    format_: Annotated[
        str, typer.Option("--format", help="store (prepared) or parquet (files).")
    ] = "store",
    memory: Memory = "4G",
    quiet: Quiet = False,
    json_: Json = False,
) -> None:
    """Make a random graph with classes, features and heavy-tailed degrees."""
    try:
        dial = [float(share) for share in homophily.split(",")]
    except ValueError:
        raise ValueError(
            f"Expected --homophily as a number or several, such as 0.8 or 0.9,0.1 "
            f"(got {homophily!r})"
        ) from None
    with interruptible(STARTS_OVER), display.work_progress(err, quiet=quiet) as on_progress:
        made = write_graph(
            output,
            nodes=nodes,
            edges=edges,
            features=features,
            classes=classes,
            homophily=dial,
            pattern=pattern,
            labelled=labelled,
            signal=signal,
            exponent=exponent,
            seed=seed,
            format=format_,  # type: ignore[arg-type]
            memory=memory,
            on_progress=on_progress,
        )
    if made is not None:
        show(made, quiet=quiet, json_=json_)
    elif not quiet:
        err.print(f"next: longnn prepare {shlex.quote(str(output))} --output DIR")
