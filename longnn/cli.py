"""The command line: it parses, calls and prints; it knows no mathematics.

Results go to standard output, everything else to standard error. A user's mistake is one line
and a non-zero exit, never a traceback (set LONGNN_DEBUG=1 to see it).
"""

import functools
import json
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from longnn import (
    artifacts,
    data,
    display,
    prediction,
    recipes,
    records,
    report,
    runs,
    tuning,
)
from longnn.config import Config, parse_assignment, read_toml
from longnn.data import NodeDataset
from longnn.graph import GraphOperator
from longnn.nn import MODELS, model_options
from longnn.spectrum import spectral_density
from longnn.version import __version__

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Graph neural networks that learn their own filter.",
    pretty_exceptions_enable=False,
)
out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)

Graph = Annotated[
    str, typer.Argument(help="A dataset's name, an edge file, or a folder with edges.* and nodes.*")
]
Nodes = Annotated[Path | None, typer.Option(help="The node file, beside an edge file.")]
DataDir = Annotated[
    Path | None, typer.Option(help="Where published datasets lie (default: $LONGNN_DATA).")
]
DataOption = Annotated[
    list[str] | None,
    typer.Option("--data", metavar="KEY=VALUE", help="Loader option, e.g. label_column=topic."),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Run = Annotated[Path, typer.Argument(help="A run folder.")]


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Turn a user's mistake into one line and exit code 1."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except (ValueError, TypeError, OSError, MemoryError, RuntimeError) as error:
            out_of_memory = isinstance(error, RuntimeError) and "memory" in str(error)
            ours = not isinstance(error, RuntimeError) or out_of_memory
            if os.environ.get("LONGNN_DEBUG") or not ours:
                raise
            err.print(f"error: {_message(error)}", markup=False)
            raise typer.Exit(1) from None

    return wrapped


def _message(error: Exception) -> str:
    """What went wrong in one line, with paths below this folder as the user would write them."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror + (f": {error.filename}" if error.filename else "")
    here = Path.cwd()
    if here != Path(here.anchor):
        text = text.replace(f"{here}{os.sep}", "")
    return " ".join(text.split()) or type(error).__name__


def _options(pairs: list[str] | None) -> dict[str, Any]:
    options = dict(parse_assignment(pair) for pair in pairs or [])
    for key, value in options.items():
        if key.endswith("_column"):
            options[key] = str(value)
        elif key == "feature_columns":
            options[key] = [column.strip() for column in str(value).split(",")]
    return options


def _source(graph: str, nodes: Path | None, pairs: list[str] | None) -> dict[str, Any]:
    """How a dataset was named on the command line, with paths made absolute."""
    path = Path(graph)
    known = data.known_names()
    if graph.lower() not in known and path.exists():
        graph = str(path.resolve())
    else:
        graph = graph.lower() if graph.lower() in known else graph
    return {
        "graph": graph,
        "nodes": None if nodes is None else str(nodes.resolve()),
        "options": _options(pairs),
    }


def _notes(dataset: NodeDataset) -> None:
    for note in dataset.notes:
        err.print(f"note: {note}", markup=False)


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if show:
        out.print(__version__)
        raise typer.Exit()


@app.command()
@guarded
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
    ] = runs.CHECKPOINT_EVERY,
    json_: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Train a model, and leave a run folder with weights, predictions and a report."""
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
        source = _source(graph, nodes, data_option)
        if recipe:
            keys = {**_recipe(keys.get("model", Config.model), source, quiet=quiet), **keys}
        settings = Config.from_dict(keys)
        dataset = runs.load_source(source, data_dir)
        folder = output or runs.default_folder(Path("runs"), dataset.name, settings.model)
        runs.start_run(folder, dataset, source, settings, command=_command())
    if not quiet:
        _notes(dataset)
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
        raise OSError(f"{_message(error)}; when that is mended, {going_on}") from error
    if json_:
        print(json.dumps({"run": str(folder), **record}, allow_nan=False))
    elif not quiet:
        for line in report.text_summary(report.load_run(folder)):
            out.print(line, markup=False)
        out.print(f"\nreport: {folder / 'report.html'}", markup=False)


def _recipe(model: str, source: dict[str, Any], *, quiet: bool) -> dict[str, Any]:
    """The keys of a shipped recipe; where there is none, one line and exit code 2."""
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
        err.print(f"error: {_message(error)}", markup=False)
        raise typer.Exit(2) from None
    if not quiet:
        err.print(f"note: started from the recipe for {model} on {source['graph']}", markup=False)
    return keys


def _command() -> str:
    return shlex.join(["longnn", *sys.argv[1:]])


@app.command()
@guarded
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
    asked = runs.find_run(run)
    if graph is None:
        dataset = runs.load_source(asked["source"], data_dir)
    else:
        dataset = _load_like(asked["source"], _source(graph, nodes, data_option), data_dir)
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
) -> NodeDataset:
    """A new graph, its columns read as those of the run's own files were.

    A new graph need not have labels or a split: where their columns are absent, so be it.
    """
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


