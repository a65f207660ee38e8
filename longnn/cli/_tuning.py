"""The search for hyperparameters."""

import json
from pathlib import Path
from typing import Annotated

import typer

from longnn.cli._base import (
    DataDir,
    DataOption,
    Graph,
    Json,
    Nodes,
    err,
    out,
    read_source,
    show_notes,
)


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
    finalists: Annotated[
        int, typer.Option(help="Best trials to train again on further splits; 0: none.")
    ] = 8,
    output: Annotated[
        Path | None, typer.Option(help="The folder (default: runs/GRAPH-MODEL-tune).")
    ] = None,
    data_dir: DataDir = None,
    data_option: DataOption = None,
    json_: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress display.")] = False,
) -> None:
    """Search for hyperparameters; run it again to go on, or elsewhere to share the work."""
    from longnn import runs, tuning
    from longnn.cli import _display as display
    from longnn.config import parse_assignment

    source = read_source(graph, nodes, data_option)
    dataset = source.load(data_dir)
    chosen = tuning.load_space(space, model).fix(dict(parse_assignment(p) for p in set_ or []))
    scale = "auto"
    # A stable name: running the same command again goes on.
    folder = output or Path("runs") / runs.folder_name(f"{dataset.name}-{model}-tune")
    if not quiet:
        show_notes(dataset.notes)
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
                finalists=finalists,
                on_progress=on_progress,
            )
    except KeyboardInterrupt:
        err.print("interrupted; run the same command to go on", markup=False)
        raise typer.Exit(130) from None
    if json_:
        print(json.dumps({"folder": str(folder), **result.record}, allow_nan=False))
        return
    show_notes(result.record["notes"])
    out.print(f"validation {result.record['metric']} {result.value:.4f} with", markup=False)
    for key in chosen.search:
        out.print(f"  {key} = {result.record['best']['params'][key]}", markup=False)
    out.print(f"\nrecipe: {folder / 'recipe.toml'}\nreport: {folder / 'tuning.html'}", markup=False)
