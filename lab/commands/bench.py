"""The command that benchmarks this machine."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from lab import bench as benchmarks
from longnn.cli._base import DataDir, Json, err, out


def bench(
    datasets_: Annotated[
        str | None,
        typer.Option(
            "--datasets",
            help="Comma-separated names (default: the ten graphs of the paper).",
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "auto",
    threads: Annotated[
        int | None, typer.Option(help="Number of CPU threads (default: torch's choice).")
    ] = None,
    population: Annotated[
        int | None,
        typer.Option(help="Number of models trained together (default: 10, on a GPU 64)."),
    ] = None,
    contender: Annotated[
        list[str] | None,
        typer.Option(
            "--contender",
            "--contenders",
            help="Time only these: single, population, textbook, gcn, gcn_cached, appnp, cheb; "
            "repeatable (default: all).",
        ),
    ] = None,
    precision: Annotated[
        str,
        typer.Option(help="Of LON-GNN; float32, or tf32 on a GPU."),
    ] = "float32",
    section: Annotated[
        list[str] | None,
        typer.Option(
            help="Besides times, measure only these: memory, scaling (default: both). Repeatable."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run a small version on bundled data, in half a minute.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option(help="Folder for the record, tables and figures (default: none).")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the files in that folder (default: cpu or cuda).")
    ] = None,
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="BEFORE AFTER", help="Measure nothing; compare two records."),
    ] = None,
    commit: Annotated[
        str | None, typer.Option(help="Commit to record when the code is not a git checkout.")
    ] = None,
    data_dir: DataDir = None,
    json_: Json = False,
) -> None:
    """Time LON-GNN against the textbook model and PyG's models on this machine."""
    if compare is not None:
        for line in benchmarks.compare_records(*map(benchmarks.read_bench, compare)).lines():
            out.print(line, markup=False)
        return

    def keep(record: dict[str, Any]) -> None:
        """What is measured until now stays, if whoever measures is interrupted."""
        if output is not None:
            benchmarks.write_bench(record, output, name=name)

    record = benchmarks.run_bench(
        _split(None if datasets_ is None else [datasets_]),
        device=device,
        threads=threads,
        population=population,
        precision=precision,
        quick=quick,
        data_dir=data_dir,
        contenders=_split(contender),
        sections=_split(section),
        commit=commit,
        on_progress=lambda text: err.print(text, markup=False),
        on_dataset=keep,
    )
    keep(record)
    if json_:
        print(json.dumps(record, allow_nan=False))
        return
    for line in benchmarks.lines(record):
        out.print(line, markup=False)


def _split(given: list[str] | None) -> list[str] | None:
    """Names given one by one or separated by commas; None if none were given."""
    return [name.strip() for text in given for name in text.split(",")] if given else None
