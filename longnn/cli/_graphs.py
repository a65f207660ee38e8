"""Commands for graphs: cards, lists of what there is, prepared folders, Chebyshev terms."""

import dataclasses
import os
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.padding import Padding
from rich.text import Text

import longnn
from longnn._base.memory import in_words
from longnn.cli import _display as display
from longnn.cli._base import (
    Cache,
    DataDir,
    DataOption,
    Graph,
    Json,
    Memory,
    Nodes,
    Quiet,
    err,
    interruptible,
    is_first_rank,
    load_dataset,
    out,
    print_json,
    read_memory,
    read_source,
    show_notes,
)
from longnn.registry import MODELS, find_model

if TYPE_CHECKING:
    from longnn.config._config import Explanation
    from longnn.store._graph import GraphStore

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
    """Show what was understood of your files: sizes, columns, classes, and what looks wrong."""
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


Output = Annotated[
    Path | None, typer.Option(help="Folder to make (default: in the cache, where train finds it).")
]
ProgramMemory = Annotated[str, typer.Option(help="Memory for the whole program, e.g. 4G.")]
#: What is said of a folder that was not finished.
STARTS_OVER = "nothing was kept, the same command starts over"


def prepare(
    graph: Annotated[
        str,
        typer.Argument(
            help="Edges: a file, a folder of parts, or a folder with edges and nodes; "
            "Parquet, CSV, TSV, text, Arrow, Feather, npz."
        ),
    ],
    nodes: Annotated[
        Path | None, typer.Argument(help="Nodes: a file or a folder of parts.")
    ] = None,
    output: Output = None,
    data_option: DataOption = None,
    cache: Cache = None,
    memory: ProgramMemory = "4G",
    like: Annotated[
        Path | None,
        typer.Option(help="Run, or prepared graph of training: encode a new graph like it."),
    ] = None,
    quiet: Quiet = False,
    json_: Json = False,
) -> None:
    """Prepare a graph that memory does not hold; train does so alone where it must."""
    from longnn.store._disk import cached_place
    from longnn.store._graph import GraphStore

    source, encoding = read_source(graph, nodes, data_option), None
    if like is not None:
        run = longnn.runs.load_run(like) if (like / longnn.records.RUN).exists() else None
        other = GraphStore.open(like) if run is None else run
        encoding = GraphStore.open(like).encoding if run is None else run.trained.encoding
        source = source if other.source is None else source.like(other.source)
    with interruptible(STARTS_OVER), display.work_progress(err, quiet=quiet) as on_progress:
        store = longnn.store.prepare(
            Path(source.graph) if source.kind == "files" else source.graph,
            source.nodes,
            output=cached_place(source, cache, encoding) if output is None else output,
            options=source.options,
            memory=memory,
            like=encoding,
            on_progress=on_progress,
        )
    show(store, quiet=quiet, json_=json_)


def show(store: "GraphStore", *, quiet: bool, json_: bool) -> None:
    """The card of a graph, and what to do next."""
    from longnn.store._disk import load_stored

    if json_:
        plain = store.manifest.about
        about = {k: v for k, v in plain.items() if k not in ("encoding", "scaling")}
        print_json({**about, "nodes": store.num_nodes, "features": store.num_features})
    elif not quiet:
        dataset = load_stored(store.folder, rows=True)
        card = longnn.data.describe(dataset)
        for line in card.lines():
            out.print(line)
        out.print(f"{'on disk':<12}{in_words(sum(f.bytes for f in store.manifest.files.values()))}")
        show_notes([*store.about.notes, *card.warnings])
        if bool(dataset.labelled.any()):
            err.print(f"next: longnn train {shlex.quote(str(store.folder))}")


def propagate(
    folder: Annotated[Path, typer.Argument(help="A folder made by `longnn prepare`.")],
    degree: Annotated[int, typer.Option(help="Highest degree K of the filter.")] = 10,
    self_loops: Annotated[str, typer.Option(help="Self loops: keep, add or remove them.")] = "keep",
    dtype: Annotated[
        str, typer.Option(help="Numbers on disk: float32, float16 or bfloat16.")
    ] = "float32",
    rows: Annotated[
        str, typer.Option(help="Rows to keep: all, or only the labelled nodes.")
    ] = "all",
    memory: Annotated[
        str | None,
        typer.Option(help="Memory to use, such as 4G (default: half of what is free)."),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Number of CPU threads (default: torch's choice).")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "cpu",
    json_: Json = False,
) -> None:
    """Compute what filters need of a prepared graph, T_0(P) X ... T_K(P) X, for all trainings.

    Blocks of columns are computed one after the other and written to disk. If the command is
    stopped, the same command goes on with the blocks that are missing. Started by torchrun, the
    processes share the blocks.
    """
    first = is_first_rank()
    started = time.perf_counter()
    where = str(longnn.training.choose_device(device))
    if where == "cuda":  # under torchrun each rank has a GPU of its own
        where = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
    with display.work_progress(err, quiet=json_ or not first) as on_progress:
        basis = longnn.store.propagate(
            folder,
            degree=degree,
            self_loops=self_loops,  # type: ignore[arg-type]  # checked there
            dtype=dtype,
            rows=rows,  # type: ignore[arg-type]
            memory=read_memory(memory),
            threads=threads,
            device=where,
            on_progress=on_progress,
        )
    if not first:
        return
    if json_:
        about = {**basis.manifest.about}
        print_json({"folder": str(basis.folder), **about.pop("recipe"), **about})
        return
    blocks, rounding = len(basis.about.columns), basis.about.rounding
    size = in_words(sum(file.bytes for file in basis.manifest.files.values()))
    out.print(
        f"basis: {basis.folder}\n"
        f"terms: {basis.num_rows:,} rows, degree {basis.degree}, {basis.num_columns} columns in "
        f"{blocks} block{'s' if blocks > 1 else ''}, {basis.about.recipe.dtype}, {size}"
        + (f", rounding error {rounding:.1e}" if rounding else "")
    )
    out.print(f"time: {display.time_text(time.perf_counter() - started)}")
