"""The command that prepares a graph of any size for training from disk."""

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import longnn
from longnn.cli import _display as display
from longnn.cli._base import DataOption, Json, err, out, read_source, show_notes

if TYPE_CHECKING:
    from longnn.store._graph import GraphStore

Output = Annotated[Path, typer.Option(help="Folder to make.")]
Memory = Annotated[str, typer.Option(help="Memory for the whole program, e.g. 4G.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")]


def prepare(
    graph: Annotated[
        str,
        typer.Argument(
            help="Edges: a file, a folder of parts, or a folder with edges and nodes; "
            "Parquet, CSV, TSV, text, Arrow, Feather, npz."
        ),
    ],
    nodes: Annotated[
        Path | None, typer.Argument(help="Nodes: a file or a folder of parts.")
    ] = None,
    output: Output = Path("prepared"),
    data_option: DataOption = None,
    memory: Memory = "4G",
    like: Annotated[
        Path | None,
        typer.Option(help="Run, or prepared graph of training: encode a new graph like it."),
    ] = None,
    ignore_weights: Annotated[
        bool, typer.Option("--ignore-weights", help="Treat weighted edges as unweighted.")
    ] = False,
    quiet: Quiet = False,
    json_: Json = False,
) -> None:
    """Write a graph of any size into a folder that training reads from disk."""
    from longnn.store._prepare import Form

    source = read_source(graph, nodes, data_option)
    form: Path | Form | None = like
    if like is not None and (like / longnn.records.RUN).exists():
        run = longnn.runs.load_run(like)
        form, source = run.trained, source if run.source is None else source.like(run.source)
    with interruptible(), display.work_progress(err, quiet=quiet) as on_progress:
        made = longnn.store.prepare(
            Path(source.graph) if source.kind == "files" else source.graph,
            source.nodes,
            output=output,
            options=source.options,
            memory=memory,
            like=form,
            ignore_weights=ignore_weights,
            on_progress=on_progress,
        )
    show(made, quiet=quiet, json_=json_)


def show(graph: "GraphStore", *, quiet: bool, json_: bool) -> None:
    """The card of a graph, and what to do next."""
    from longnn.store._graph import card_lines

    if json_:
        about = {k: v for k, v in graph.about.items() if k not in ("encoding", "scaling")}
        sizes = {"nodes": graph.num_nodes, "features": graph.num_features}
        print(json.dumps({**about, **sizes}, allow_nan=False))
        return
    if quiet:
        return
    for line in card_lines(graph):
        out.print(line, markup=False)
    show_notes(graph.about["notes"])
    if graph.about["labelled"]:
        err.print(f"next: longnn train {shlex.quote(str(graph.folder))}", markup=False)


@contextmanager
def interruptible() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        err.print("interrupted; nothing was kept, the same command starts over", markup=False)
        raise typer.Exit(130) from None
