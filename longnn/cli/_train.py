"""Commands that train: a run, and a search for its hyperparameters."""

import contextlib
import dataclasses
import functools
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
    Cache,
    Coverage,
    DataDir,
    DataOption,
    Graph,
    Json,
    Memory,
    Nodes,
    Quiet,
    assignments,
    err,
    interruptible,
    is_first_rank,
    load_dataset,
    message,
    out,
    print_json,
    read_memory,
    read_source,
    setting,
    show_notes,
    with_short_paths,
)

if TYPE_CHECKING:
    from longnn.data import Source
    from longnn.tuning._tune import TuningResult

#: Of a search: seconds where nothing is said, and the most trials.
TIME_LIMIT, TRIALS = 600.0, 400
#: As in :mod:`longnn.runs`, which is not loaded for a page of help.
CHECKPOINT_EVERY = 10.0


def train(
    graph: Annotated[
        str | None,
        typer.Argument(
            help="A folder with edges.* and nodes.*, an edge file, a prepared folder, or the name "
            "of a dataset."
        ),
    ] = None,
    nodes: Nodes = None,
    preset: Annotated[str | None, setting("preset")] = None,
    time_limit: Annotated[float | None, setting("time_limit", metavar="SECONDS")] = None,
    model: Annotated[str | None, setting("model")] = None,
    repeat: Annotated[int | None, setting("repeat")] = None,
    seed: Annotated[int | None, setting("seed")] = None,
    split: Annotated[str | None, setting("split")] = None,
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
    coverage: Coverage = None,
    device: Annotated[str | None, setting("device")] = None,
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
    cache: Cache = None,
    checkpoint_every: Annotated[
        float, typer.Option(metavar="SECONDS", help="Seconds between checkpoints.")
    ] = CHECKPOINT_EVERY,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn from the answers you have; write a report, predictions of all nodes, and the models."""
    from longnn.config._values import read_toml
    from longnn.runs._folder import default_folder

    began = time.perf_counter()  # loading the program is part of what a time limit allows
    first = is_first_rank()
    quiet, json_ = quiet or not first, json_ and first
    named = {"preset": preset, "time_limit": time_limit, "model": model, "repeat": repeat}
    named |= {"seed": seed, "split": split, "coverage": coverage, "device": device}
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
        given |= {"--recipe": recipe or None, "--memory": memory, "--cache": cache}
        flags = {f"--{key.replace('_', '-')}": value for key, value in named.items()}
        extra = [key for key, value in {**given, **flags}.items() if value not in (None, [])]
        if extra:
            raise ValueError(
                "Expected --resume RUN alone: a run continues with its own settings "
                f"(got {extra[0]} too)"
            )
        folder = resume
        begin = functools.partial(longnn.runs.resume, folder)
    else:
        if graph is None:
            raise ValueError(
                "Expected a graph: the name of a dataset or a file (see `longnn datasets`)"
            )
        source = read_source(graph, nodes, data_option)
        table = read_toml(config) if config is not None else {}
        table.update({key: value for key, value in named.items() if value is not None})
        asked = {**table, **assignments(set_)}
        if recipe:
            source, asked = _with_recipe(source, asked, quiet=quiet)
        # What is wrong is said before the graph is read.
        checked = longnn.config.Config.from_dict(asked)
        kind = longnn.training.preset_of(asked)
        if not quiet and not recipe and kind == "fast" and "preset" not in asked:
            which = longnn.training.keys_of_one(asked)[0]
            err.print(
                f"note: one model is trained, since {which} is set; --preset default trains a "
                "portfolio"
            )
        kind = checked.model if kind == "fast" else kind
        again = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
        folder = output or default_folder(Path("runs"), source.name, kind, unfinished=again)
        begin = functools.partial(
            longnn.runs.train,
            source,
            asked,
            folder,
            command=shlex.join(["longnn", *sys.argv[1:]]),
            on_note=on_note,
            memory=read_memory(memory),
            cache=cache,
        )
    with (
        _explained(folder, quiet=not first),
        _display.training_progress(err, quiet=quiet or json_) as on_epoch,
    ):
        run = begin(on_epoch=on_epoch, **options)
    if json_:
        print_json({"run": str(folder), **run.record.to_dict()})
    elif not quiet:
        for line in longnn.report.text_summary(run.record):
            out.print(with_short_paths(line))
        out.print(f"  time {_display.seconds_text(run.seconds)}")
        out.print(f"\nreport: {folder / 'report.html'}")


@contextlib.contextmanager
def _explained(folder: Path, *, quiet: bool) -> Iterator[None]:
    """Say how to continue a training that is interrupted, or that a disk has no room for.

    Where ``quiet``, another process says it.
    """
    going_on = f"continue with: longnn train --resume {shlex.quote(str(folder))}"
    begun = folder / "run.json"
    try:
        yield
    except KeyboardInterrupt as stop:
        if quiet:
            pass
        elif isinstance(stop, longnn.runs.Interrupted):
            err.print(f"interrupted; the best so far is kept: {folder / 'report.html'}")
            for line in longnn.report.text_summary(stop.run.record)[:3]:
                err.print(line)
            err.print(going_on)
        else:
            err.print(f"interrupted; {going_on}" if begun.exists() else "interrupted")
        raise typer.Exit(130) from None
    except OSError as error:  # a full disk, above all: what was trained is not lost
        if quiet or not begun.exists():
            raise
        raise OSError(f"{message(error)}; when this is solved, {going_on}") from error


def _with_recipe(
    source: "Source", table: dict[str, Any], *, quiet: bool
) -> tuple["Source", dict[str, Any]]:
    """The graph and its recipe with changes; where there is none, one line and exit code 2.

    For a recipe that needs them the graph keeps its arcs, unless the user said otherwise.
    """
    given = {"model": table["model"]} if "model" in table else {}
    model = longnn.config.Config.from_dict(given).model
    try:
        if not source.is_named:
            having = ", ".join(dict.fromkeys(name for _, name in longnn.recipes.known_recipes()))
            raise ValueError(
                f"Expected --recipe with a dataset that has one: {having} (got {source.graph}); "
                "for your own graph, `longnn tune` finds one"
            )
        started = {**longnn.recipes.load_recipe(model, source.graph), **table}
    except ValueError as error:
        err.print(f"error: {message(error)}")
        raise typer.Exit(2) from None
    title = longnn.registry.find_model(model).title
    notes = [f"started from the recipe of {title} for {source.graph}"]
    if started.get("direction") == "cover" and "directed" not in source.options:
        notes.append("arcs are kept, as the recipe wants (directed=true)")
        source = dataclasses.replace(source, options={**source.options, "directed": True})
    show_notes([] if quiet else notes)
    return source, started


def tune(
    graph: Graph,
    nodes: Nodes = None,
    model: Annotated[
        str | None,
        typer.Option(help="Search for one model of this name, see `longnn models`."),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="Time to search (default: 600, or without end with --trials)."
        ),
    ] = None,
    trials: Annotated[
        int | None, typer.Option(help="Total number of trials to finish (default: at most 400).")
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(help="Trainings per trial (default: 1; of one model 3, on a split each)."),
    ] = None,
    space: Annotated[
        str | None,
        typer.Option(
            help="Search for one model in this space: default, paper, wide, compact, or a TOML "
            "file."
        ),
    ] = None,
    around: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN_OR_CONFIG",
            help="Search for one model around this run, or this TOML configuration.",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Fix one setting or option; repeatable."),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(help="Number of trials trained together (default: 8; on a GPU 64)."),
    ] = None,
    storage: Annotated[
        str | None, typer.Option(help="Optuna storage URL (default: search.db in the folder).")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="Name of the search in its storage (default: GRAPH-default or -MODEL)."),
    ] = None,
    split: Annotated[str | None, setting("split")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the sampler.")] = 0,
    device: Annotated[str, setting("device")] = "auto",
    halving: Annotated[bool, typer.Option(help="Stop the worse half of the trials early.")] = True,
    finalists: Annotated[
        int,
        typer.Option(help="Number of best trials of one model to train again, on further splits."),
    ] = 8,
    output: Annotated[
        Path | None,
        typer.Option(help="Folder of the search (default: runs/GRAPH-tune or -MODEL-tune)."),
    ] = None,
    data_dir: DataDir = None,
    data_option: DataOption = None,
    memory: Memory = None,
    cache: Cache = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Search for what predicts better than the default preset, or for one model's settings.

    Run the same command again to continue. Workers with the same --storage share the work.
    """
    from longnn.runs._folder import folder_name
    from longnn.tuning._space import read_config, space_around

    fixed = assignments(set_)
    given = None if around is None else read_config(around)
    if space is None and given is not None:
        searched = space_around(given).fix(fixed)
    elif space or model or longnn.training.preset_of(fixed) == "fast":
        model = model or ("lon" if given is None else given.model)
        searched = longnn.tuning.load_space(space or "default", model).fix(fixed)
    else:
        searched = None  # around the members of the default preset
    source = read_source(graph, nodes, data_option)
    dataset = load_dataset(source, data_dir, memory, cache, quiet=quiet)
    # A stable name, so that the same command continues the search.
    kind = "tune" if given is None else "around"
    subject = dataset.name if searched is None else f"{dataset.name}-{searched.model}"
    folder = output or Path("runs") / folder_name(f"{subject}-{kind}")
    if not quiet:
        show_notes(dataset.notes)
    if time_limit is None and trials is None:
        time_limit = TIME_LIMIT
        limit = _display.time_text(time_limit)
        note = f"The search takes about {limit}; --time-limit SECONDS changes it."
        show_notes([] if quiet else [note])
    try:
        with (
            interruptible("run the same command again to continue"),
            _display.tuning_progress(err, quiet=quiet or json_) as on_progress,
        ):
            result = longnn.tuning.tune(
                dataset,
                searched,
                model=model,
                fixed=fixed if searched is None else None,
                trials=trials or TRIALS,
                time_limit=time_limit,
                repeats=repeats,
                batch=batch,
                storage=storage,
                name=name,
                folder=folder,
                split=split,
                seed=seed,
                device=device,
                halving=halving,
                finalists=finalists,
                around=given,
                on_progress=on_progress,
                data_dir=data_dir,
                memory=read_memory(memory),
            )
    except ConnectionError as error:
        raise ConnectionError(f"{message(error)}; {_going_on(storage)}") from None
    if json_:
        print_json({"folder": str(folder), **result.record.to_dict()})
        return
    if not quiet:
        show_notes(result.record.notes)
        _show(result, folder)


def _going_on(storage: str | None) -> str:
    """The command that continues the search; a URL may hold a password and is not repeated."""
    from longnn.tuning._storage import shown_url

    arguments = sys.argv[1:]
    if storage is None:
        return f"continue with: {shlex.join(['longnn', *arguments])}"
    hidden = [argument.replace(storage, "STORAGE") for argument in arguments]
    shown = shown_url(storage)
    return f"continue with: {shlex.join(['longnn', *hidden])} (STORAGE is the URL of {shown})"


def _show(result: "TuningResult", folder: Path) -> None:
    """What was gained, and where the recipe and the report are."""
    from longnn.tuning._record import finding

    record = result.record
    took = _display.time_text(record.seconds)
    out.print(f"{finding(record)}; {record.finished} trials in {took}")
    values = record.best.params if record.model else {}
    for name in record.space.search if record.model else ():
        out.print(f"  {name} = {values[name]}")
    for name in result.config.members:
        out.print(f"  {name}")
    recipe = "" if record.keeps_default else f"recipe: {folder / 'recipe.toml'}\n"
    out.print(f"\n{recipe}report: {folder / 'tuning.html'}")
