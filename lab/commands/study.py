"""Studies: run by name, or their tables and figures made again from their records."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.cells import cell_len
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

import lab.studies
from longnn.cli import _display as display
from longnn.cli._base import DataDir, err, out

if TYPE_CHECKING:
    from lab.studies import Context, ResultTable

QUICK = "-quick"


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
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "auto",
    dataset: Annotated[
        list[str] | None, typer.Option(help="Only this dataset; repeatable.")
    ] = None,
    model: Annotated[list[str] | None, typer.Option(help="Only this model; repeatable.")] = None,
    rebuild: Annotated[
        bool,
        typer.Option(
            "--rebuild", help="Make tables and figures again from saved records; train nothing."
        ),
    ] = False,
    list_: Annotated[bool, typer.Option("--list", help="List the studies.")] = False,
    commit: Annotated[
        str | None, typer.Option(help="Commit to record when the code is not a git checkout.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Repeat experiments of the paper, and ours.

    Run the same command again to continue after an interruption.
    """
    if list_:
        rows = [[name, lab.studies.get_study(name).TITLE] for name in lab.studies.sorted_studies()]
        out.print(display.table(["name", "study"], rows))
        return
    folder = output
    if quick and not folder.name.endswith(QUICK):
        folder = folder.with_name(folder.name + QUICK)
    chosen = _choose(names or [], folder if rebuild else None)
    context = lab.studies.Context(
        folder,
        data_dir=None if data_dir is None else str(data_dir),
        device=device,
        quick=quick,
        datasets=dataset,
        models=model,
        commit=commit,
    )
    for name in chosen:
        if rebuild:
            tables = lab.studies.rebuild_study(name, folder / name)
        else:
            tables = _run(name, context)
        _show(lab.studies.get_study(name).TITLE, tables)
    for name in chosen:
        out.print(f"tables and figures: {folder / name}", markup=False)
    which = " ".join(names or [])
    if quick:
        out.print(f"next: python -m lab study {which} computes the full results", markup=False)
    else:
        again = f"python -m lab study {which} --rebuild --output {folder}"
        out.print(f"next: {again} makes them again from the records", markup=False)


def _choose(names: list[str], saved: Path | None) -> list[str]:
    """The studies that are meant, in order; given a folder, only those that it has records of."""
    known = lab.studies.study_names()
    expected = f"all, {', '.join(known)}"
    if not names:
        raise ValueError(f"Expected names of studies: {expected} (got none)")
    for name in names:
        if name not in (*known, "all"):
            raise ValueError(f"Expected a study of {expected} (got {name!r})")
    chosen = lab.studies.sorted_studies(None if "all" in names else names)
    if saved is None:
        computed = [n for n in chosen if not lab.studies.is_history(lab.studies.get_study(n))]
        return computed if "all" in names else chosen
    there = [name for name in chosen if (saved / name / "records").is_dir()]
    missing = [name for name in chosen if name not in there and ("all" not in names or not there)]
    if missing:
        raise ValueError(f"Expected records in {saved / missing[0]} (there are none to rebuild)")
    return there


def _run(name: str, shared: "Context") -> "list[ResultTable]":
    """Run a study in its own folder, with progress; an interrupt is one line."""
    try:
        with _progress(name) as tell:
            folder = shared.folder / name
            return lab.studies.run_study(
                name, dataclasses.replace(shared, folder=folder, tell=tell)
            )
    except KeyboardInterrupt:
        err.print("interrupted; run the same command again to continue", markup=False)
        raise typer.Exit(130) from None


@contextmanager
def _progress(name: str) -> Iterator[Callable[[str], None]]:
    """A callback that prints one line per finished cell; a terminal shows that work goes on."""
    if not err.is_terminal:
        yield lambda line: err.print(f"{name}: {line}", markup=False)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, refresh_per_second=5) as progress:
        progress.add_task(name, total=None)
        yield lambda line: progress.console.print(f"{name}: {line}", markup=False)


def _show(title: str, tables: "list[ResultTable]") -> None:
    out.print(title, style="bold", markup=False)
    for table in tables:
        out.print(f"\n{table.caption}", markup=False)
        for line in number_lines(table.columns, table.rows):
            out.print(line)
    out.print()


def number_lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[Text]:
    """A table of names and numbers, one line per row and never wrapped: no number is cut.

    Cells are written as in Markdown: ``**cell**`` is printed in bold.

    >>> [line.plain for line in number_lines(["data", "loss"], [["cora", "**0.5**"]])]
    ['data  loss', 'cora   0.5']
    """
    table = [[cell.strip("*") for cell in row] for row in (columns, *rows)]
    widths = [max(map(cell_len, column)) for column in zip(*table, strict=True)]
    lines = []
    for n, (row, cells) in enumerate(zip(table, (columns, *rows), strict=True)):
        line = Text()
        for i, (text, cell, width) in enumerate(zip(row, cells, widths, strict=True)):
            space = " " * (width - cell_len(text))
            bold = "bold" if n == 0 or cell.startswith("**") else ""
            line.append(f"  {space}{text}" if i else text + space, style=bold)
        lines.append(line)
    return lines
