"""The command that says why: of single nodes, or of all predictions at once."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import longnn
from longnn.cli import _display
from longnn.cli._base import (
    DataDir,
    DataOption,
    Json,
    Run,
    err,
    out,
    read_source,
    show_notes,
)

if TYPE_CHECKING:
    from longnn.data import NodeDataset
    from longnn.explain import Explanation, NodeExplanation, Overview

#: Nodes that are printed one by one; the others are in the files.
PRINTED = 10


def explain(
    run: Run,
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NODE]...",
            help="Ids of nodes to explain (default: all predictions at once).",
        ),
    ] = None,
    output_name: Annotated[
        str | None,
        typer.Option(
            "--class", help="Class, label or target to explain (default: the predicted class)."
        ),
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="Another class, whose score is subtracted.")
    ] = None,
    graph: Annotated[
        str | None,
        typer.Option(help="Name or files of a new graph (default: the run's own graph)."),
    ] = None,
    nodes: Annotated[
        Path | None, typer.Option(help="Node file, if the new graph is an edge file.")
    ] = None,
    repeat_index: Annotated[
        int | None,
        typer.Option(help="Explain one repeat, counted from 0 (default: the average of all)."),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(help="Without nodes: how many to count distances over."),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Rows of each printed table.")] = 10,
    features: Annotated[
        bool, typer.Option("--features/--no-features", help="Split by feature, too.")
    ] = True,
    output: Annotated[
        Path | None, typer.Option(help="Tables to write: .csv, .parquet or .json.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Page to write, with every neighbourhood drawn.")
    ] = None,
    data_dir: DataDir = None,
    data_option: DataOption = None,
    json_: Json = False,
) -> None:
    """Say why: split predictions into contributions of nodes, distances and features.

    Exact for a filter on class scores; else by integrated gradients, with the gap shown.
    """
    if output is not None:
        longnn.explain.check_path(output)
    _check_html(html, bool(ids))
    if not ids and (output_name is not None or against is not None):
        raise ValueError("Expected nodes where --class or --against is given (got none)")
    if ids and sample is not None:
        raise ValueError("Expected --sample without nodes (got both)")
    found = longnn.runs.load_run(run, data_dir=data_dir)
    dataset = _dataset(found, graph, nodes, data_option, data_dir)
    shared: dict[str, Any] = {"repeat": repeat_index, "features": features}
    if ids:
        places = longnn.explain.find_ids(dataset.ids, ids)
        made: Any = longnn.explain.explain_nodes(
            found.trained, dataset, places, output=output_name, against=against, **shared
        )
    else:
        made = longnn.explain.explain_model(found.trained, dataset, sample=sample, **shared)
    if json_:
        tables = made.arrow() if ids else made.tables
        plain = {name: table.to_pylist() for name, table in tables.items()}
        print(json.dumps({**made.about(), **plain}, allow_nan=False, default=str))
    elif ids:
        _show_nodes(made, top)
    else:
        _show_overview(made, top)
    if output is not None:
        files = made.save(output)
        _tell("tables", files, json_)
    if html is not None:
        _tell("page", [made.write_page(html)], json_)


def _check_html(html: Path | None, nodes: bool) -> None:
    if html is None:
        return
    if not nodes:
        raise ValueError("Expected nodes for --html (got none): the page draws neighbourhoods")
    if html.suffix not in (".html", ".htm"):
        raise ValueError(f"Expected --html to end in .html (got {html})")
    if not html.parent.is_dir():
        raise ValueError(f"Expected --html in an existing folder (got {html.parent})")


def _tell(what: str, files: list[Path], quiet: bool) -> None:
    """Name the files that were written; to standard error where JSON is on standard output."""
    names = ", ".join([str(files[0]), *(file.name for file in files[1:])])
    (err if quiet else out).print(f"{what}: {names}", markup=False)


def _dataset(
    found: Any,
    graph: str | None,
    nodes: Path | None,
    pairs: list[str] | None,
    data_dir: Path | None,
) -> "NodeDataset":
    """The graph of the run, or another one read as the run's was."""
    if graph is None:
        dataset: NodeDataset = found.dataset
        return dataset
    source = read_source(graph, nodes, pairs)
    trained_on = found.source
    dataset = (source if trained_on is None else source.like(trained_on)).load(data_dir)
    dataset = found.trained.encode(dataset)
    show_notes(dataset.notes)
    return dataset


def _show_nodes(explanation: "Explanation", top: int) -> None:
    out.print(f"{explanation.model}: {explanation.method}", markup=False)
    for e in explanation.nodes[:PRINTED]:
        out.print(f"\n{e.node}", style="bold", markup=False)
        for line in longnn.explain.why(explanation, e):
            out.print(line, markup=False)
        _show_node(explanation, e, top)
    if len(explanation) > PRINTED:
        rest = len(explanation) - PRINTED
        out.print(f"\n{rest} more explained; --output and --html write all of them", markup=False)
    for note in explanation.notes:
        err.print(f"note: {note}", markup=False)


def _show_node(explanation: "Explanation", e: "NodeExplanation", top: int) -> None:
    columns, rows = longnn.explain.source_rows(e, top)
    out.print()
    out.print(_display.table(columns, rows, right=set(range(1, len(columns)))))
    rows = longnn.explain.ring_rows(e)
    out.print()
    out.print(_display.table(["by distance", "nodes", "contribution"], rows, right={1, 2}))
    if e.ways is not None:
        ways = longnn.explain.way_rows(e)
        out.print()
        out.print(_display.table(["by way", "contribution"], ways, right={1}))
    if e.features is not None:
        rows = longnn.explain.feature_rows(explanation, e, top)
        out.print()
        out.print(_display.table(["by feature", "contribution"], rows, right={1}))
    out.print(f"\nsum: {longnn.explain.sums(e)}", markup=False)


def _show_overview(overview: "Overview", top: int) -> None:
    out.print(f"{overview.model}: {overview.method}", markup=False)
    out.print(f"explained: {overview.what}, of {overview.explained} nodes", markup=False)
    tables = {name: table.to_pylist() for name, table in overview.tables.items()}
    signed = longnn.explain.signed
    groups = list(dict.fromkeys(row["output"] for row in tables["distances"]))
    hops = list(dict.fromkeys(row["distance"] for row in tables["distances"]))
    shares = {
        (r["output"], r["distance"]): f"{100 * r['share']:.0f} %" for r in tables["distances"]
    }
    columns = ["share by distance", *("far" if d is None else str(d) for d in hops)]
    rows = [[group, *(shares.get((group, d), "") for d in hops)] for group in groups]
    out.print()
    out.print(_display.table(columns, rows, right=set(range(1, len(columns)))))
    rows = [
        [r["feature"], f"{r['size']:.3f}", signed(r["contribution"])]
        for r in tables["features"]
        if r["output"] == groups[0]
    ]
    if rows:
        out.print()
        head = ["largest features", "mean size", "mean contribution"]
        out.print(_display.table(head, rows[:top], right={1, 2}))
    rows = [[str(r["node"]), signed(r["influence"])] for r in tables["influence"][:top]]
    out.print()
    out.print(_display.table(["most influential nodes", "on all scores"], rows, right={1}))
    if tables["stability"]:
        rows = [[r["measure"], f"{r['value']:.3g}"] for r in tables["stability"]]
        out.print()
        out.print(_display.table(["stability", ""], rows, right={1}))
    for note in overview.notes:
        err.print(f"note: {note}", markup=False)
