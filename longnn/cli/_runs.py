"""Commands that use runs: predict, evaluate, compare."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Annotated

import typer

import longnn
from longnn._base.schema import to_plain
from longnn.cli import _display
from longnn.cli._base import (
    Cache,
    DataDir,
    DataOption,
    Json,
    Memory,
    Nodes,
    Run,
    err,
    out,
    read_memory,
    read_source,
    show_notes,
    with_short_paths,
)


def predict(
    run: Run,
    graph: Annotated[
        str | None,
        typer.Argument(help="Name or files of a new graph (default: the run's own graph)."),
    ] = None,
    nodes: Nodes = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="CSV file to write, with a Parquet file beside it (default: in the run folder). "
            "For a graph that is read by rows, a Parquet file."
        ),
    ] = None,
    repeat_index: Annotated[
        int | None,
        typer.Option(help="Predict with one repeat, counted from 0 (default: the mean of all)."),
    ] = None,
    data_dir: DataDir = None,
    data_option: DataOption = None,
    memory: Memory = None,
    cache: Cache = None,
) -> None:
    """Predict all nodes of the run's graph, or of a new graph with the same features."""
    found = longnn.runs.load_run(run, data_dir=data_dir)
    source = None if graph is None else read_source(graph, nodes, data_option)
    if source is not None and not longnn.store.is_prepared(source.graph):
        source = source if found.source is None else source.like(found.source)
    on_rows = _stored_graph(found, source, read_memory(memory), cache)
    if on_rows is not None:
        own = source is None
        name = longnn.runs.folder_name(on_rows.about["name"])
        alone = "" if repeat_index is None else f"-repeat-{repeat_index}"
        target = output or run / f"predictions-{name}{alone}.parquet"
        _predict_rows(found, None if own else on_rows, target, repeat_index, read_memory(memory))
        return
    if source is None:
        dataset = found.dataset
    else:
        dataset = longnn.store.load_source(source, data_dir, rows=False)
        dataset = found.trained.encode(dataset)
        show_notes(dataset.notes)
    alone = "" if repeat_index is None else f"-repeat-{repeat_index}"
    name = f"predictions-{longnn.runs.folder_name(dataset.name)}{alone}.csv"
    target = output or run / name
    if target.suffix != ".csv":
        raise ValueError(f"Expected --output to end in .csv (got {target})")
    if not target.parent.is_dir():
        raise ValueError(f"Expected --output in an existing folder (got {target.parent})")
    if graph is None:
        table = found.predictions(repeat_index)
    else:
        table = found.predict(dataset, repeat_index)
    paths = longnn.runs.write_predictions(table, target)
    how = ""
    if repeat_index is not None:
        how = f" of repeat {repeat_index}"
    elif found.trained.repeats > 1:
        how = f", each the mean of {found.trained.repeats} repeats"
    out.print(f"{dataset.num_nodes} predictions{how}: {paths[0]} and {paths[1].name}", markup=False)


def _stored_graph(
    found: "longnn.runs.Run",
    source: "longnn.data.Source | None",
    memory: int | None,
    cache: Path | None,
) -> "longnn.store.GraphStore | None":
    """The graph on disk that is to be predicted by rows, or None."""
    if source is None:
        dataset = found.dataset
        return dataset.graph if isinstance(dataset, longnn.store.StoredDataset) else None
    return longnn.store.stored_graph(
        source,
        memory=memory,
        like=found.trained,
        cache=cache,
        on_note=lambda note: show_notes([with_short_paths(note)]),
    )


def _predict_rows(
    found: "longnn.runs.Run",
    graph: "longnn.store.GraphStore | None",
    target: Path,
    repeat_index: int | None,
    memory: int | None,
) -> None:
    """Write the predictions of a graph on disk to a Parquet file, some rows at a time."""
    if target.suffix != ".parquet":
        raise ValueError(
            f"Expected --output to end in .parquet for a graph that is read by rows (got {target})"
        )
    if not target.parent.is_dir():
        raise ValueError(f"Expected --output in an existing folder (got {target.parent})")
    tables = found.stream(repeat_index, graph, memory=memory)
    rows = longnn.runs.write_stream(tables, target)
    out.print(f"{rows} predictions: {target}", markup=False)


def evaluate(
    run: Run,
    data_dir: DataDir = None,
    json_: Json = False,
    truncate: Annotated[
        bool,
        typer.Option("--truncate", help="Show the scores with shorter filters against their cost."),
    ] = False,
) -> None:
    """Compute the scores of a finished run again, from its weights and data."""
    found = longnn.runs.load_run(run, data_dir=data_dir)
    if truncate:
        _show_truncation(found, json_)
        return
    scores, summary = found.evaluate()
    if json_:
        repeats = [
            {"seed": split.seed, "scores": each}
            for split, each in zip(found.splits, scores, strict=True)
        ]
        plain = {"repeats": repeats, "summary": to_plain(summary)}
        print(json.dumps(plain, allow_nan=False))
        return
    metrics = list(dict.fromkeys(metric for found in summary.values() for metric in found))
    rows = [
        [
            longnn.report.metric_name(metric),
            *(
                longnn.report.interval_text(values[metric], metric=metric, short=True)
                if metric in values
                else ""
                for values in summary.values()
            ),
        ]
        for metric in metrics
    ]
    out.print(_display.table(["", "training", "validation", "test"], rows, right={1, 2, 3}))


def _show_truncation(found: "longnn.runs.Run", json_: bool) -> None:
    """Scores against products; the mean over the repeats, the degrees of the first."""
    repeats = found.truncation()
    if json_:
        plain = [[dataclasses.asdict(point) for point in curve] for curve in repeats]
        print(json.dumps({"repeats": plain}))
        return
    watched = found.config.settings.monitor
    metric = watched if watched in repeats[0][0].val else found.record.metric
    rows = []
    for points in zip(*repeats, strict=True):  # one of every repeat, at one share
        scores = [
            sum(getattr(point, part)[metric] for point in points) / len(points)
            if metric in getattr(points[0], part)
            else math.nan
            for part in ("val", "test")
        ]
        rows.append(
            [
                f"{100 * points[0].share:g} %",
                f"{sum(point.products for point in points) / len(points):g}",
                *(longnn.report.score_text(score, metric) for score in scores),
                " ".join(map(str, points[0].degrees)),
            ]
        )
    columns = ["norm² kept", "products", "validation", "test", "degrees of the filters"]
    out.print(f"{longnn.report.metric_name(metric)} with truncated filters, nothing trained again")
    out.print(_display.table(columns, rows, right={0, 1, 2, 3}))


def compare(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders.")],
    output: Annotated[Path, typer.Option(help="HTML page to write.")] = Path("comparison.html"),
) -> None:
    """Compare runs: print a table, write a page with all filters in one figure."""
    records = longnn.report.name_apart([longnn.runs.read_record(folder) for folder in folders])
    columns, *rows = longnn.report.comparison_rows(records)
    for line in _display.shared_cells(columns[:-1], rows):
        out.print(line, markup=False)
    out.print(_display.table(*_display.differing_cells(columns[:-1], rows)))
    out.print("\nlearned filters", style="bold")
    for row in rows:
        out.print(f"  {row[0]}: {row[-1]}", markup=False)
    for caution in longnn.report.cautions(records):
        err.print(f"note: {caution}", markup=False)
    page = longnn.report.write_comparison(records, output)
    out.print(f"\npage: {page}", markup=False)
