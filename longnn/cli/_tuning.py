"""The command that searches for hyperparameters."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import longnn
from longnn.cli import _display
from longnn.cli._base import (
    Cache,
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
    load_dataset,
    message,
    out,
    print_json,
    read_memory,
    read_source,
    show_notes,
)

if TYPE_CHECKING:
    from longnn.tuning._tune import TuningResult


def tune(
    graph: Graph,
    nodes: Nodes = None,
    model: Annotated[
        str | None,
        typer.Option(help="Name of the model, see `longnn models` (default: lon, or --around's)."),
    ] = None,
    trials: Annotated[int, typer.Option(help="Total number of trials to finish.")] = 400,
    repeats: Annotated[
        int, typer.Option(help="Trainings per trial, each on its own tuning split.")
    ] = 3,
    space: Annotated[
        str | None,
        typer.Option(help="Search space: default, paper, wide, compact, or a TOML file."),
    ] = None,
    around: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN_OR_CONFIG", help="Search around this run, or this TOML configuration."
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
        str | None, typer.Option(help="Name of the search in its storage (default: GRAPH-MODEL).")
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Split protocol (default: the dataset's own).")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the sampler.")] = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "auto",
    halving: Annotated[bool, typer.Option(help="Stop the worse half of the trials early.")] = True,
    finalists: Annotated[
        int, typer.Option(help="Number of best trials to train again, on further splits.")
    ] = 8,
    output: Annotated[
        Path | None, typer.Option(help="Folder of the search (default: runs/GRAPH-MODEL-tune).")
    ] = None,
    data_dir: DataDir = None,
    data_option: DataOption = None,
    memory: Memory = None,
    cache: Cache = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Search for good hyperparameters.

    Run the same command again to continue. Workers with the same --storage share the work.
    """
    from longnn.runs._folder import folder_name
    from longnn.tuning._space import read_config, space_around

    fixed = assignments(set_)
    given = None if around is None else read_config(around)
    model = model or ("lon" if given is None else given.model)
    if given is not None and space is None:
        chosen = space_around(given).fix(fixed)
    else:
        chosen = longnn.tuning.load_space(space or "default", model).fix(fixed)
    source = read_source(graph, nodes, data_option)
    dataset = load_dataset(source, data_dir, memory, cache, quiet=quiet)
    # A stable name, so that the same command continues the search.
    kind = "tune" if given is None else "around"
    folder = output or Path("runs") / folder_name(f"{dataset.name}-{model}-{kind}")
    if not quiet:
        show_notes(dataset.notes)
    try:
        with (
            interruptible("run the same command again to continue"),
            _display.tuning_progress(err, quiet=quiet or json_) as on_progress,
        ):
            result = longnn.tuning.tune(
                dataset,
                chosen,
                model=model,
                trials=trials,
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
                on_estimate=None if quiet or json_ else lambda estimate: err.print(estimate.text()),
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
        _show(result, list(chosen.search), folder)


def _going_on(storage: str | None) -> str:
    """The command that continues the search; a URL may hold a password and is not repeated."""
    from longnn.tuning._storage import shown_url

    arguments = sys.argv[1:]
    if storage is None:
        return f"continue with: {shlex.join(['longnn', *arguments])}"
    hidden = [argument.replace(storage, "STORAGE") for argument in arguments]
    shown = shown_url(storage)
    return f"continue with: {shlex.join(['longnn', *hidden])} (STORAGE is the URL of {shown})"


def _show(result: "TuningResult", searched: list[str], folder: Path) -> None:
    """The winner, and where its recipe and the report are."""
    from longnn.tuning._cost import time_text

    record = result.record
    took = time_text(record.seconds)
    out.print(f"{result.sentence()}; found in {took} with")
    for name in searched:
        out.print(f"  {name} = {record.best.params[name]}")
    out.print(f"\nrecipe: {folder / 'recipe.toml'}\nreport: {folder / 'tuning.html'}")
