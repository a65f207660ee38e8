"""The benchmark of this machine."""

import json
from pathlib import Path
from typing import Annotated

import typer

from longnn.cli.base import DataDir, Json, err, out


def bench(
    datasets_: Annotated[
        str | None,
        typer.Option("--datasets", help="Names, comma-separated (default: the published ten)."),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "auto",
    threads: Annotated[int | None, typer.Option(help="Of the CPU (default: torch's own).")] = None,
    population: Annotated[int | None, typer.Option(help="Models trained at once.")] = None,
    contenders: Annotated[
        str | None, typer.Option(help="Comma-separated (default: all): single, population, ...")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Seconds, on bundled data.")] = False,
    output: Annotated[Path | None, typer.Option(help="A folder for record and figures.")] = None,
    data_dir: DataDir = None,
    json_: Json = False,
) -> None:
    """Time LON-GNN against the textbook and PyG's models on this machine."""
    from longnn import bench as suite

    split = lambda text: None if text is None else [t.strip() for t in text.split(",")]  # noqa: E731
    record = suite.run_bench(
        split(datasets_),
        device=device,
        threads=threads,
        population=population,
        quick=quick,
        data_dir=data_dir,
        contenders=split(contenders),
        on_progress=lambda text: err.print(text, markup=False),
    )
    if output is not None:
        suite.write_bench(record, output)
    if json_:
        print(json.dumps(record, allow_nan=False))
        return
    for line in suite.lines(record):
        out.print(line, markup=False)
