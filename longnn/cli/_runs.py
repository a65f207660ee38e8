"""Commands that make and use runs: train, predict, evaluate, compare."""

import contextlib
import dataclasses
import json
import math
import os
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import longnn
from longnn.cli import _display
from longnn.cli._base import (
    DataDir,
    DataOption,
    Json,
    Memory,
    Nodes,
    Run,
    err,
    is_first_rank,
    message,
    out,
    read_memory,
    read_source,
    show_notes,
    with_short_paths,
)

if TYPE_CHECKING:
    from longnn.config import Config
    from longnn.data import Source

#: As in :mod:`longnn.runs`, which is not loaded for a page of help.
CHECKPOINT_EVERY = 10.0


def train(
    graph: Annotated[
        str | None,
        typer.Argument(
            help="Name of a dataset, an edge file, a folder with edges.* and nodes.*, or a "
            "prepared folder."
        ),
    ] = None,
    nodes: Nodes = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="How much to train: fast (one model), default (a portfolio of eight, joined; this "
            "is the default), best (a larger one)."
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Time for all of it; the best until then is kept."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="Train one model of this name, see `longnn models`."),
    ] = None,
    repeat: Annotated[
        int | None,
        typer.Option(help="Number of repeats, with seeds seed, seed + 1, ... (default: 1)."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of weights, dropout and split (default: 0).")
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="Split protocol: published, stratified, geom-gcn, fixed or own (default: the "
            "dataset's own)."
        ),
    ] = None,
    recipe: Annotated[
        bool, typer.Option("--recipe", help="Start from the tuned recipe of a named dataset.")
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option(help="TOML file with settings and options, e.g. the config.toml of a run."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change one setting or option, e.g. degree=4; repeatable.",
        ),
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or auto (default: auto).")] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Run folder (default: runs/GRAPH-PRESET, or runs/GRAPH-MODEL for one model)."
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(help="Continue the interrupted run in this folder.", metavar="RUN"),
    ] = None,
    data_dir: DataDir = None,
    data_option: DataOption = None,
    memory: Memory = None,
    checkpoint_every: Annotated[
        float, typer.Option(metavar="SECONDS", help="Seconds between checkpoints.")
    ] = CHECKPOINT_EVERY,
    json_: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only errors.")] = False,
) -> None:
    """Train a model and write a run folder with weights, predictions and a report."""
    began = time.perf_counter()  # loading the program is part of what a time limit allows
    first = is_first_rank()
    quiet, json_ = quiet or not first, json_ and first
    named = {"preset": preset, "time_limit": time_limit, "model": model, "repeat": repeat}
    named |= {"seed": seed, "split": split, "device": device}
    options: dict[str, Any] = {
        "checkpoint_every": checkpoint_every,
        "data_dir": data_dir,
        "began": began,
        "on_start": lambda dataset: None if quiet else show_notes(dataset.notes),
    }
    on_note = lambda note: None if quiet else show_notes([with_short_paths(note)])  # noqa: E731
    if resume is not None:
        given: dict[str, Any] = {"a graph": graph, "--nodes": nodes, "--config": config}
        given |= {"--set": set_, "--output": output, "--data": data_option}
        given |= {"--recipe": recipe or None, "--memory": memory}
        flags = {f"--{key.replace('_', '-')}": value for key, value in named.items()}
        _require_alone({**given, **flags})
        folder = resume
        begin = lambda on_epoch: longnn.runs.resume(folder, on_epoch=on_epoch, **options)  # noqa: E731
    else:
        if graph is None:
            raise ValueError(
                "Expected a graph: the name of a dataset or a file (see `longnn datasets`)"
            )
        source = read_source(graph, nodes, data_option)
        table = longnn.config.read_toml(config) if config is not None else {}
        table.update({key: value for key, value in named.items() if value is not None})
        table.update(longnn.config.parse_assignment(pair) for pair in set_ or [])
        chosen = _with_recipe(table, source, quiet=quiet) if recipe else table
        source = _as_recipe_wants(source, chosen, quiet=quiet) if recipe else source
        checked = _config(chosen)  # what is wrong is said before the graph is read
        kind = longnn.training.preset_of(chosen)
        if not quiet and not recipe and kind == "fast" and "preset" not in chosen:
            which = longnn.training.keys_of_one(chosen)[0]
            err.print(
                f"note: one model is trained, since {which} is set; --preset default trains a "
                "portfolio",
                markup=False,
            )
        kind = checked.model if kind == "fast" else kind
        again = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
        folder = output or longnn.runs.default_folder(
            Path("runs"), source.name, kind, unfinished=again
        )
        begin = lambda on_epoch: longnn.runs.train(  # noqa: E731
            source,
            chosen,
            folder,
            command=_command(),
            on_epoch=on_epoch,
            on_note=on_note,
            memory=read_memory(memory),
            **options,
        )
    with (
        _explained(folder, quiet=not first),
        _display.training_progress(err, quiet=quiet or json_) as on_epoch,
    ):
        run = begin(on_epoch)
    if json_:
        print(json.dumps({"run": str(folder), **run.record.to_dict()}, allow_nan=False))
    elif not quiet:
        for line in longnn.report.text_summary(run.record):
            out.print(line, markup=False)
        out.print(f"  time {_display.seconds_text(run.seconds)}", markup=False)
        out.print(f"\nreport: {folder / 'report.html'}", markup=False)


