"""The paper's experiments: run by name, or tables and figures made again from their records."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longnn.cli._base import DataDir, err, out
from longnn.studies import EXPERIMENTS

if TYPE_CHECKING:
    from longnn.studies import Experiment, Table

QUICK = "-quick"


def paper(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help=f"{', '.join(EXPERIMENTS)}, or all."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small version of everything, for a look.")
    ] = False,
    output: Annotated[
        Path, typer.Option(help=f"A folder for them all; {QUICK} is appended where --quick.")
    ] = Path("paper-results"),
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "auto",
    dataset: Annotated[list[str] | None, typer.Option(help="Only this one; repeatable.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="Only this one; repeatable.")] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Tables and figures from saved records alone.")
    ] = False,
    list_: Annotated[bool, typer.Option("--list", help="Names and titles.")] = False,
    commit: Annotated[
        str | None, typer.Option(help="Of the code, where it is no checkout.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Do the paper's experiments; run it again to go on where it was interrupted."""
    from longnn.cli import _display as display
    from longnn.studies import Context, run_experiment
    from longnn.studies import rebuild as rebuild_experiment

    if list_:
        rows = [[name, _find(name).TITLE] for name in EXPERIMENTS]
        out.print(display.table(["name", "experiment"], rows))
        return
    folder = output
    if quick and not folder.name.endswith(QUICK):
        folder = folder.with_name(folder.name + QUICK)
    chosen = _choose(names or [], folder if rebuild else None)
    for name in chosen:
        _find(name)
    for name in chosen:
        if rebuild:
            tables = rebuild_experiment(name, folder / name)
        else:
            try:
                with display.part_progress(err, name) as tell:
                    context = Context(
                        folder / name,
                        data_dir=None if data_dir is None else str(data_dir),
                        device=device,
                        quick=quick,
                        datasets=dataset,
                        models=model,
                        commit=commit,
                        tell=tell,
                    )
                    tables = run_experiment(name, context)
            except KeyboardInterrupt:
                err.print("interrupted; run the same command to go on", markup=False)
                raise typer.Exit(130) from None
        _show(name, tables)
    for name in chosen:
        out.print(f"tables and figures: {folder / name}", markup=False)
    which = " ".join(names or [])
    if quick:
        out.print(f"next: longnn paper {which} gives the numbers in full", markup=False)
    else:
        again = f"longnn paper {which} --rebuild --output {folder}"
        out.print(f"next: {again} makes them again from the records", markup=False)


def _choose(names: list[str], saved: Path | None) -> list[str]:
    """The experiments that are meant, in the order of the paper; saved ones, where a folder is."""
    known = f"all, {', '.join(EXPERIMENTS)}"
    if not names:
        raise ValueError(f"Expected names of experiments: {known} (got none)")
    for name in names:
        if name not in (*EXPERIMENTS, "all"):
            raise ValueError(f"Expected an experiment of {known} (got {name!r})")
    chosen = [name for name in EXPERIMENTS if name in names or "all" in names]
    if saved is None:
        return chosen
    there = [name for name in chosen if (saved / name).is_dir()]
    missing = [name for name in chosen if name not in there and ("all" not in names or not there)]
    if missing:
        raise ValueError(f"Expected records in {saved / missing[0]} (there are none to rebuild)")
    return there


def _find(name: str) -> "Experiment":
    from longnn.studies import get_experiment

    try:
        return get_experiment(name)
    except ImportError as error:
        raise ValueError(f"Expected the experiment {name!r} to be there ({error})") from error


def _show(name: str, tables: "list[Table]") -> None:
    from longnn.cli import _display as display

    out.print(_find(name).TITLE, style="bold", markup=False)
    for table in tables:
        out.print(f"\n{table.caption}", markup=False)
        for line in display.number_lines(table.columns, table.rows):
            out.print(line)
    out.print()
