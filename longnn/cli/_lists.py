"""Commands that only print: the card of a graph, the available datasets and models."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.padding import Padding
from rich.text import Text

import longnn
from longnn.cli import _display as display
from longnn.cli._base import (
    Cache,
    DataDir,
    DataOption,
    Graph,
    Json,
    Memory,
    Nodes,
    err,
    load_dataset,
    out,
    print_json,
    read_source,
    show_notes,
)
from longnn.registry import MODELS, find_model

if TYPE_CHECKING:
    from longnn.config._config import Explanation

#: Width of the column of values on a narrow terminal, in characters.
NARROW = 16
#: Characters of choices above which the meaning lists them.
MANY = 60


def info(
    graph: Graph,
    nodes: Nodes = None,
    data_dir: DataDir = None,
    data_option: DataOption = None,
    memory: Memory = None,
    cache: Cache = None,
    json_: Json = False,
) -> None:
    """Describe a graph: size, degrees, classes, homophily, spectrum, warnings."""
    from longnn.data._card import untested

    dataset = load_dataset(read_source(graph, nodes, data_option), data_dir, memory, cache)
    card, operator = longnn.data.describe(dataset), dataset.backing.operator()
    density = None if operator is None else longnn.spectral_density(operator)
    if json_:
        sketch = density and {
            name: getattr(density, name).tolist() for name in ("eigenvalues", "density")
        }
        print_json({**card.to_dict(), "density": sketch})
        return
    for line in card.lines():
        out.print(line)
    if density is None:
        out.print("\nspectrum: left out, it would take too long")
    else:
        if dataset.directed:
            out.print("\nspectrum of the double cover: 1 - s and 1 + s for every singular value s")
        else:
            out.print("\nspectrum of the normalised Laplacian, 0 (smooth) to 2 (alternating)")
        out.print(f"  0 |{display.sparkline(density.histogram(50), out.encoding)}| 2")
    show_notes(dataset.notes)
    for warning in (*card.warnings, *untested(dataset)):
        err.print(f"warning: {warning}")


def datasets() -> None:
    """List the available datasets."""
    from longnn.data._catalog import list_bundled, list_named

    columns = ["name", "nodes", "edges", "features", "classes", "what it is"]
    rows = [
        [e.name, f"{e.nodes:,}", f"{e.edges:,}", str(e.features), str(e.classes), e.description]
        for e in list_named()
    ]
    right = {1, 2, 3, 4}
    if out.width < display.WIDE:
        columns, *rows = [[row[i] for i in (0, 1, 4, 5)] for row in [columns, *rows]]
        right = {1, 2}
    _heading("named datasets, downloaded when first used")
    out.print(display.table(columns, rows, right=right))
    _heading("\nbundled datasets, no download")
    bundled = [[entry.name, entry.description] for entry in list_bundled()]
    out.print(display.table(["name", "what it is"], bundled))
    tuned = ", ".join(dict.fromkeys(name for _, name in longnn.recipes.known_recipes()))
    out.print(f"\nwith a tuned recipe (train --recipe): {tuned}", soft_wrap=False)
    out.print("your own graph: an edge file, or a folder with edges.* and nodes.*")


def models(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Name of a model: explain its options.", autocompletion=lambda: list(MODELS)
        ),
    ] = None,
    settings: Annotated[
        bool, typer.Option("--settings", help="Explain the settings of training.")
    ] = False,
) -> None:
    """List the models; explain the options of one model, or the settings of training."""
    from longnn.config._config import explain_settings

    if name is not None:
        _show_model(name)
    if settings:
        preset, *others = explain_settings()  # longnn train takes another one by default
        _show_explanations([dataclasses.replace(preset, default="default"), *others])
    if name is None and not settings:
        rows = [[entry.name, entry.title, entry.summary] for entry in MODELS.values()]
        out.print(display.table(["--model", "title", "filter"], rows))
        out.print("\nlongnn models NAME explains the options of one model")
        out.print("longnn models --settings explains the settings of training")


def _show_model(name: str) -> None:
    """A model's paper, formula and options, and the datasets it has recipes for."""
    from longnn.config._config import explain_options

    entry = find_model(name)
    _heading(f"{entry.title}: {entry.summary}")
    if entry.paper is not None:
        paper = entry.paper
        cited = f"{paper.authors} ({paper.year}): {paper.title}"
        out.print(cited, soft_wrap=False)
        out.print(paper.link)
    out.print()
    out.print(Padding(Text(entry.formula), (0, 0, 0, 2)), soft_wrap=False)
    out.print()
    _show_explanations(explain_options(name))
    tuned = ", ".join(dataset for model, dataset in longnn.recipes.known_recipes() if model == name)
    if tuned:
        out.print(f"\nwith a tuned recipe (train --recipe): {tuned}", soft_wrap=False)


def _show_explanations(entries: "Sequence[Explanation]") -> None:
    rows = []
    for entry in entries:
        default = "" if entry.default is None else display.plain(entry.default)
        choices = ", ".join(entry.choices)
        values = choices if 0 < len(choices) <= MANY else entry.type
        rows.append([entry.name, default, values, entry.meaning])
    # On a narrow terminal the meaning needs the room more than the values do.
    most = {2: NARROW} if out.width < display.WIDE else None
    columns = ["--set", "default", "values", "meaning"]
    out.print(display.table(columns, rows, whole={0, 1}, most=most))


def _heading(text: str) -> None:
    out.print(text, style="bold", soft_wrap=False)