@contextlib.contextmanager
def _explained(folder: Path, *, quiet: bool) -> Iterator[None]:
    """Say how to continue a training that is interrupted, or that a disk has no room for.

    Where ``quiet``, another process says it.
    """
    going_on = f"continue with: longnn train --resume {shlex.quote(str(folder))}"
    try:
        yield
    except longnn.runs.Interrupted as stop:
        if quiet:
            raise typer.Exit(130) from None
        err.print(f"interrupted; the best so far is kept: {folder / 'report.html'}", markup=False)
        for line in longnn.report.text_summary(stop.run.record)[:3]:
            err.print(line, markup=False)
        err.print(going_on, markup=False)
        raise typer.Exit(130) from None
    except KeyboardInterrupt:
        begun = (folder / "run.json").exists()
        if quiet:
            raise typer.Exit(130) from None
        err.print(f"interrupted; {going_on}" if begun else "interrupted", markup=False)
        raise typer.Exit(130) from None
    except OSError as error:  # a full disk, above all: what was trained is not lost
        if quiet or not (folder / "run.json").exists():
            raise
        raise OSError(f"{message(error)}; when this is solved, {going_on}") from error


def _require_alone(given: dict[str, Any]) -> None:
    """Raise where something was given beside --resume."""
    extra = [key for key, value in given.items() if value not in (None, [])]
    if extra:
        raise ValueError(
            "Expected --resume RUN alone: a run continues with its own settings "
            f"(got {extra[0]} too)"
        )


def _config(table: dict[str, Any]) -> "Config":
    return longnn.config.Config.from_dict(table)


def _with_recipe(table: dict[str, Any], source: "Source", *, quiet: bool) -> dict[str, Any]:
    """A shipped recipe with changes; where there is none, one line and exit code 2."""
    model = _config({"model": table["model"]} if "model" in table else {}).model
    try:
        if not source.is_named:
            having = ", ".join(dict.fromkeys(name for _, name in longnn.recipes.known_recipes()))
            raise ValueError(
                f"Expected --recipe with a dataset that has one: {having} (got {source.graph}); "
                "for your own graph, `longnn tune` finds one"
            )
        recipe = longnn.recipes.load_recipe(model, source.graph)
    except ValueError as error:
        err.print(f"error: {message(error)}", markup=False)
        raise typer.Exit(2) from None
    if not quiet:
        title = longnn.registry.find_model(model).title
        err.print(f"note: started from the recipe of {title} for {source.graph}", markup=False)
    return {**recipe, **table}


def _as_recipe_wants(source: "Source", chosen: dict[str, Any], *, quiet: bool) -> "Source":
    """The graph with its arcs for a recipe that needs them, unless the user said otherwise."""
    wanted = chosen.get("direction") in ("cover", "magnetic")
    if not wanted or "directed" in source.options:
        return source
    if not quiet:
        err.print("note: arcs are kept, as the recipe wants (directed=true)", markup=False)
    return dataclasses.replace(source, options={**source.options, "directed": True})


def _command() -> str:
    return shlex.join(["longnn", *sys.argv[1:]])


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
) -> None:
    """Predict all nodes of the run's graph, or of a new graph with the same features."""
    found = longnn.runs.load_run(run, data_dir=data_dir)
    on_rows = _stored_graph(found, graph, read_memory(memory))
    if on_rows is not None:
        own = graph is None
        name = longnn.runs.folder_name(on_rows.about["name"])
        alone = "" if repeat_index is None else f"-repeat-{repeat_index}"
        target = output or run / f"predictions-{name}{alone}.parquet"
        _predict_rows(found, None if own else on_rows, target, repeat_index, read_memory(memory))
        return
    if graph is None:
        dataset = found.dataset
    else:
        source = read_source(graph, nodes, data_option)
        trained_on = found.source
        if not longnn.store.is_prepared(source.graph) and trained_on is not None:
            source = source.like(trained_on)
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
    found: "longnn.runs.Run", graph: str | None, memory: int | None
) -> "longnn.store.GraphStore | None":
    """The prepared graph that is to be predicted by rows, or None."""
    if graph is None:
        dataset = found.dataset
        return dataset.graph if isinstance(dataset, longnn.store.StoredDataset) else None
    if not longnn.store.is_prepared(graph):
        return None
    stored = longnn.store.GraphStore.open(graph)
    return None if longnn.store.fits_memory(stored, memory) else stored


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
        plain = {"repeats": repeats, "summary": longnn.records.summary_dict(summary)}
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
