"""What all commands share: consoles, options, how a graph is named, how a mistake is told.

Modules of longnn are imported inside functions, here and in the commands: ``longnn --help`` does
not wait for torch.
"""

import functools
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

import longnn

if TYPE_CHECKING:
    from longnn.data import Source

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
            err.print(f"error: {message(error)}", markup=False)
            raise typer.Exit(1) from None

    return wrapped


def message(error: Exception) -> str:
    """What went wrong in one line, with paths below this folder as the user would write them."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror + (f": {error.filename}" if error.filename else "")
    here = Path.cwd()
    if here != Path(here.anchor):
        text = text.replace(f"{here}{os.sep}", "")
    return " ".join(text.split()) or type(error).__name__


def read_source(graph: str, nodes: Path | None, pairs: list[str] | None) -> "Source":
    """What was named on the command line, resolved."""
    options = dict(longnn.config.parse_assignment(pair) for pair in pairs or [])
    return longnn.data.Source.resolve(graph, nodes, options=options)


def show_notes(notes: Iterable[str]) -> None:
    """Print what the user ought to know."""
    for note in notes:
        err.print(f"note: {note}", markup=False)
