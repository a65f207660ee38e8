"""Commands for graphs of any size: prepare files, generate a random graph."""

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import longnn
from longnn.cli import _display as display
from longnn.cli._base import DataOption, Json, err, out, show_notes

if TYPE_CHECKING:
    from longnn.store import GraphStore

Output = Annotated[Path, typer.Option(help="Folder to make.")]
Memory = Annotated[str, typer.Option(help="Memory for the whole program, e.g. 4G.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")]
Seed = Annotated[int, typer.Option(help="Seed.")]


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
    scale: Annotated[
        str, typer.Option(help="How features are scaled: auto, columns, standard, row, none.")
    ] = "auto",
    seed: Annotated[int, typer.Option(help="Seed of the split, without a split column.")] = 0,
    memory: Memory = "4G",
    like: Annotated[
        Path | None,
        typer.Option(help="Prepared graph of training: encode and scale a new graph like it."),
    ] = None,
    ignore_weights: Annotated[
        bool, typer.Option("--ignore-weights", help="Treat weighted edges as unweighted.")
    ] = False,
    quiet: Quiet = False,
    json_: Json = False,
) -> None:
    """Write a graph of any size into a folder that training reads from disk."""
    options = dict(longnn.config.parse_assignment(pair) for pair in data_option or [])
    with _interruptible(), display.work_progress(err, quiet=quiet) as on_progress:
        made = longnn.store.prepare(
            graph,
            nodes,
            output=output,
            options=options,
            scale=scale,
            seed=seed,
            memory=memory,
            like=like,
            ignore_weights=ignore_weights,
            on_progress=on_progress,
        )
    _show(made, quiet=quiet, json_=json_)


def generate(
    nodes: Annotated[int, typer.Option(help="Number of nodes, e.g. 10_000_000.", parser=int)],
    edges: Annotated[int, typer.Option(help="Edges drawn; repeats are merged.", parser=int)],
    output: Output = Path("generated"),
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
    with _interruptible(), display.work_progress(err, quiet=quiet) as on_progress:
        made = longnn.store.generate(
            output,
            nodes=nodes,
            edges=edges,
            features=features,
            classes=classes,
            homophily=dial,
            pattern=pattern,  # type: ignore[arg-type]  # checked there
            labelled=labelled,
            signal=signal,
            exponent=exponent,
            seed=seed,
            format=format_,  # type: ignore[arg-type]
            memory=memory,
            on_progress=on_progress,
        )
    if made is not None:
        _show(made, quiet=quiet, json_=json_)
    elif not quiet:
        err.print(f"next: longnn prepare {shlex.quote(str(output))} --output DIR", markup=False)


def _show(graph: "GraphStore", *, quiet: bool, json_: bool) -> None:
    """The card of a graph, and what to do next."""
    if json_:
        about = {k: v for k, v in graph.about.items() if k not in ("encoding", "scaling")}
        sizes = {"nodes": graph.num_nodes, "features": graph.num_features}
        print(json.dumps({**about, **sizes}, allow_nan=False))
        return
    if quiet:
        return
    for line in longnn.store.card_lines(graph):
        out.print(line, markup=False)
    show_notes(graph.about["notes"])
    if graph.about["split"] is not None:
        err.print(f"next: longnn train {shlex.quote(str(graph.folder))}", markup=False)


@contextmanager
def _interruptible() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        err.print("interrupted; nothing was kept, the same command starts over", markup=False)
        raise typer.Exit(130) from None
