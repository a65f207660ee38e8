"""The benchmark of this machine."""

import json
from pathlib import Path
from typing import Annotated

import typer

from longnn.cli._base import DataDir, Json, err, out


def bench(
    datasets_: Annotated[
        str | None,
        typer.Option("--datasets", help="Names, comma-separated (default: the published ten)."),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "auto",
    threads: Annotated[int | None, typer.Option(help="Of the CPU (default: torch's own).")] = None,
    population: Annotated[int | None, typer.Option(help="Models trained at once.")] = None,
    contender: Annotated[
        list[str] | None,
        typer.Option(
            "--contender", "--contenders", help="Only these: single, population, ...; repeatable."
        ),
    ] = None,
    part: Annotated[
        list[str] | None,
        typer.Option(help="Only these: memory, scaling, ceilings; repeatable (default: all)."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Seconds, on bundled data.")] = False,
    output: Annotated[Path | None, typer.Option(help="A folder for record and figures.")] = None,
    commit: Annotated[
        str | None, typer.Option(help="Of the code, where it is no checkout.")
    ] = None,
    data_dir: DataDir = None,
    json_: Json = False,
) -> None:
    """Time LON-GNN against the textbook and PyG's models on this machine."""
    from longnn import bench as suite

    record = suite.run_bench(
        _split(None if datasets_ is None else [datasets_]),
        device=device,
        threads=threads,
        population=population,
        quick=quick,
        data_dir=data_dir,
        contenders=_split(contender),
        parts=_split(part),
        commit=commit,
        on_progress=lambda text: err.print(text, markup=False),
    )
    if output is not None:
        suite.write_bench(record, output)
    if json_:
        print(json.dumps(record, allow_nan=False))
        return
    for line in suite.lines(record):
        out.print(line, markup=False)


def _split(given: list[str] | None) -> list[str] | None:
    """Names given one by one or with commas between; None where nothing was given."""
    return [name.strip() for text in given for name in text.split(",")] if given else None