@app.command()
@guarded
def evaluate(run: Run, data_dir: DataDir = None, json_: Json = False) -> None:
    """Score a finished run again, from its weights and its data."""
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
    if metric not in summary:
        return ""
    return report.interval_text(summary[metric], metric=metric, short=True)


@app.command()
@guarded
def tune(
    graph: Graph,
    nodes: Nodes = None,
    model: Annotated[str, typer.Option(help="See `longnn models`.")] = "lon",
    trials: Annotated[int, typer.Option(help="Trials to finish in all.")] = 400,
    repeats: Annotated[int, typer.Option(help="Trainings a trial, on tuning splits.")] = 3,
    space: Annotated[str, typer.Option(help="published, wide, or a TOML file.")] = "published",
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Fix one key.")
    ] = None,
    batch: Annotated[int | None, typer.Option(help="Trials trained together.")] = None,
    storage: Annotated[
        str | None, typer.Option(help="Optuna storage URL (default: study.db in the folder).")
    ] = None,
    study: Annotated[str | None, typer.Option(help="Name of the study.")] = None,
    split: Annotated[str | None, typer.Option(help="Split protocol.")] = None,
    seed: Annotated[int, typer.Option(help="Of the sampler.")] = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "auto",
    halving: Annotated[bool, typer.Option(help="Stop the worse half on the way.")] = True,
    output: Annotated[
        Path | None, typer.Option(help="The folder (default: runs/GRAPH-MODEL-tune).")
    ] = None,
    data_dir: DataDir = None,
    data_option: DataOption = None,
    json_: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress display.")] = False,
) -> None:
    """Search for hyperparameters; run it again to go on, or elsewhere to share the work."""
    source = _source(graph, nodes, data_option)
    dataset = runs.load_source(source, data_dir)
    chosen = tuning.load_space(space, model).fix(dict(parse_assignment(p) for p in set_ or []))
    scale = runs.choose_scaling(dataset, source, Config(model=model)).kind
    # A stable name: running the same command again goes on.
    folder = output or Path("runs") / runs.folder_name(f"{dataset.name}-{model}-tune")
    if not quiet:
        _notes(dataset)
    try:
        with display.tuning_progress(err, quiet=quiet or json_) as on_progress:
            result = tuning.tune(
                dataset,
                chosen,
                model=model,
                trials=trials,
                repeats=repeats,
                batch=batch,
                storage=storage,
                study_name=study,
                folder=folder,
                split=split,
                scale=scale,
                seed=seed,
                device=device,
                halving=halving,
                on_progress=on_progress,
            )
    except KeyboardInterrupt:
        err.print("interrupted; run the same command to go on", markup=False)
        raise typer.Exit(130) from None
    if json_:
        print(json.dumps({"folder": str(folder), **result.record}, allow_nan=False))
        return
    for note in result.record["notes"]:
        err.print(f"note: {note}", markup=False)
    out.print(f"validation {result.record['metric']} {result.value:.4f} with", markup=False)
    for key in chosen.search:
        out.print(f"  {key} = {result.record['best']['params'][key]}", markup=False)
    out.print(f"\nrecipe: {folder / 'recipe.toml'}\nreport: {folder / 'tuning.html'}", markup=False)


@app.command()
@guarded
def compare(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders.")],
    output: Annotated[Path, typer.Option(help="The page to write.")] = Path("comparison.html"),
) -> None:
    """Compare runs: a table, and a page with their filters overlaid."""
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


