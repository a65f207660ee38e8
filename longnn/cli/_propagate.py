"""The command that computes the Chebyshev terms of a prepared graph."""

import dataclasses
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import longnn
from longnn._base.memory import in_words, parse_size
from longnn.cli._base import Json, err, is_first_rank, out
from longnn.cli._display import block_progress, time_text

if TYPE_CHECKING:
    from longnn.store._basis import BasisStore


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
    with block_progress(err, quiet=json_ or not first) as on_progress:
        found = longnn.store.propagate(
            folder,
            degree=degree,
            self_loops=self_loops,  # type: ignore[arg-type]  # checked there
            dtype=dtype,
            rows=rows,  # type: ignore[arg-type]
            memory=None if memory is None else parse_size(memory),
            threads=threads,
            device=_device(device),
            output=output,
            row_ranks=row_ranks,
            on_progress=on_progress,
        )
    if not first:
        return
    if json_:
        manifest = dataclasses.asdict(found.manifest)
        print(json.dumps({"folder": str(found.folder), **manifest["about"]}, allow_nan=False))
        return
    out.print(describe(found), markup=False)
    out.print(f"time: {time_text(time.perf_counter() - started)}", markup=False)


def describe(basis: "BasisStore") -> str:
    """A basis in two lines."""
    size = sum(file.bytes for file in basis.manifest.files.values())
    blocks = len(basis.columns)
    text = (
        f"basis: {basis.folder}\n"
        f"terms: {basis.num_rows:,} rows, degree {basis.degree}, {sum(basis.columns)} columns in "
        f"{blocks} block{'s' if blocks > 1 else ''}, {basis.about['dtype']}, {in_words(size)}"
    )
    rounding = basis.about.get("rounding")
    return f"{text}, rounding error {rounding:.1e}" if rounding else text


def _device(name: str) -> str:
    """The device of this rank: under torchrun each has a GPU of its own."""
    where = str(longnn.training.choose_device(name))
    if where != "cuda":
        return where
    return f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
