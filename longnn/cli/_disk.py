"""Commands for graphs of any size: prepare a folder to train from, compute its Chebyshev terms."""

import dataclasses
import os
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import longnn
from longnn._base.memory import in_words, parse_size
from longnn.cli import _display as display
from longnn.cli._base import (
    Cache,
    DataOption,
    Json,
    Quiet,
    err,
    interruptible,
    is_first_rank,
    out,
    print_json,
    read_source,
    show_notes,
)

if TYPE_CHECKING:
    from longnn.store._graph import GraphStore

Output = Annotated[
    Path | None, typer.Option(help="Folder to make (default: in the cache, where train finds it).")
]
Memory = Annotated[str, typer.Option(help="Memory for the whole program, e.g. 4G.")]
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
    memory: Memory = "4G",
    like: Annotated[
        Path | None,
        typer.Option(help="Run, or prepared graph of training: encode a new graph like it."),
    ] = None,
    quiet: Quiet = False,
    json_: Json = False,
) -> None:
    """Write a graph of any size into a folder that training reads from disk."""
    from longnn.store._cache import cached_place
    from longnn.store._graph import GraphStore
    from longnn.store._prepare import Form

    source = read_source(graph, nodes, data_option)
    form: Form | None = None
    if like is not None and (like / longnn.records.RUN).exists():
        run = longnn.runs.load_run(like)
        form, source = run.trained, source if run.source is None else source.like(run.source)
    elif like is not None:
        form = made = GraphStore.open(like)
        source = source if made.source is None else source.like(made.source)
    with interruptible(STARTS_OVER), display.work_progress(err, quiet=quiet) as on_progress:
        store = longnn.store.prepare(
            Path(source.graph) if source.kind == "files" else source.graph,
            source.nodes,
            output=cached_place(source, cache, form) if output is None else output,
            options=source.options,
            memory=memory,
            like=form,
            on_progress=on_progress,
        )
    show(store, quiet=quiet, json_=json_)


def show(store: "GraphStore", *, quiet: bool, json_: bool) -> None:
    """The card of a graph, and what to do next."""
    from longnn.store._disk import load_stored

    if json_:
        about = {k: v for k, v in store.about.items() if k not in ("encoding", "scaling")}
        print_json({**about, "nodes": store.num_nodes, "features": store.num_features})
    elif not quiet:
        card = longnn.data.describe(load_stored(store.folder, rows=True))
        for line in card.lines():
            out.print(line)
        out.print(f"{'on disk':<12}{in_words(sum(f.bytes for f in store.manifest.files.values()))}")
        show_notes([*store.about["notes"], *card.warnings])
        if store.about["labelled"]:
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
    row_ranks: Annotated[
        int, typer.Option(min=1, help="Ranks of torchrun that share the rows of the graph.")
    ] = 1,
    output: Annotated[
        Path | None, typer.Option(help="Folder to write (default: basis-KEY in the graph's).")
    ] = None,
    json_: Json = False,
) -> None:
    """Compute the terms T_0(P) X ... T_K(P) X of a prepared graph, once for all trainings.

    Blocks of columns are computed one after the other and written to disk. If the command is
    stopped, the same command goes on with the blocks that are missing. Started by torchrun, the
    processes share the blocks.
    """
    first = is_first_rank()
    started = time.perf_counter()
    where = str(longnn.training.choose_device(device))
    if where == "cuda":  # under torchrun each rank has a GPU of its own
        where = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
    with display.block_progress(err, quiet=json_ or not first) as on_progress:
        basis = longnn.store.propagate(
            folder,
            degree=degree,
            self_loops=self_loops,  # type: ignore[arg-type]  # checked there
            dtype=dtype,
            rows=rows,  # type: ignore[arg-type]
            memory=None if memory is None else parse_size(memory),
            threads=threads,
            device=where,
            output=output,
            row_ranks=row_ranks,
            on_progress=on_progress,
        )
    if not first:
        return
    if json_:
        about = dataclasses.asdict(basis.manifest)["about"]
        print_json({"folder": str(basis.folder), **about})
        return
    blocks, rounding = len(basis.columns), basis.about.get("rounding")
    size = in_words(sum(file.bytes for file in basis.manifest.files.values()))
    out.print(
        f"basis: {basis.folder}\n"
        f"terms: {basis.num_rows:,} rows, degree {basis.degree}, {sum(basis.columns)} columns in "
        f"{blocks} block{'s' if blocks > 1 else ''}, {basis.about['dtype']}, {size}"
        + (f", rounding error {rounding:.1e}" if rounding else "")
    )
    out.print(f"time: {display.time_text(time.perf_counter() - started)}")
