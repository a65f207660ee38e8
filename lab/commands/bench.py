"""The command that benchmarks this machine."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

import longnn
from lab import bench as benchmarks
from longnn.cli._base import DataDir, Json, err, out

#: What can be measured.
PARTS = ("epochs", "depth", "scale")


def bench(
    datasets_: Annotated[
        str | None,
        typer.Option(
            "--datasets",
            help="Comma-separated names (default: the ten graphs of the paper; with --part depth: "
            "a grid made here).",
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "auto",
    threads: Annotated[
        int | None, typer.Option(help="Number of CPU threads (default: torch's choice).")
    ] = None,
    population: Annotated[
        int | None,
        typer.Option(
            help="Number of models trained together (default: 10, on a GPU 64; with --part depth: "
            "2, on a GPU 16)."
        ),
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
        typer.Option(help="With --part epochs: of LON-GNN; float32, or tf32 on a GPU."),
    ] = "float32",
    section: Annotated[
        list[str] | None,
        typer.Option(
            help="Besides times, measure only these: memory, scaling, ceilings (default: all on a "
            "GPU, all but ceilings on a CPU); with --part scale: rivals, growth. Repeatable."
        ),
    ] = None,
    part: Annotated[
        str,
        typer.Option(
            help="epochs: time training; depth: time training of deep models; scale: time the "
            "stages of large graphs."
        ),
    ] = "epochs",
    size: Annotated[
        str | None,
        typer.Option(
            metavar="NODES,EDGES,COLUMNS,DEGREE", help="With --part scale: this size alone."
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
    if part not in PARTS:
        raise ValueError(f"Expected --part among {', '.join(PARTS)} (got {part!r})")

    def keep(record: dict[str, Any]) -> None:
        """What is measured until now stays, if whoever measures is interrupted."""
        if output is not None:
            benchmarks.write_bench(record, output, name=name)

    options: dict[str, Any] = {"threads": threads, "quick": quick, "commit": commit}
    options |= {"sections": _split(section)}
    options["on_progress"] = lambda text: err.print(text, markup=False)
    if part == "scale":
        options["size"] = None if size is None else _size(size)
        where = str(longnn.training.choose_device(device))
        record = benchmarks.run_scale(device=where, **options)
    else:
        record = benchmarks.run_bench(
            _split(None if datasets_ is None else [datasets_]),
            part=part,
            device=device,
            population=population,
            precision=precision,
            contenders=_split(contender),
            data_dir=data_dir,
            on_dataset=keep,
            **options,
        )
    keep(record)
    if json_:
        print(json.dumps(record, allow_nan=False))
        return
    for line in benchmarks.lines(record):
        out.print(line, markup=False)


def _size(text: str) -> benchmarks.Size:
    try:
        numbers = [int(part) for part in text.split(",")]
        if len(numbers) != 4 or min(numbers) < 1:
            raise ValueError
    except ValueError:
        raise ValueError(
            f"Expected --size as four whole numbers NODES,EDGES,COLUMNS,DEGREE (got {text!r})"
        ) from None
    return benchmarks.Size(*numbers)


def _split(given: list[str] | None) -> list[str] | None:
    """Names given one by one or separated by commas; None if none were given."""
    return [name.strip() for text in given for name in text.split(",")] if given else None
