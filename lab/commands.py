"""The commands of ``python -m lab`` that have options: studies, benchmarks, random graphs."""

import dataclasses
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from lab import bench as benchmarks
from lab import studies
from lab.generator import generate as write_graph
from lab.large import RECORD
from lab.large import measure as measure_large
from lab.large import page as large_page
from longnn.cli import _display as display
from longnn.cli._base import DataDir, Json, Quiet, err, interruptible, out
from longnn.cli._graphs import STARTS_OVER

QUICK = "-quick"
Device = Annotated[str, typer.Option(help="cpu, cuda or auto.")]
Commit = Annotated[
    str | None, typer.Option(help="Commit to record when the code is not a git checkout.")
]


def study(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Names of studies (see --list), or `all`."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run a small version of each study.")
    ] = False,
    output: Annotated[
        Path, typer.Option(help=f"Folder with one subfolder per study; --quick adds {QUICK}.")
    ] = Path("study-results"),
    device: Device = "auto",
    dataset: Annotated[
        list[str] | None, typer.Option(help="Only this dataset; repeatable.")
    ] = None,
    model: Annotated[list[str] | None, typer.Option(help="Only this model; repeatable.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the studies.")] = False,
    commit: Commit = None,
    data_dir: DataDir = None,
) -> None:
    """Repeat experiments of the paper, and ours.

    Run the same command again to continue after an interruption.
    """
    if list_:
        rows = [[name, studies.get_study(name).TITLE] for name in studies.sorted_studies()]
        out.print(display.table(["name", "study"], rows))
        return
    folder = output
    if quick and not folder.name.endswith(QUICK):
        folder = folder.with_name(folder.name + QUICK)
    chosen = _choose(names or [])
    context = studies.Context(
        folder,
        data_dir=None if data_dir is None else str(data_dir),
        device=device,
        quick=quick,
        datasets=dataset,
        models=model,
        commit=commit,
    )
    for name in chosen:
        _show(studies.get_study(name).TITLE, _run(name, context))
    for name in chosen:
        out.print(f"tables and figures: {folder / name}", markup=False)
    if quick:
        which = " ".join(names or [])
        out.print(f"next: python -m lab study {which} computes the full results", markup=False)


def _choose(names: list[str]) -> list[str]:
    """The studies that are meant, in order; ``all`` are those that can be computed."""
    known = studies.study_names()
    if not names or not {*names} <= {*known, "all"}:
        wrong = [repr(name) for name in names if name not in (*known, "all")]
        raise ValueError(
            f"Expected names of studies: all, {', '.join(known)} (got {', '.join(wrong) or 'none'})"
        )
    chosen = studies.sorted_studies(None if "all" in names else names)
    return [n for n in chosen if "all" not in names or not studies.is_history(studies.get_study(n))]


def _run(name: str, shared: studies.Context) -> list[studies.ResultTable]:
    """Run a study in its own folder, with a line per finished cell; an interrupt is one line."""

    def tell(line: str) -> None:
        err.print(f"{name}: {line}", markup=False)

    context = dataclasses.replace(shared, folder=shared.folder / name, tell=tell)
    try:
        return studies.run_study(name, context)
    except KeyboardInterrupt:
        err.print("interrupted; run the same command again to continue", markup=False)
        raise typer.Exit(130) from None


def _show(title: str, tables: Sequence[studies.ResultTable]) -> None:
    out.print(title, style="bold", markup=False)
    for table in tables:
        rows = [[cell.strip("*") for cell in row] for row in table.rows]
        shown = benchmarks.Table("", table.caption, list(table.columns), rows)
        for line in ("", *shown.lines()):
            out.print(line, markup=False)
    out.print()


def bench(
    datasets_: Annotated[
        str | None,
        typer.Option(
            "--datasets",
            help="Comma-separated names (default: the ten graphs of the paper).",
        ),
    ] = None,
    device: Device = "auto",
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
    commit: Commit = None,
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


def large(
    nodes: Annotated[list[int], typer.Argument(help="Numbers of nodes, one graph each.")],
    folder: Annotated[Path, typer.Option(help="Folder to work in; emptied after each graph.")],
    output: Annotated[Path, typer.Option(help="Folder of the record, which is gone on with.")],
    memory: Annotated[str, typer.Option(help="Of each command.")] = "4G",
    epochs: Annotated[int | None, typer.Option(help="Limit of training (default: none).")] = None,
    plain: Annotated[bool, typer.Option(help="Train without known answers, too.")] = False,
    commit: Commit = None,
) -> None:
    """Time every command on random graphs larger than memory, and take its peak memory."""
    output.mkdir(parents=True, exist_ok=True)
    options: dict[str, Any] = {"memory": memory, "epochs": epochs, "plain": plain}
    record = measure_large(nodes, folder, output / RECORD, commit=commit, **options)
    out.print(large_page(record), markup=False)


def _split(given: list[str] | None) -> list[str] | None:
    """Names given one by one or separated by commas; None if none were given."""
    return [name.strip() for text in given for name in text.split(",")] if given else None


def generate(
    nodes: Annotated[int, typer.Option(help="Number of nodes, e.g. 10_000_000.", parser=int)],
    edges: Annotated[int, typer.Option(help="Edges drawn; repeats are merged.", parser=int)],
    output: Annotated[Path, typer.Option(help="Folder to make.")] = Path("generated"),
    features: Annotated[int, typer.Option(help="Features per node.")] = 64,
    classes: Annotated[int, typer.Option(help="Classes, of equal size.")] = 10,
    homophily: Annotated[
        float, typer.Option(help="Share of edges within a class, 0 to 1; others lead anywhere.")
    ] = 0.8,
    labelled: Annotated[
        float, typer.Option(help="Labelled nodes: a share up to 1, or a number.")
    ] = 1.0,
    signal: Annotated[
        float, typer.Option(help="Distance of the class means from 0; the noise has deviation 1.")
    ] = 1.0,
    exponent: Annotated[float, typer.Option(help="Exponent of the degrees, above 2.")] = 2.5,
    seed: Annotated[int, typer.Option(help="Seed.")] = 0,
    quiet: Quiet = False,
) -> None:
    """Make files of a random graph with classes, features and heavy-tailed degrees."""
    with interruptible(STARTS_OVER), display.work_progress(err, quiet=quiet) as on_progress:
        write_graph(
            output,
            nodes=nodes,
            edges=edges,
            features=features,
            classes=classes,
            homophily=homophily,
            labelled=labelled,
            signal=signal,
            exponent=exponent,
            seed=seed,
            on_progress=on_progress,
        )
    if not quiet:
        err.print(f"next: longnn prepare {shlex.quote(str(output))} --output DIR")
