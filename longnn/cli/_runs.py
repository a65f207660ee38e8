"""Commands that make and use runs: train, predict, evaluate, compare."""

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longnn.cli._base import (
    DataDir,
    DataOption,
    Json,
    Nodes,
    Run,
    err,
    message,
    out,
    read_source,
    show_notes,
)

if TYPE_CHECKING:
    from longnn.data import NodeDataset

#: As in :mod:`longnn.runs`, which is not loaded for a page of help.
CHECKPOINT_EVERY = 10.0


def train(
    graph: Annotated[
        str | None,
        typer.Argument(help="A dataset's name, an edge file, or a folder with edges and nodes."),
    ] = None,
    nodes: Nodes = None,
    model: Annotated[str | None, typer.Option(help="See `longnn models`.")] = None,
    repeat: Annotated[int | None, typer.Option(help="Train so many times, seeds 0, 1, ...")] = None,
    seed: Annotated[int | None, typer.Option(help="Of weights, dropout and split.")] = None,
    split: Annotated[
        str | None, typer.Option(help="published, stratified, geom-gcn, fixed or own.")
    ] = None,
    recipe: Annotated[
        bool, typer.Option("--recipe", help="Start from the tuned recipe of a named dataset.")
    ] = False,
    config: Annotated[Path | None, typer.Option(help="A TOML file of keys.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set one key.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or auto.")] = None,
    output: Annotated[
        Path | None, typer.Option(help="The run folder (default: runs/GRAPH-MODEL).")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Go on with an interrupted run.", metavar="RUN")
    ] = None,
    data_dir: DataDir = None,
    data_option: DataOption = None,
    checkpoint_every: Annotated[
        float, typer.Option(metavar="SECONDS", help="How often to save what is trained so far.")
    ] = CHECKPOINT_EVERY,
    json_: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Train a model, and leave a run folder with weights, predictions and a report."""
    from longnn import report, runs
    from longnn.cli import _display as display
    from longnn.config import Config, parse_assignment, read_toml

    named = {"model": model, "repeat": repeat, "seed": seed, "split": split, "device": device}
    if resume is not None:
        given: dict[str, Any] = {"a graph": graph, "--nodes": nodes, "--config": config}
        given |= {"--set": set_, "--output": output, "--data": data_option}
        given |= {"--recipe": recipe or None}
        given |= {f"--{key}": value for key, value in named.items()}
        extra = [key for key, value in given.items() if value not in (None, [])]
        if extra:
            raise ValueError(
                f"Expected --resume RUN alone, since a run goes on as it began (got {extra[0]} too)"
            )
        folder = resume
        dataset, settings = runs.resume(folder, data_dir)
    else:
        if graph is None:
            raise ValueError("Expected a graph: a dataset's name or a file (see `longnn datasets`)")
        keys = read_toml(config) if config is not None else {}
        keys.update({key: value for key, value in named.items() if value is not None})
        keys.update(parse_assignment(pair) for pair in set_ or [])
        source = read_source(graph, nodes, data_option)
        if recipe:
            keys = {**_recipe(keys.get("model", Config.model), source, quiet=quiet), **keys}
        settings = Config.from_dict(keys)
        dataset = runs.load_source(source, data_dir)
        folder = output or runs.default_folder(Path("runs"), dataset.name, settings.model)
        runs.start_run(folder, dataset, source, settings, command=_command())
    if not quiet:
        show_notes(dataset.notes)
    going_on = f"go on with: longnn train --resume {shlex.quote(str(folder))}"
    try:
        with display.training_progress(err, quiet=quiet or json_) as on_epoch:
            record = runs.run_training(
                folder, dataset, settings, on_epoch=on_epoch, checkpoint_every=checkpoint_every
            )
    except KeyboardInterrupt:
        err.print(f"interrupted; {going_on}", markup=False)
        raise typer.Exit(130) from None
    except OSError as error:  # a full disk, above all: what was trained is not lost
        raise OSError(f"{message(error)}; when that is mended, {going_on}") from error
    if json_:
        print(json.dumps({"run": str(folder), **record}, allow_nan=False))
    elif not quiet:
        for line in report.text_summary(report.load_run(folder)):
            out.print(line, markup=False)
        out.print(f"\nreport: {folder / 'report.html'}", markup=False)


def _recipe(model: str, source: dict[str, Any], *, quiet: bool) -> dict[str, Any]:
    """The keys of a shipped recipe; where there is none, one line and exit code 2."""
    from longnn import data, recipes
    from longnn.config import Config

    Config(model=model)
    try:
        if source["nodes"] is not None or source["graph"] not in data.known_names():
            having = ", ".join(dict.fromkeys(name for _, name in recipes.known_recipes()))
            raise ValueError(
                f"Expected --recipe with a dataset that has one: {having} (got {source['graph']}); "
                "for your own graph, `longnn tune` finds one"
            )
        keys = recipes.load_recipe(model, source["graph"])
    except ValueError as error:
        err.print(f"error: {message(error)}", markup=False)
        raise typer.Exit(2) from None
    if not quiet:
        err.print(f"note: started from the recipe for {model} on {source['graph']}", markup=False)
    return keys


def _command() -> str:
    return shlex.join(["longnn", *sys.argv[1:]])


def predict(
    run: Run,
    graph: Annotated[str | None, typer.Argument(help="Default: the run's own graph.")] = None,
    nodes: Nodes = None,
    output: Annotated[
        Path | None, typer.Option(help="CSV file to write; a .parquet is written beside it.")
    ] = None,
    data_dir: DataDir = None,
    data_option: DataOption = None,
) -> None:
    """Predict every node of the run's graph, or of a new one with the same features."""
    from longnn import runs
    from longnn import runs as artifacts
    from longnn import runs as prediction

    asked = runs.find_run(run)
    if graph is None:
        dataset = runs.load_source(asked["source"], data_dir)
    else:
        dataset = _load_like(asked["source"], read_source(graph, nodes, data_option), data_dir)
    target = output or run / f"predictions-{runs.folder_name(dataset.name)}.csv"
    if target.suffix != ".csv":
        raise ValueError(f"Expected --output to end in .csv (got {target})")
    if not target.parent.is_dir():
        raise ValueError(f"Expected --output in an existing folder (got {target.parent})")
    predicted, _ = prediction.predict_run(run, dataset)
    paths = artifacts.write_predictions(
        target.parent, dataset, predicted, tuple(asked["classes"]), stem=target.stem
    )
    out.print(f"{dataset.num_nodes} predictions: {paths[0]} and {paths[1].name}", markup=False)


def _load_like(
    trained_on: dict[str, Any], source: dict[str, Any], data_dir: Path | None
) -> "NodeDataset":
    """A new graph, its columns read as those of the run's own files were.

    A new graph need not have labels or a split: where their columns are absent, so be it.
    """
    from longnn import data, runs

    known = data.known_names()
    given = source["options"]
    files = source["graph"] not in known and trained_on["graph"] not in known
    kept = {k: v for k, v in trained_on["options"].items() if files and k != "name"}
    while True:
        try:
            return runs.load_source({**source, "options": {**kept, **given}}, data_dir)
        except data.DataError as error:
            absent = [
                key
                for key in ("label_column", "split_column")
                if key in kept and f"Expected a {key.removesuffix('_column')} column" in str(error)
            ]
            if not absent or absent[0] in given:
                raise
            del kept[absent[0]]


def evaluate(run: Run, data_dir: DataDir = None, json_: Json = False) -> None:
    """Score a finished run again, from its weights and its data."""
    from longnn import report, runs
    from longnn import runs as prediction
    from longnn import runs as records
    from longnn.cli import _display as display

    record = runs.require_record(run)
    dataset = runs.load_source(record["data"]["source"], data_dir)
    if dataset.fingerprint() != record["data"]["fingerprint"]:
        raise ValueError("Expected the data the run was trained on (the files have changed since)")
    repeats = prediction.evaluate_run(run, dataset)
    summary = records.summarize_repeats(repeats)
    if json_:
        print(json.dumps({"repeats": repeats, "summary": summary}, allow_nan=False))
        return
    metrics = list(dict.fromkeys(metric for scores in summary.values() for metric in scores))
    rows = [
        [report.metric_name(metric), *(_score_text(summary[name], metric) for name in records.SETS)]
        for metric in metrics
    ]
    out.print(display.table(["", "training", "validation", "test"], rows, right={1, 2, 3}))


def _score_text(summary: dict[str, Any], metric: str) -> str:
    from longnn import report

    if metric not in summary:
        return ""
    return report.interval_text(summary[metric], metric=metric, short=True)


def compare(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders.")],
    output: Annotated[Path, typer.Option(help="The page to write.")] = Path("comparison.html"),
) -> None:
    """Compare runs: a table, and a page with their filters overlaid."""
    from longnn import report, runs
    from longnn.cli import _display as display

    for folder in folders:
        runs.require_record(folder)
    loaded = report.load_runs(folders)
    columns, *rows = report.comparison_rows(loaded)
    for line in display.shared_cells(columns[:-1], rows):
        out.print(line, markup=False)
    out.print(display.table(*display.differing_cells(columns[:-1], rows)))
    out.print("\nlearned filters", style="bold")
    for row in rows:
        out.print(f"  {row[0]}: {row[-1]}", markup=False)
    for caution in report.cautions(loaded):
        err.print(f"note: {caution}", markup=False)
    page = report.write_comparison(folders, output)
    out.print(f"\npage: {page}", markup=False)