@app.command()
@guarded
def info(
    graph: Graph,
    nodes: Nodes = None,
    data_dir: DataDir = None,
    data_option: DataOption = None,
    json_: Json = False,
) -> None:
    """A card of a graph: size, degrees, classes, homophily, spectrum, warnings."""
    source = _source(graph, nodes, data_option)
    dataset = runs.load_source(source, data_dir)
    card = data.describe(dataset)
    operator = GraphOperator.from_data(dataset.data)
    density = spectral_density(operator)
    if json_:
        sketch = {
            "eigenvalues": density.eigenvalues.tolist(),
            "density": density.density.tolist(),
        }
        print(json.dumps({**card.to_dict(), "density": sketch}, allow_nan=False))
        return
    for line in card.lines():
        out.print(line, markup=False)
    out.print("\nspectrum of the normalised Laplacian, 0 (smooth) to 2 (alternating)")
    out.print(f"  0 |{display.sparkline(density.histogram(50))}| 2", markup=False)
    _notes(dataset)
    for warning in card.warnings:
        err.print(f"warning: {warning}", markup=False)


@app.command()
@guarded
def datasets() -> None:
    """List the datasets that can be named."""
    rows = [
        [e.name, f"{e.nodes:,}", f"{e.edges:,}", str(e.features), str(e.classes), e.description]
        for e in data.list_named()
    ]
    columns = ["published", "nodes", "edges", "features", "classes", ""]
    right = {1, 2, 3, 4}
    if out.width < display.WIDE:
        columns, *rows = [[row[i] for i in (0, 1, 4, 5)] for row in [columns, *rows]]
        right = {1, 2}
    out.print(display.table(columns, rows, right=right))
    out.print()
    bundled = [[entry.name, entry.description] for entry in data.list_bundled()]
    out.print(display.table(["bundled, no download", ""], bundled))
    tuned = ", ".join(dict.fromkeys(name for _, name in recipes.known_recipes()))
    out.print(f"\nWith a tuned recipe (train --recipe): {tuned}", soft_wrap=False)
    out.print("Any other graph: an edge file, or a folder with edges.* and nodes.*")


@app.command()
@guarded
def bench(
    datasets_: Annotated[
        str | None,
        typer.Option("--datasets", help="Names, comma-separated (default: the published ten)."),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "auto",
    threads: Annotated[int | None, typer.Option(help="Of the CPU (default: torch's own).")] = None,
    population: Annotated[int | None, typer.Option(help="Models trained at once.")] = None,
    contenders: Annotated[
        str | None, typer.Option(help="Comma-separated (default: all): single, population, ...")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Seconds, on bundled data.")] = False,
    output: Annotated[Path | None, typer.Option(help="A folder for record and figures.")] = None,
    data_dir: DataDir = None,
    json_: Json = False,
) -> None:
    """Time LON-GNN against the textbook and PyG's models on this machine."""
    from longnn import bench as suite

    split = lambda text: None if text is None else [t.strip() for t in text.split(",")]  # noqa: E731
    record = suite.run_bench(
        split(datasets_),
        device=device,
        threads=threads,
        population=population,
        quick=quick,
        data_dir=data_dir,
        contenders=split(contenders),
        on_progress=lambda text: err.print(text, markup=False),
    )
    if output is not None:
        suite.write_bench(record, output)
    if json_:
        print(json.dumps(record, allow_nan=False))
        return
    for line in suite.lines(record):
        out.print(line, markup=False)


@app.command()
@guarded
def models(
    name: Annotated[str | None, typer.Argument(help="Show this model's options.")] = None,
) -> None:
    """List the models, or the options of one."""
    if name is None:
        rows = [[key, cls.__name__, display.FILTERS.get(key, "")] for key, cls in MODELS.items()]
        out.print(display.table(["--model", "class", "filter"], rows))
        out.print("\nlongnn models NAME shows its options")
        return
    recommended = Config(model=name).options
    out.print(display.paper(MODELS[name]), markup=False)
    out.print()
    options = {**model_options(name), **recommended}
    rows = [[key, display.plain(value)] for key, value in options.items()]
    out.print(display.table(["--set", "default"], rows))
    tuned = ", ".join(dataset for model, dataset in recipes.known_recipes() if model == name)
    if tuned:
        out.print(f"\nwith a tuned recipe (train --recipe): {tuned}", soft_wrap=False)


def main() -> None:
    """Entry point of the command ``longnn``."""
    app(prog_name="longnn")
