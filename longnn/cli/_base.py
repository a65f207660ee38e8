"""What all commands share: consoles, options, how a graph is named, how a mistake is reported.

Commands reach the rest of the package as ``longnn.data`` and so on, which is loaded when first
used: ``longnn --help`` does not wait for torch.
"""

import contextlib
import difflib
import functools
import json
import os
import select
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
import typer.core
from rich.console import Console

import longnn
from longnn._base.memory import parse_size
from longnn.config._config import TOP

if TYPE_CHECKING:
    from longnn.data import NodeDataset, Source


class Output(Console):
    """Standard output, whose reader may stop early: ``longnn datasets | head -1`` is no error."""

    def on_broken_pipe(self) -> NoReturn:
        self.quiet = True
        leave_closed_pipe()


# A command prints text, in the process of a notebook too: Rich would make HTML of each line there.
out = Output(highlight=False, soft_wrap=True, force_jupyter=False, markup=False, emoji=False)
err = Console(
    stderr=True, highlight=False, soft_wrap=True, force_jupyter=False, markup=False, emoji=False
)


def setting(name: str, **options: Any) -> Any:
    """A setting of a configuration as an option of its own, in the words of the configuration."""
    field = TOP[name]
    meaning = field.metadata["meaning"]
    told = isinstance(field.default, int | str) and "default" not in meaning
    default = f" (default: {field.default})" if told else ""
    return typer.Option(help=f"{meaning[0].upper()}{meaning[1:]}{default}.", **options)


