"""Commands that only print: the card of a graph, and what can be named."""

import json
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


def info(
    graph: Graph,
    nodes: Nodes = None,
    data_dir: DataDir = None,
    data_option: DataOption = None,
    json_: Json = False,
) -> None:
    """A card of a graph: size, degrees, classes, homophily, spectrum, warnings."""
    from longnn import data
    from longnn.cli import _display as display
    from longnn.data import NO_EDGE
    from longnn.graphs import GraphOperator, spectral_density

    source = read_source(graph, nodes, data_option)
    dataset = source.load(data_dir)
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
    show_notes(note for note in dataset.notes if not note.endswith(NO_EDGE))  # a warning says it
    for warning in card.warnings:
        err.print(f"warning: {warning}", markup=False)


def datasets() -> None:
    """List the datasets that can be named."""
    from longnn import data, recipes
    from longnn.cli import _display as display

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


def models(
    name: Annotated[str | None, typer.Argument(help="Show this model's options.")] = None,
) -> None:
    """List the models, or the options of one."""
    from longnn import recipes
    from longnn.cli import _display as display
    from longnn.config import Config
    from longnn.registry import MODELS, model_options

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