Graph = Annotated[
    str,
    typer.Argument(help="Name of a dataset, an edge file, or a folder with edges.* and nodes.*"),
]
Nodes = Annotated[Path | None, typer.Option(help="Node file, if the graph is an edge file.")]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder of the named datasets (default: $LONGNN_DATA, else a cache)."),
]
DataOption = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        metavar="KEY=VALUE",
        help="Option of the loader, e.g. label_column=team; repeatable.",
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory to use, e.g. 4G (default: half of what is free). A graph that needs more is "
        "trained from disk.",
    ),
]
Coverage = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="Share of nodes whose answer is to lie in its interval, or in its set of plausible "
        "classes (default: 0.9, or as the run was trained with).",
    ),
]
KnownAnswers = Annotated[
    str,
    typer.Option(
        help="Whose answers are known: run (of nodes that the run knew), file (labels of the new "
        "graph), none, or auto (run if the graph is the run's, perhaps grown, else file).",
    ),
]
Cache = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Folder to prepare large files in (default: $LONGNN_CACHE, else the user's cache).",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")]
Run = Annotated[Path, typer.Argument(help="A run folder.")]


def leave_closed_pipe() -> NoReturn:
    """End quietly: the reader of standard output has read enough."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())  # Python flushes it once more at its end
    raise SystemExit(0)


def _reader_left() -> bool:
    """Whether standard output is a pipe that nobody reads any more."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)  # errors are reported whatever is asked for
    except (AttributeError, OSError):  # not on Windows; no file, in a test
        return False
    return bool(poll.poll(0))


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Turn a user's mistake into one line and exit code 1."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except (ValueError, TypeError, OSError, MemoryError, RuntimeError) as error:
            out_of_memory = isinstance(error, RuntimeError) and "memory" in str(error)
            ours = not isinstance(error, RuntimeError) or out_of_memory
            if os.environ.get("LONGNN_DEBUG") or not ours:
                raise
            if isinstance(error, BrokenPipeError) and _reader_left():
                leave_closed_pipe()
            first = is_first_rank()
            if not first:
                from longnn.store._ranks import RankLostError
            if first or not isinstance(error, RankLostError):
                rank = "" if first else f"rank {os.environ['RANK']}: "
                err.print(f"error: {rank}{message(error)}")
            raise typer.Exit(1) from None

    return wrapped


@contextlib.contextmanager
def interruptible(advice: str) -> Iterator[None]:
    """Ctrl-C ends a command in one line, which says what to do next."""
    try:
        yield
    except KeyboardInterrupt:
        err.print(f"interrupted; {advice}")
        raise typer.Exit(130) from None


def is_first_rank() -> bool:
    """Whether this process is to print: of those that ``torchrun`` started, the first."""
    return os.environ.get("RANK", "0") == "0"


def message(error: Exception) -> str:
    """What went wrong in one line, with paths below this folder as the user would write them."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror + (f": {error.filename}" if error.filename else "")
    return " ".join(with_short_paths(text).split()) or type(error).__name__


def with_short_paths(text: str) -> str:
    """A text with paths below this folder as the user would write them."""
    here = Path.cwd()
    return text if here == Path(here.anchor) else text.replace(f"{here}{os.sep}", "")


#: Common names of settings that longnn calls otherwise.
OTHER_NAMES = {
    "lr": "lr_transform",
    "learning_rate": "lr_transform",
    "wd": "wd_transform",
    "weight_decay": "wd_transform",
    "hidden": "hidden_channels",
    "k": "degree",
}
#: How much an unknown option must look like one of the command's own to mean that one.
ALIKE = 0.85


class PatientHelp:
    """Help whose reader may stop early: ``longnn --help | head -1`` is no error."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        try:
            super().format_help(ctx, formatter)  # type: ignore[misc]  # mixed into a command
        except SystemExit:  # Rich found a closed pipe, and would have the command fail
            raise SystemExit(0) from None


class Group(PatientHelp, typer.core.TyperGroup):
    """All commands."""


class Command(PatientHelp, typer.core.TyperCommand):
    """A command that knows settings: ``--epochs 10`` is answered with ``--set epochs=10``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        options = {name for option in self.params for name in option.opts}
        if "--set" in options and not ctx.resilient_parsing:
            for i, argument in enumerate(args):
                meant = setting_meant(argument, args[i + 1 : i + 2], options)
                if meant is not None:
                    option = argument.partition("=")[0]
                    text = f"error: No option {option}; did you mean --set {meant}?"
                    err.print(text)
                    raise typer.Exit(2)
        return super().parse_args(ctx, args)


def setting_meant(argument: str, following: list[str], options: Iterable[str]) -> str | None:
    """The assignment that an unknown option stands for, or None.

    >>> setting_meant("--epochs", ["10"], ["--set"]), setting_meant("--lr=0.1", [], ["--set"])
    ('epochs=10', 'lr_transform=0.1')
    >>> setting_meant("--nonsense", ["1"], ["--set"])
    """
    from longnn.config._config import settings_names

    option, assigned, value = argument.partition("=")
    if not option.startswith("--") or difflib.get_close_matches(option, options, n=1, cutoff=ALIKE):
        return None
    name = option.removeprefix("--").replace("-", "_").lower()
    name = OTHER_NAMES.get(name, name)
    if name not in (*settings_names(), *longnn.registry.OPTIONS):
        return None
    if not assigned:
        value = following[0] if following and not following[0].startswith("--") else "VALUE"
    return f"{name}={value}"


def read_source(graph: str, nodes: Path | None, pairs: list[str] | None) -> "Source":
    """What was named on the command line, resolved."""
    return longnn.data.Source.resolve(graph, nodes, options=assignments(pairs))


def load_dataset(
    source: "Source",
    data_dir: Path | None,
    memory: str | None,
    cache: Path | None,
    *,
    quiet: bool = False,
    **options: Any,
) -> "NodeDataset":
    """What was named on the command line: in memory where it fits, else on disk, prepared."""
    from longnn.store._disk import load_source

    note = lambda text: None if quiet else show_notes([with_short_paths(text)])  # noqa: E731
    given: dict[str, Any] = {"memory": read_memory(memory), "cache": cache, "on_note": note}
    return load_source(source, data_dir, **given, **options)


def assignments(pairs: list[str] | None) -> dict[str, Any]:
    """The table of a repeatable option KEY=VALUE."""
    from longnn.config._values import parse_assignment

    return dict(parse_assignment(pair) for pair in pairs or [])


def check_output(path: Path, option: str, endings: tuple[str, ...] = ()) -> Path:
    """The file to write, if it has one of the endings and its folder is there."""
    if endings and path.suffix not in endings:
        raise ValueError(f"Expected {option} to end in {' or '.join(endings)} (got {path})")
    if not path.parent.is_dir():
        raise ValueError(f"Expected {option} in an existing folder (got {path.parent})")
    return path


def read_memory(memory: str | None) -> int | None:
    """Bytes, as --memory says it."""
    return None if memory is None else parse_size(memory)


def show_notes(notes: Iterable[str]) -> None:
    """Print what the user should know."""
    for note in notes:
        err.print(f"note: {note}")


def print_json(value: Any, **options: Any) -> None:
    """Print a result for another program."""
    print(json.dumps(value, allow_nan=False, **options))
